"""Tests the explorer's files over HTTP: access, headers and content."""

import gzip
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from fastevm.__main__ import main
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.explorer.files import FOLDER, page_files, policy
from fastevm.rpc.explorer.node_url import check_node_url
from fastevm.rpc.transport.access import Access
from fastevm.rpc.transport.server import Listener, Server
from tests.unit.rpc.fakes import FakeNode, FakeSimulator, chain_of

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PACKED_LIMIT = 80_000  # compressed bytes of all files, as a wheel contains them
ALL_ADDRESSES = "0.0.0.0"
# Code that could interpret foreign text as markup or a program.
DANGEROUS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc"
)
OUTSIDE = re.compile(r"(?:https?|wss?)://(?!www\.w3\.org/2000/svg)[\w.]+")

Make = Callable[..., Awaitable[str]]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Provides a function that starts a server with an access policy and returns its URL."""
    servers = []

    async def make(host: str = "127.0.0.1", **rules: Any) -> str:
        listener = Listener(DIALECTS["preconf"], host, 0, Access(**rules))
        server = Server(FakeNode(chain_of(3)), FakeSimulator(), [listener], threads=1)
        await server.start()
        servers.append(server)
        return server.urls[0].replace(ALL_ADDRESSES, "127.0.0.1")

    yield make
    for server in servers:
        await server.stop()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def page_is_served(http: aiohttp.ClientSession, url: str) -> bool:
    async with http.get(url, headers=BROWSER) as response:
        assert response.status == 200
        page = b"<!doctype html>" in await response.read()
    async with http.get(f"{url}/explorer/main.js") as response:
        assert response.status == (200 if page else 404)
    return page


async def test_a_browser_gets_the_page_under_strict_rules(
    make: Make, http: aiohttp.ClientSession
) -> None:
    url = await make()
    async with http.get(url, headers=BROWSER) as response:
        assert response.content_type == "text/html"
        rules = response.headers["Content-Security-Policy"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in response.headers
        text = await response.text()
    assert "default-src 'none'" in rules and "frame-ancestors 'none'" in rules
    assert "unsafe" not in rules and "*" not in rules
    for name in re.findall(r'(?:href|src)="(explorer/[^"]+)"', text):
        async with http.get(f"{url}/{name}") as response:
            assert response.status == 200, name


async def test_others_get_what_they_got_before(make: Make, http: aiohttp.ClientSession) -> None:
    url = await make()
    for accepted in ("*/*", "application/json", ""):
        async with http.get(url, headers={"Accept": accepted}) as response:
            assert (response.status, await response.read()) == (200, b"")
    async with http.ws_connect(url, headers=BROWSER) as socket:
        await socket.send_json({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"})
        assert (await socket.receive_json())["id"] == 1


@pytest.mark.parametrize(
    ("host", "rules", "served"),
    [
        ("127.0.0.1", {}, True),
        ("127.0.0.1", {"explorer": False}, False),
        ("127.0.0.1", {"namespaces": frozenset(("web3",))}, False),
        (ALL_ADDRESSES, {}, False),
        (ALL_ADDRESSES, {"explorer": True}, True),
    ],
)
async def test_the_page_is_there_on_loopback_or_when_asked_for(
    make: Make, http: aiohttp.ClientSession, host: str, rules: dict[str, Any], served: bool
) -> None:
    assert await page_is_served(http, await make(host, **rules)) is served


async def test_the_page_opens_nothing_to_others(make: Make, http: aiohttp.ClientSession) -> None:
    url = await make()
    for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        for path in ("/", "/explorer/main.js"):
            async with http.get(url + path, headers=BROWSER | headers) as response:
                assert response.status == 403


@pytest.mark.parametrize(
    "name", ["none.js", "..%2f__init__.py", "%2e%2e/files.py", "index.html/", ""]
)
async def test_there_are_no_other_files(make: Make, http: aiohttp.ClientSession, name: str) -> None:
    async with http.get(f"{await make()}/explorer/{name}") as response:
        assert response.status == 404


async def test_a_file_is_packed_and_sent_once(make: Make, http: aiohttp.ClientSession) -> None:
    url = f"{await make()}/explorer/style.css"
    async with http.get(url, headers={"Accept-Encoding": "gzip"}, auto_decompress=False) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(await answer.read()) == (FOLDER / "style.css").read_bytes()
        tag = answer.headers["ETag"]
    async with http.get(url, headers={"If-None-Match": tag}) as answer:
        assert (answer.status, await answer.read()) == (304, b"")


def test_the_files_are_small() -> None:
    assert sum(len(sent.packed) for sent in page_files().values()) < PACKED_LIMIT


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_a_file_loads_nothing_from_elsewhere_and_makes_no_markup(path: Any) -> None:
    text = path.read_text()
    assert not DANGEROUS.search(text)
    assert not OUTSIDE.search(text)


def test_a_page_for_another_node_calls_only_that() -> None:
    url = "https://node.example:8546/key?a=1&b=2"
    assert "connect-src https://node.example:8546 wss://node.example:8546;" in policy(url)
    assert (
        b'content="https://node.example:8546/key?a=1&amp;b=2"' in page_files(url)["index.html"].body
    )
    assert check_node_url(url) == url


@pytest.mark.parametrize(
    "text",
    [
        "", "node.example", "ws://node.example", "javascript:alert(1)", "http://", "file:///etc",
        "http://user:word@node.example", "http://a;script-src *", "http://a b", "http://é.example",
        "http://node.example:99999", "http://node.example:0", "http://[::1",
    ],
)  # fmt: skip
def test_a_url_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        check_node_url(text)


def test_an_address_that_is_taken_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = ["node", "--explorer-for", "http://127.0.0.1:8546", "--port", str(port)]
        assert main(arguments) == 1
    assert "fastevm node:" in capsys.readouterr().err


def test_a_wrong_url_is_refused_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["node", "--explorer-for", "node.example"])
    assert "expected http:// or https://" in capsys.readouterr().err
