"""Tests that URLs in requests cannot reach link-local addresses, and that keys are not logged."""

import asyncio
import logging
import socket
from typing import Any

import pytest
from aiohttp import web

from fastevm.errors import FastevmError
from fastevm.node import Mining, dev_node
from fastevm.node.remote.options import ForkOptions
from fastevm.rpc_client import special_addresses
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.special_addresses import SpecialAddress, is_special
from tests.max_wait import MAX_WAIT

SPECIAL = [
    "169.254.169.254", "169.254.0.1", "fe80::1", "fe80::1%eth0", "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "0.0.0.0", "::", "224.0.0.1", "fd00:ec2::254",
    "100.100.100.200",
]  # fmt: skip
USUAL = ["127.0.0.1", "::1", "192.168.1.2", "10.0.0.1", "8.8.8.8", "2606:4700::1111"]
KEY = "0123456789abcdef"


@pytest.mark.parametrize("address", SPECIAL)
def test_special_addresses(address: str) -> None:
    assert is_special(address)


@pytest.mark.parametrize("address", USUAL)
def test_usual_addresses(address: str) -> None:
    assert not is_special(address)


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Provides the addresses that sockets tried to connect to. No packet leaves this machine."""
    found: list[Any] = []

    def connect(address: Any, *_: Any) -> socket.socket:
        found.append(address)
        raise ConnectionRefusedError("no")

    monkeypatch.setattr(socket, "create_connection", connect)
    return found


@pytest.mark.parametrize("host", ["169.254.169.254", "2852039166", "0xa9fea9fe"])
def test_a_guarded_client_does_not_connect(connected: list[Any], host: str) -> None:
    client = JsonRpcClient(f"http://{host}/latest", guarded=True)
    with pytest.raises(SpecialAddress):
        client.call("eth_chainId")
    assert connected == []


def test_the_address_that_a_name_resolves_to_counts(
    connected: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 80))]
    monkeypatch.setattr(special_addresses.socket, "getaddrinfo", lambda *_, **__: found)
    client = JsonRpcClient("http://node.example", guarded=True)
    with pytest.raises(SpecialAddress):
        client.call("eth_chainId")
    assert connected == []


def test_a_reset_to_the_metadata_service_is_refused(connected: list[Any]) -> None:
    node = dev_node()
    with pytest.raises((ValueError, FastevmError), match="link-local"):
        node.development.reset.to_fork("http://169.254.169.254/latest/meta-data")
    assert connected == []


def test_secret_headers_stay_with_the_operators_urls() -> None:
    options = ForkOptions(urls=("http://a.example",), headers={"Authorization": KEY})
    assert options.for_request("http://a.example").headers == {"Authorization": KEY}
    assert not options.for_request("http://a.example").guarded
    foreign = options.for_request("http://b.example")
    assert foreign.headers == {}
    assert foreign.guarded


async def _forbidden(_: web.Request) -> web.Response:
    return web.Response(status=403)


async def test_a_feed_that_refuses_the_handshake_leaves_no_key_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = web.Application()
    app.router.add_get("/{key}", _forbidden)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    caplog.set_level(logging.INFO)
    node = dev_node(mining=Mining.NEVER)
    node.follow(f"http://127.0.0.1:{port}/{KEY}", f"ws://127.0.0.1:{port}/{KEY}", poll_ms=30)
    await node.start()
    async with asyncio.timeout(MAX_WAIT):
        while "feed: " not in caplog.text or "upstream: " not in caplog.text:
            await asyncio.sleep(0.01)
    await node.stop()
    await runner.cleanup()
    assert KEY not in caplog.text
    assert "403" in caplog.text
