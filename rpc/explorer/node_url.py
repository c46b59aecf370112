"""Which URLs a page may be made for, said where nothing loads the page's files."""

from urllib.parse import urlsplit


def check_node_url(text: str) -> str:
    """The URL of a node that a page may call; ValueError says what is wrong with it."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError(f"{text!r} is no http:// or https:// URL of a node")
    if any(character in text for character in " ;,'\"\\") or not text.isascii():
        raise ValueError(f"{text!r} holds characters that no URL of a node has")
    if parts.port == 0:
        raise ValueError(f"{text!r}: no node has port 0")
    return text
