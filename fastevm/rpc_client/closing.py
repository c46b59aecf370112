"""What `async with` does for objects that are only closed."""

from typing import Self


class AsyncClosing:
    """A base of classes whose ``async with`` ends with `close`."""

    async def close(self) -> None:
        """Releases what the object holds."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
