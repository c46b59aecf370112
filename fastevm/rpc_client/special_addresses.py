"""Connects to URLs that clients sent, but refuses link-local addresses and metadata services.

A cloud's metadata service gives a machine's keys to everybody who can make that machine connect to
the service. Each resolved address is checked, and the connection uses the checked address.
"""

import socket
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any, Final

METADATA: Final = frozenset(
    map(
        ip_address,
        (
            "fd00:ec2::254",  # AWS
            "100.100.100.200",  # Alibaba Cloud
            "168.63.129.16",  # Azure
            "192.0.0.192",  # Oracle Cloud
        ),
    )
)
NAT64: Final = IPv6Network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address


class SpecialAddress(ValueError):
    """A connection to a link-local address or a metadata service was refused.

    Retries do not help.
    """


def is_special(text: str) -> bool:
    """Returns whether an IP address, or an IPv4 address embedded in it, is refused."""
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in NAT64:
            inner = ip_address(int(address) & 0xFFFFFFFF)  # type: ignore[assignment]
        if inner is not None:
            return is_special(str(inner))
    return (
        address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or address in METADATA
    )


def connect(address: tuple[str, int], timeout: Any = None, source: Any = None) -> socket.socket:
    """Connects like `socket.create_connection`. Raises `SpecialAddress` for refused addresses."""
    host, port = address
    error: OSError | None = None
    for *_, resolved in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        found = str(resolved[0])
        if is_special(found):
            raise SpecialAddress("the address of the node is link-local or of a metadata service")
        try:
            return socket.create_connection((found, port), timeout, source)
        except OSError as failed:
            error = failed
    raise error or OSError("the host has no address")
