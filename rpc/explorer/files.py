"""The files of the explorer page: their bytes, content types and security headers.

The page calls JSON-RPC of one node only: the node that served the page, or ``node_url``. Its
Content-Security-Policy forbids other hosts, inline scripts, forms and frames.
"""

import gzip
import hashlib
import html
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

FOLDER: Final = Path(__file__).parent / "assets"
PAGE: Final = "index.html"
TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
NODE_MARK: Final = 'name="json-rpc" content=""'
GZIP_LEVEL: Final = 9

# Headers that forbid other sites to frame or embed the page or to keep a reference to its window.
RULES: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
    "Vary": "Accept, Accept-Encoding",
}


class SentFile(Struct, frozen=True):
    """A file in uncompressed and compressed form. ``tag`` is its ETag."""

    kind: str
    body: bytes
    packed: bytes
    tag: str


@cache
def page_files(node_url: str = "") -> dict[str, SentFile]:
    """Return all files by name. The page calls ``node_url``, by default the serving node."""
    found = {}
    for path in sorted(FOLDER.iterdir()):
        body = path.read_bytes()
        if path.name == PAGE:
            mark = f'name="json-rpc" content="{html.escape(node_url)}"'
            body = body.replace(NODE_MARK.encode(), mark.encode())
        tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        packed = gzip.compress(body, GZIP_LEVEL, mtime=0)
        found[path.name] = SentFile(TYPES[path.suffix], body, packed, tag)
    return found


def policy(node_url: str = "") -> str:
    """Return the Content-Security-Policy: what the page may load and which node it may call."""
    hosts = ["'self'"]
    if node_url:
        parts = urlsplit(node_url)
        secure = parts.scheme == "https"
        hosts = [
            f"{parts.scheme}://{parts.netloc}",
            f"{'wss' if secure else 'ws'}://{parts.netloc}",
        ]
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            f"connect-src {' '.join(hosts)}",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
