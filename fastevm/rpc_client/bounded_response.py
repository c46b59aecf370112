"""The response class of asynchronous clients. Importing this module imports aiohttp."""

from typing import Any

from aiohttp import ClientResponse, ClientResponseError

from fastevm.rpc_client.messages import MOST_INTERIM_HEADS, TOO_MANY_HEADS


class BoundedResponse(ClientResponse):
    """A response with at most `MOST_INTERIM_HEADS` interim heads (status 1xx).

    aiohttp itself skips any number of interim heads, on the event loop.
    """

    async def start(self, connection: Any) -> ClientResponse:
        """Reads the head. Raises ClientResponseError after too many interim heads."""
        protocol = connection.protocol
        read, heads = protocol.read, 0

        async def bounded_read() -> Any:
            nonlocal heads
            heads += 1
            if heads > MOST_INTERIM_HEADS + 1:
                raise ClientResponseError(self.request_info, self.history, message=TOO_MANY_HEADS)
            return await read()

        protocol.read = bounded_read
        try:
            return await super().start(connection)
        finally:
            del protocol.read
