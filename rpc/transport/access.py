"""Access rules of a listener: Host names, origins, namespaces of methods, and keys."""

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any, Final, TypeGuard
from urllib.parse import urlsplit

from msgspec import Struct

from fastevm.rpc.dispatch.registry import METHODS, namespace_of

ANY: Final = "*"
OPEN_NAMESPACES: Final = frozenset(("eth", "net", "rpc", "web3"))  # namespaces served without a key
# default namespaces of a listener beyond loopback
PUBLIC_NAMESPACES: Final = frozenset(("eth", "net", "web3"))
ALWAYS_SERVED: Final = "rpc"
EXPLORED: Final = "eth"  # namespace that the explorer requires

LOCAL_NAMES: Final = frozenset(("localhost",))
PROGRAM: Final = r"(?a:\w[\w .-]{0,63})"  # a program's name sent as an origin
EXTENSION_SCHEMES: Final = frozenset(("chrome-extension", "moz-extension", "safari-web-extension"))

JWT_SECRET_SIZE: Final = 32  # bytes
# seconds that ``iat`` of a token may differ from the clock, as in the engine API
JWT_AGE: Final = 60
HOST_BITS: Final = 64  # bits of the host part of an IPv6 address, which a client can choose freely
LAST_TIME: Final = 2**53  # seconds; whole numbers up to here are exact in JSON
SHORTEST_TOKEN: Final = 16  # characters


