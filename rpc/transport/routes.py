"""Routes and content types of a listener, in a module that does not import aiohttp."""

from typing import Final

from msgspec import Struct

JSON_TYPE: Final = "application/json"
EARLY_FRAMES: Final = "a WebSocket's frames must wait for the answer to its request"
ACCEPTED_TYPES: Final = frozenset((JSON_TYPE, "application/json-rpc", "application/jsonrequest"))


class Routes(Struct, frozen=True):
    """The optional routes of a listener: JSON-RPC with the feed, metrics, explorer."""

    rpc: bool = True
    metrics: bool = True
    explorer: bool = False
