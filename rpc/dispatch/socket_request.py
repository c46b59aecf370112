"""What a handler may do for the WebSocket client whose message it answers."""

from typing import Protocol

from fastevm.rpc.subscriptions.topics import Topic


class SocketRequest(Protocol):
    """One message of a WebSocket client, as handlers see it."""

    def subscribe(self, topic: Topic) -> str: ...
    def unsubscribe(self, subscription_id: str) -> bool: ...
