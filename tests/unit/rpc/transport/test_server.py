"""Tests listeners, the banner, and the start and stop of a server."""

from types import SimpleNamespace

import pytest

from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.transport.server import Listener, Server, banner, client_version, parse_listener
from tests.unit.rpc.fakes import FakeNode, FakeSimulator, chain_of

A = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")
KEY = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
PRECONF, GETH = DIALECTS["preconf"], DIALECTS["geth"]


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("geth@0.0.0.0:9000", Listener(GETH, "0.0.0.0", 9000)),
        ("127.0.0.1:1", Listener(PRECONF, "127.0.0.1", 1)),
        ("localhost", Listener(PRECONF, "localhost", 8545)),
        (":0", Listener(PRECONF, "127.0.0.1", 0)),
        ("geth@[::1]:8546", Listener(GETH, "::1", 8546)),
        ("geth@[::1]", Listener(GETH, "::1", 8545)),
        ("geth/preconfirmed@:1", Listener(GETH.with_receipts("preconfirmed"), "127.0.0.1", 1)),
        ("preconf/canonical@h:2", Listener(PRECONF.with_receipts("canonical"), "h", 2)),
        ("geth/canonical@h:2", Listener(GETH, "h", 2)),
    ],
)
def test_a_listener_is_parsed(text: str, listener: Listener) -> None:
    assert parse_listener(text) == listener


@pytest.mark.parametrize("text", ["x@h:1", "h:port", "h:", "h:65536", "h:-1", "h:²", "geth/x@h:1"])
def test_a_bad_listener_says_what_is_wrong(text: str) -> None:
    with pytest.raises(ValueError, match=r"unknown dialect|invalid port|unknown receipts"):
        parse_listener(text)


def test_the_version_names_product_platform_and_python() -> None:
    name, version, platform, python = client_version().split("/")
    assert name == "fastevm"
    assert version.startswith("v")
    assert "-" in platform
    assert python.startswith("python3")


async def test_the_banner_has_what_scripts_look_for() -> None:
    chain = chain_of(2, {A: {"balance": 10**22}})
    account = SimpleNamespace(address=A, private_key=KEY)
    node = FakeNode(chain, accounts=(account,))
    server = Server(node, FakeSimulator(), [Listener(PRECONF, port=0)], threads=1)
    await server.start()
    text = banner(server)
    await server.stop()
    assert "(0) 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 (10000.000000 ETH)" in text
    assert "(0) 0x" + KEY.hex() in text
    assert "Chain\n==================\nChain ID:   3503995874084926\nHardfork:   " in text
    assert f"Listening on {server.urls[0].removeprefix('http://')} (preconf)" in text
    assert "curl -s -H 'Content-Type: application/json' -d '{" in text


async def test_a_taken_port_is_an_error_and_leaves_nothing_open() -> None:
    node = FakeNode(chain_of(1), accounts=())
    first = Server(node, FakeSimulator(), [Listener(PRECONF, port=0)], threads=1)
    await first.start()
    port = int(first.urls[0].rsplit(":", 1)[1])
    second = Server(
        node, FakeSimulator(), [Listener(GETH, port=0), Listener(PRECONF, port=port)], threads=1
    )
    with pytest.raises(OSError, match=r"address already in use; choose another with --port"):
        await second.start()
    await first.stop()
    third = Server(node, FakeSimulator(), [Listener(PRECONF, port=port)], threads=1)
    await third.start()
    await third.stop()
