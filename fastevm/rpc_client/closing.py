"""A base class for ``async with``."""

from typing import Self


class AsyncClosing:
    """A base class whose ``async with`` block ends with `close`."""

    async def close(self) -> None:
        """Releases the resources of this object."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
