"""Connections to public addresses only, for URLs that somebody else chose.

A host may be written in many ways (full-width digits, one number, a name that resolves to another
address), and an IPv6 address may carry an IPv4 address to a translator. So the check is made on the
address of every socket before it connects.
"""

import asyncio
import ipaddress
import socket
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import AddrInfoType

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: the last 32 bits are IPv4
# Public to `ipaddress`, but translated or routed by local rules.
_SPECIAL: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        "64:ff9b:1::/48",  # RFC 8215: local-use NAT64
        "2001::/32",  # RFC 4380: Teredo
        "fec0::/10",  # RFC 3879: site-local
        "::/96",  # RFC 4291: IPv4-compatible
        "5f00::/16",  # RFC 9602: segment routing
        "192.88.99.0/24",  # RFC 7526: 6to4 relays
    )
)


class NotPublic(OSError):
    """The address is not public."""


def is_public(text: str) -> bool:
    """Whether an IP address, and an IPv4 address inside of it, is public unicast."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if not address.is_global or address.is_multicast:
        return False
    if any(address.version == network.version and address in network for network in _SPECIAL):
        return False
    inner = _inner(address)
    return inner is None or is_public(str(inner))


def _inner(address: _Address) -> ipaddress.IPv4Address | None:
    """Returns the IPv4 address that an IPv6 address is translated to, if any."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


class PublicResolver(AbstractResolver):
    """Resolves to public addresses only. The connection uses them without resolving again."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Returns the public addresses. Raises `NotPublic` if there is none."""
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, family=family, type=socket.SOCK_STREAM
        )
        public = [info for info in found if is_public(str(info[4][0]))]
        if not public:
            raise NotPublic(f"{host} has no public address")
        return [
            ResolveResult(
                hostname=host, host=str(info[4][0]), port=port, family=info[0], proto=info[2],
                flags=socket.AI_NUMERICHOST,
            )
            for info in public
        ]  # fmt: skip

    async def close(self) -> None:
        """Does nothing."""


def public_connector(limit: int) -> aiohttp.TCPConnector:
    """Returns a connector with ``limit`` connections that refuses all but public addresses."""
    return aiohttp.TCPConnector(resolver=PublicResolver(), limit=limit, socket_factory=_socket)


def _socket(info: AddrInfoType) -> socket.socket:
    """Creates the socket of a connection. Raises `NotPublic`."""
    family, kind, proto, _, address = info
    if not is_public(str(address[0])):
        raise NotPublic(f"{address[0]} is not a public address")
    made = socket.socket(family, kind, proto)
    made.setblocking(False)
    return made
