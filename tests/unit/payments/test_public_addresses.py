"""Tests which IP addresses are public, also for IPv6 addresses that embed an IPv4 address."""

import socket

import pytest

from fastevm.payments.public_addresses import NotPublic, PublicResolver, is_public

PRIVATE_V4 = (
    "0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254",
    "172.16.0.1", "168.63.129.16", "192.0.0.1", "192.0.0.8", "192.0.0.9", "192.0.0.10",
    "192.0.0.170", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
    "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
)  # fmt: skip


@pytest.mark.parametrize("text", PRIVATE_V4)
def test_what_carries_a_private_address_is_private(text: str) -> None:
    number = int.from_bytes(socket.inet_aton(text), "big")
    high, low = number >> 16, number & 0xFFFF
    for form in (
        text, f"::ffff:{text}", f"::{text}", f"64:ff9b::{text}", f"64:ff9b:1::{text}",
        f"2002:{high:x}:{low:x}::1", f"::ffff:0:{text}", f"2606:4700::5efe:{text}",
        f"2606:4700::200:5efe:{text}",
    ):  # fmt: skip
        assert not is_public(form), form


@pytest.mark.parametrize(
    "text",
    [
        "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1",
        "ff0e::1", "2001:db8::1", "2001::1", "100::1", "5f00::1", "", "example.com", "1.2.3",
        "\u2460.1.1.1", "64:ff9b::a00:1", "::ffff:0:8.8.8.8", "::ffff:8.8.8.8", "3fff::1",
        "3fff:fff::1", "4000::1", "6000::1", "8000::1", "e000::1", "1::1", "2001:1::1",
        "2001:20::1",
        "2001:30::1", "2001:4:112::1", "100:0:0:1::1",
    ],
)  # fmt: skip
def test_other_addresses_that_are_not_public(text: str) -> None:
    assert not is_public(text)


@pytest.mark.parametrize(
    "text",
    [
        "1.1.1.1",
        "8.8.8.8",
        "2606:4700::1111",
        "2a00:1450:4001::200e",
        "64:ff9b::808:808",
        "2002:808:808::1",
        "2606:4700::5efe:8.8.8.8",
        "2001:4860:4860::8888",
    ],
)
def test_public_addresses(text: str) -> None:
    assert is_public(text)


async def test_names_of_private_addresses_do_not_resolve() -> None:
    with pytest.raises(NotPublic):
        await PublicResolver().resolve("localhost", 80)
