"""Tests a node behind reverse proxies: calls, WebSockets, client addresses, limits, metrics."""

import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fastevm.bench.node.launch import ServerThread
from fastevm.core.primitives.replace import replace
from fastevm.node import dev_node
from fastevm.rpc.transport.access import PUBLIC_NAMESPACES, Access
from tests.max_wait import MAX_WAIT
from tests.shared_data import ROOT

NAME = "node.example"
CLIENT = "127.0.0.2"
FOLDER = ROOT / "docs/public"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def write_certificate(folder: Path) -> None:
    """Writes a self-signed certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(pem))
    (folder / "key.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def nginx(folder: Path, node: int, port: int) -> tuple[list[str], str]:
    """Returns the command that runs nginx, and the URL that it serves."""
    write_certificate(folder)
    text = (FOLDER / "nginx.conf").read_text()
    text = text.replace("127.0.0.1:8545", f"127.0.0.1:{node}").replace(
        "listen 443", f"listen {port}"
    )
    text = text.replace("/etc/fastevm/tls", str(folder))
    (folder / "nginx.conf").write_text(f"pid {folder}/pid; daemon off;\n{text}")
    logs = ["-p", str(folder), "-e", str(folder / "errors"), "-g", f"error_log {folder}/errors;"]
    return ["nginx", *logs, "-c", str(folder / "nginx.conf")], f"https://127.0.0.1:{port}"


def caddy(folder: Path, node: int, port: int) -> tuple[list[str], str]:
    """Returns the command that runs Caddy, and the URL that it serves without TLS."""
    text = (FOLDER / "Caddyfile").read_text()
    text = text.replace("127.0.0.1:8545", f"127.0.0.1:{node}").replace(
        NAME, f"http://{NAME}:{port}"
    )
    (folder / "Caddyfile").write_text("{\n\tadmin off\n}\n" + text)
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    return command, f"http://127.0.0.1:{port}"


@pytest.fixture(params=[nginx, caddy], ids=["nginx", "caddy"])
def proxy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, ServerThread]]:
    """Provides the URL of a proxy in front of a development node, and the node's server."""
    name = request.param.__name__
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    server = ServerThread(dev_node())
    access = Access(
        hosts=frozenset((NAME,)),
        namespaces=PUBLIC_NAMESPACES,
        proxies=frozenset(("127.0.0.1",)),
    )
    server.server.listeners = tuple(
        replace(listener, access=access) for listener in server.server.listeners
    )
    with server:
        node, port = int(server.url("geth").rpartition(":")[2]), free_port()
        command, url = request.param(tmp_path, node, port)
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
            ends = time.monotonic() + MAX_WAIT
            while time.monotonic() < ends and process.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            else:
                process.kill()
                pytest.fail(f"{name} did not listen within {MAX_WAIT:g} s, or ended")
            yield url, server
            process.terminate()


async def test_a_proxy_passes_on_what_it_should(proxy: tuple[str, ServerThread]) -> None:
    url, server = proxy
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    connector = aiohttp.TCPConnector(ssl=trust, local_addr=(CLIENT, 0))
    host = {"Host": NAME}
    async with aiohttp.ClientSession(connector=connector) as http:
        async with http.post(url, json=CALL, headers=host) as response:
            assert (await response.json())["result"] == hex(31337)
        async with http.ws_connect(url, headers=host) as socket:
            await socket.send_json(CALL)
            assert (await socket.receive_json())["result"] == hex(31337)
        async with http.get(url + "/metrics", headers=host) as response:
            assert response.status == 404
        async with http.get(url + "/healthz", headers=host) as response:
            assert response.status == 200
        async with http.post(url, data=b" " * 6_000_000, headers=host) as response:
            assert response.status == 413
        wanted = CALL | {"method": "eth_newFilter", "params": [{}]}
        forged = host | {"X-Forwarded-For": "192.0.2.1"}
        for headers in (host, forged):
            async with http.post(url, json=wanted, headers=headers) as response:
                assert "result" in await response.json()
    assert set(server.server.filters._counts) == {CLIENT}
