"""Removes API keys in URLs and headers from messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from fastevm.rpc_client.messages import shown_address

HIDDEN: Final = "***"
MAX_TEXT: Final = 400  # characters of an endpoint's message to show
MIN_SECRET: Final = 3  # characters; shorter segments occur everywhere
# Path segments that are not keys. Masking them would make messages hard to read.
COMMON = re.compile(r"v\d+|rpc|eth|ethereum|mainnet|sepolia|hoodi|jsonrpc|json-rpc|public|node")


def redacted(url: str) -> str:
    """Returns ``url`` for messages: ``https://host:port``, with ``/***`` for the rest.

    User, password, path, query and fragment may all contain a key.
    """
    try:
        parts = urlsplit(url)
        shown = shown_address(url)
    except ValueError:  # invalid port, or an unclosed bracket
        return HIDDEN
    rest = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    return f"{shown}/{HIDDEN}" if rest else shown


class Redactor:
    """Masks the keys of URLs and headers wherever they occur in a text."""

    def __init__(self, urls: Iterable[str], headers: Mapping[str, str] | None = None) -> None:
        found = {part for url in urls for part in _secrets_of(url)}
        for value in (headers or {}).values():
            found |= {value, *value.split()[1:]}
        self._secrets = sorted((item for item in found if len(item) >= MIN_SECRET), key=len)[::-1]

    def text(self, message: object) -> str:
        """Returns ``message`` without keys, on one line, at most ``MAX_TEXT`` characters."""
        text = str(message)
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        text = " ".join(text.split())
        return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "..."


def _secrets_of(url: str) -> set[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return {url}
    found = {parts.query, parts.fragment, parts.username or "", parts.password or ""}
    found |= {part for part in parts.path.split("/") if not COMMON.fullmatch(part)}
    found |= {value for _, value in parse_qsl(parts.query)}
    return {*found, *map(unquote, found)}
