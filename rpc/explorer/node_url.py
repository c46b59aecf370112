"""Checks node URLs for the explorer without importing the page's files."""

from urllib.parse import urlsplit


def check_node_url(text: str) -> str:
    """Return the URL of a node. Raises ValueError if the explorer page cannot call it."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError(
            f"invalid node URL {text!r}: expected http:// or https://, a host and no user name"
        )
    if any(character in text for character in " ;,'\"\\") or not text.isascii():
        raise ValueError(
            f"invalid node URL {text!r}: it has characters that a node URL cannot have"
        )
    if parts.port == 0:
        raise ValueError(f"invalid node URL {text!r}: port 0")
    return text
