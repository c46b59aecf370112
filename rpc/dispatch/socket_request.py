"""Subscriptions of the WebSocket client whose message a handler answers."""

from typing import Protocol

from fastevm.rpc.subscriptions.topics import Topic


class SocketRequest(Protocol):
    """The message of a WebSocket client that a handler answers."""

    def subscribe(self, topic: Topic) -> str: ...
    def unsubscribe(self, subscription_id: str) -> bool: ...
