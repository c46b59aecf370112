"""Providers for web3.py with a node inside the process: ``Web3(FastevmProvider())``.

The providers work with web3.py 7 and 8. Several providers may share one `LocalNode`.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

from web3.exceptions import PersistentConnectionClosedOK
from web3.providers.async_base import AsyncJSONBaseProvider
from web3.providers.base import JSONBaseProvider
from web3.providers.persistent import PersistentConnectionProvider
from web3.types import RPCEndpoint, RPCResponse

from fastevm.core.primitives.deep_json import decode_json
from fastevm.integrations.local_channel import LocalChannel
from fastevm.integrations.local_node import LocalNode, NodeAccount, NodeError

__all__ = [
    "AsyncFastevmProvider",
    "FastevmProvider",
    "LocalNode",
    "NodeAccount",
    "NodeError",
    "PersistentFastevmProvider",
]

PROVIDER_OPTIONS: Final = frozenset((
    "cache_allowed_requests", "cacheable_requests", "request_cache_validation_threshold",
    "request_timeout", "subscription_response_queue_size", "silence_listener_task_exceptions",
    "request_information_cache_size",
))  # fmt: skip
"""The options for web3.py. All other options are for the node."""

Requests = list[tuple[RPCEndpoint, Any]]
_Many = list[RPCResponse] | RPCResponse


def _node_of(node: LocalNode | None, options: dict[str, Any]) -> tuple[LocalNode, dict[str, Any]]:
    """Returns the node, and the options for web3.py's provider class."""
    ours = {name: value for name, value in options.items() if name not in PROVIDER_OPTIONS}
    theirs = {name: value for name, value in options.items() if name in PROVIDER_OPTIONS}
    if node is None:
        return LocalNode(**ours), theirs
    if ours:
        raise ValueError(f"an existing node accepts no options: {', '.join(sorted(ours))}")
    return node, theirs


def _one(answer: bytes) -> RPCResponse:
    return cast(RPCResponse, decode_json(answer))


def _many(answer: bytes) -> _Many:
    return cast(_Many, decode_json(answer))


class FastevmProvider(JSONBaseProvider):
    """A provider for `Web3`. ``node``: the node to use; None creates one with ``options``.

    The options of `LocalNode` and of web3.py's own providers are accepted.
    """

    def __init__(self, node: LocalNode | None = None, **options: Any) -> None:
        self.node, theirs = _node_of(node, options)
        super().__init__(**theirs)

    def __str__(self) -> str:
        return f"FastevmProvider({self.node!r})"

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        """Calls a method. Raises ConnectionError if the node has stopped."""
        return _one(self.node.exchange(self.encode_rpc_request(method, params)))

    def make_batch_request(self, requests: Requests) -> _Many:
        """Calls several methods in a batch. Returns the answers in order."""
        return _many(self.node.exchange(self.encode_batch_rpc_request(requests)))


class AsyncFastevmProvider(AsyncJSONBaseProvider):
    """A provider for `AsyncWeb3`. Options: see `FastevmProvider`."""

    def __init__(self, node: LocalNode | None = None, **options: Any) -> None:
        self.node, theirs = _node_of(node, options)
        super().__init__(**theirs)

    def __str__(self) -> str:
        return f"AsyncFastevmProvider({self.node!r})"

    async def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        """Calls a method. Raises ConnectionError if the node has stopped."""
        body = self.encode_rpc_request(method, params)
        return _one(await asyncio.wrap_future(self.node.begin_exchange(body)))

    async def make_batch_request(self, requests: Requests) -> _Many:
        """Calls several methods in a batch. Returns the answers in order."""
        body = self.encode_batch_rpc_request(requests)
        return _many(await asyncio.wrap_future(self.node.begin_exchange(body)))

    async def disconnect(self) -> None:
        """Does nothing, because the node may have other users and keeps running."""


class PersistentFastevmProvider(PersistentConnectionProvider):
    """A provider for `AsyncWeb3` with subscriptions. Options: see `FastevmProvider`.

    Use it like a WebSocketProvider: ``async with AsyncWeb3(provider) as w3``.
    """

    def __init__(self, node: LocalNode | None = None, **options: Any) -> None:
        self.node, theirs = _node_of(node, options)
        self.endpoint_uri = f"in-process:{self.node.command}"
        self._channel: LocalChannel | None = None
        super().__init__(**theirs)

    def __str__(self) -> str:
        return f"PersistentFastevmProvider({self.node!r})"

    async def is_connected(self, show_traceback: bool = False) -> bool:
        """Returns whether the channel is open and the node answers."""
        if self._channel is None or not self._channel.is_open:
            return False
        return await super().is_connected(show_traceback)

    async def socket_send(self, request_data: bytes) -> None:
        """Sends a request. Raises ConnectionError if the provider is not connected."""
        if self._channel is None:
            raise ConnectionError("the provider is not connected")
        self._channel.write(request_data)

    async def socket_recv(self) -> RPCResponse:
        """Returns the next answer or notification."""
        message = None if self._channel is None else await self._channel.read()
        if message is None:
            raise PersistentConnectionClosedOK(user_message="the node has stopped")
        return _one(message)

    async def _provider_specific_connect(self) -> None:
        self._channel = self.node.open_channel(asyncio.get_running_loop())

    async def _provider_specific_disconnect(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None and channel.is_open:
            channel.close()

    async def _provider_specific_socket_reader(self) -> RPCResponse:
        return await self.socket_recv()
