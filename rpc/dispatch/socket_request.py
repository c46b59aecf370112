"""The message and the subscriptions of a WebSocket client."""

from typing import Protocol

from fastevm.rpc.subscriptions.topics import Topic


class SocketRequest(Protocol):
    """The WebSocket message that a handler answers, with its client's subscriptions."""

    def subscribe(self, topic: Topic) -> str: ...
    def unsubscribe(self, subscription_id: str) -> bool: ...
