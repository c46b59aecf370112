"""Connects to public addresses only, for URLs that somebody else chose.

A host may be written in many ways (full-width digits, one number, a name that resolves to another
address), and an IPv6 address may contain an IPv4 address that a translator then uses. So the
address of every socket is checked before the socket connects.
"""

import asyncio
import ipaddress
import socket
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import AddrInfoType

NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: the last 32 bits are IPv4
UNICAST: Final = ipaddress.IPv6Network("2000::/3")  # RFC 4291: all that is assigned so far
# Never public. Python has such a list too, but it differs between versions of Python.
_SPECIAL: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        "168.63.129.16/32",  # Azure: metadata and DNS of a virtual machine
        "192.0.0.0/24",  # RFC 6890: IETF protocols
        "192.88.99.0/24",  # RFC 7526: 6to4 relays
        "2001::/23",  # RFC 2928: Teredo, benchmarking, ORCHID
        "2001:db8::/32",  # RFC 3849: documentation
        "3fff::/20",  # RFC 9637: documentation
    )
)
_ISATAP: Final = (0x00005EFE, 0x02005EFE)  # RFC 5214: the 32 bits that precede the IPv4 address


class NotPublic(OSError):
    """The address is not public."""


def is_public(text: str) -> bool:
    """Whether an IP address, and any IPv4 address embedded in it, is public unicast."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if not address.is_global or address.is_multicast:
        return False
    if any(address.version == network.version and address in network for network in _SPECIAL):
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return True
    inner = _inner(address)
    return (address in UNICAST or address in NAT64) and (inner is None or is_public(str(inner)))


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Returns the IPv4 address to which an IPv6 address is translated or tunnelled, or None."""
    number = int(address)
    if address in NAT64 or (number >> 32) & 0xFFFFFFFF in _ISATAP:
        return ipaddress.IPv4Address(number & 0xFFFFFFFF)
    return address.sixtofour


class PublicResolver(AbstractResolver):
    """Resolves names to public addresses only. The connection uses them without another lookup."""

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