def is_loopback(host: str) -> bool:
    """Return whether a listening address or name is loopback."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() in LOCAL_NAMES


def client_of(address: str) -> str:
    """Return the client name that limits use for ``address``.

    An IPv6 client is named by its /64 network, since a host may use any address of the network. An
    IPv4-mapped address becomes its IPv4 address.
    """
    if ":" not in address:
        return address
    try:
        found = IPv6Address(address)
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    if found.is_loopback:
        return address
    return f"{IPv6Address(int(found) >> HOST_BITS << HOST_BITS)}/{HOST_BITS}"


def known_namespaces() -> frozenset[str]:
    """Return the namespaces of all registered methods."""
    return frozenset(map(namespace_of, METHODS))


def parse_namespaces(text: str) -> frozenset[str]:
    """Parse ``eth,debug,...``, or ``*`` for all. Raises ValueError for an unknown namespace."""
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    if ANY in names:
        return known_namespaces()
    unknown = sorted(names - known_namespaces())
    if unknown:
        there_are = ", ".join(sorted(known_namespaces()))
        raise ValueError(f"no namespace {unknown[0]!r}: there are {there_are}")
    return names


class Access(Struct, frozen=True):
    """The access rules of one listener.

    - ``hosts`` are the allowed Host names, besides localhost, IP addresses and ``bound``, the
      listening address.
    - ``origins`` are the allowed origins such as ``https://app.example``, besides local origins.
      ``*`` in ``hosts`` or ``origins`` allows all.
    - ``namespaces`` are the served namespaces. None means all on loopback, `PUBLIC_NAMESPACES`
      elsewhere.
    - ``keys`` are required for all namespaces except `OPEN_NAMESPACES`. None means no keys.
    - ``proxies`` are the addresses of reverse proxies whose X-Forwarded-For is trusted.
    - ``explorer`` says whether browsers get the explorer page. None means on loopback only.
    """

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    namespaces: frozenset[str] | None = None
    keys: "Keys | None" = None
    bound: str = ""
    proxies: frozenset[str] = frozenset()
    explorer: bool | None = None

    def refusal(self, host: str, origin: str | None) -> str | None:
        """Return why a request is refused (unknown Host, foreign origin), or None."""
        if not self.allows_host(host):
            return "invalid host specified"
        if origin is not None and not self.allows_origin(origin):
            return "origin not allowed"
        return None

    def allows_host(self, header: str) -> bool:
        """Return whether a Host header names this server, which prevents DNS rebinding."""
        if ANY in self.hosts or not header:
            return True
        name = urlsplit(f"//{header}").hostname if _is_authority(header) else None
        if name is None:
            return False
        if name in LOCAL_NAMES or name == self.bound.lower() or name in self.hosts:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True

    def client(self, peer: str, forwarded: str | None) -> str:
        """Return the client name that limits use for a request from ``peer``, see `client_of`.

        ``forwarded`` is the X-Forwarded-For header. Only its last address is used: the proxy
        appended this address, but the client may have sent the others.
        """
        if not forwarded or peer not in self.proxies:
            return client_of(peer)
        try:
            return client_of(str(ip_address(forwarded.rpartition(",")[2].strip())))
        except ValueError:
            return client_of(peer)

    def allows_origin(self, origin: str) -> bool:
        """Return whether pages of ``origin`` may call methods. Browser extensions always may.

        Browsers send ``scheme://host`` or ``null``; any other word is the name of a program, such
        as titanoboa's ``Titanoboa``.
        """
        if ANY in self.origins or origin.lower() in self.origins:
            return True
        if re.fullmatch(PROGRAM, origin) and origin.lower() != "null":
            return True
        try:
            parts = urlsplit(origin)
            name = parts.hostname or ""
        except ValueError:
            return False
        if parts.scheme in EXTENSION_SCHEMES:
            return True
        return parts.scheme in ("http", "https") and is_loopback(name)

    def served(self, host: str) -> frozenset[str]:
        """Return the namespaces that a listener on ``host`` serves, with or without a key."""
        if self.namespaces is not None:
            return self.namespaces | {ALWAYS_SERVED}
        if is_loopback(host):
            return known_namespaces()
        return PUBLIC_NAMESPACES | {ALWAYS_SERVED}

    def has_explorer(self, host: str) -> bool:
        """Return whether a listener on ``host`` serves the explorer page, which needs ``eth``."""
        wanted = is_loopback(host) if self.explorer is None else self.explorer
        return wanted and EXPLORED in self.served(host)


def _is_authority(header: str) -> bool:
    """Return whether a Host header is only a name or address and an optional port."""
    if any(character in header for character in "/@?#\\ \t,"):
        return False
    try:
        parts = urlsplit(f"//{header}")
        return parts.hostname is not None and (parts.port is None or parts.port >= 0)
    except ValueError:
        return False


DEFAULT_ACCESS: Final = Access()


class Keys(Struct, frozen=True):
    """Keys for the guarded namespaces: a bearer token, or the secret of signed tokens (JWT)."""

    token: str | None = None
    secret: bytes | None = None

    def open(self, header: str | None) -> bool:
        """Return whether an Authorization header contains a valid key."""
        kind, _, text = (header or "").partition(" ")
        text = text.strip()
        if kind.lower() != "bearer" or not text:
            return False
        if not text.isascii():
            return False
        if self.token is not None and hmac.compare_digest(text.encode(), self.token.encode()):
            return True
        return self.secret is not None and is_signed(text, self.secret, time.time())


def read_token(path: Path) -> str:
    """Read a bearer token from a file. Raises ValueError if it is short or has several words."""
    text = path.read_text().strip()
    if len(text) < SHORTEST_TOKEN or not text.isascii() or len(text.split()) != 1:
        raise ValueError(f"{path}: expected one word of at least {SHORTEST_TOKEN} characters")
    return text


def read_secret(path: Path) -> bytes:
    """Read a JWT secret of 64 hex digits (engine API) from a file. Raises ValueError if invalid."""
    text = path.read_text().strip().removeprefix("0x")
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) != JWT_SECRET_SIZE:
        raise ValueError(f"{path}: expected {JWT_SECRET_SIZE} bytes in hex")
    return secret


def is_signed(token: str, secret: bytes, now: float) -> bool:
    """Return whether a JSON web token is signed with ``secret`` (HS256) and valid at ``now``.

    ``now`` is in Unix seconds. According to the engine API, ``iat`` may differ from ``now`` by 60
    seconds, and ``exp`` must be in the future. ``nbf`` may be 60 seconds in the future. A header
    with ``crit`` requires extensions (RFC 7515, 4.1.11), and this function implements none.
    """
    signed, _, signature = token.rpartition(".")
    header_text, dot, claims_text = signed.partition(".")
    if not dot or not token.isascii():
        return False
    right = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
    header, claims = _decoded(header_text), _decoded(claims_text)
    if not hmac.compare_digest(_bytes(signature), right) or header.get("alg") != "HS256":
        return False
    if "crit" in header:
        return False
    issued, expires, begins = claims.get("iat"), claims.get("exp"), claims.get("nbf")
    if not _is_time(issued) or abs(now - issued) > JWT_AGE:
        return False
    if begins is not None and not (_is_time(begins) and begins <= now + JWT_AGE):
        return False
    return expires is None or (_is_time(expires) and expires > now)


def _is_time(value: Any) -> TypeGuard[int | float]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value < LAST_TIME  # false for NaN


def _decoded(text: str) -> dict[str, Any]:
    try:
        found = json.loads(_bytes(text))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _bytes(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return b""


def lower(names: Iterable[str]) -> frozenset[str]:
    """Return names of hosts or origins normalised for comparison."""
    return frozenset(name.strip().lower().rstrip("/") for name in names)
