"""Tests access to a listener: hosts, origins, namespaces and keys."""

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest

from fastevm.rpc.methods import METHODS
from fastevm.rpc.transport.access import (
    Access,
    Keys,
    is_signed,
    known_namespaces,
    lower,
    parse_namespaces,
    read_secret,
    read_token,
)

SECRET = bytes(range(32))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", "192.0.2.7", "192.0.2.7"), ("10.0.0.1", "1.1.1.1, 192.0.2.7 ", "192.0.2.7"),
        ("::1", "2001:DB8::1", "2001:db8::/64"), ("10.0.0.1", "unknown", "10.0.0.1"),
        ("10.0.0.1", "192.0.2.7,", "10.0.0.1"), ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.2", "192.0.2.7", "10.0.0.2"), ("2001:db8::2:3:4:5", None, "2001:db8::/64"),
        ("::1", None, "::1"), ("::ffff:192.0.2.7", None, "192.0.2.7"),
        ("fe80::1%eth0", None, "fe80::/64"), ("", None, ""),
    ],
)  # fmt: skip
def test_a_proxy_is_believed_the_last_address(
    peer: str, forwarded: str | None, client: str
) -> None:
    access = Access(proxies=frozenset(("10.0.0.1", "::1")))
    assert access.client(peer, forwarded) == client


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        ("localhost", True), ("LOCALHOST:8545", True), ("127.0.0.1:8545", True), ("[::1]:1", True),
        ("10.1.2.3", True), ("node.example", True), ("node.example:443", True), ("bound", True),
        ("", True), ("evil.example", False), ("evil.example:8545", False),
        ("localhost.evil.example", False), ("localhost@evil.example", False), ("localhost/", False),
        ("node.example,evil.example", False), ("localhost:port", False), (":8545", False),
    ],
)  # fmt: skip
def test_hosts(header: str, allowed: bool) -> None:
    access = Access(hosts=lower(["Node.Example"]), bound="bound")
    assert access.allows_host(header) is allowed
    assert Access(hosts=frozenset("*")).allows_host(header)


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost:3000", True), ("http://127.0.0.1", True), ("https://[::1]:5", True),
        ("chrome-extension://abcdef", True), ("https://app.example", True),
        ("https://app.example:444", False), ("http://app.example", False), ("null", False),
        ("", False),
        ("http://localhost.evil.example", False), ("http://10.0.0.1", False), ("file://", False),
        ("http://[", False), ("Titanoboa", True), ("app.example:444", False), ("Null", False),
    ],
)  # fmt: skip
def test_origins(origin: str, allowed: bool) -> None:
    access = Access(origins=lower(["https://App.example/"]))
    assert access.allows_origin(origin) is allowed
    assert Access(origins=frozenset("*")).allows_origin(origin)


def test_loopback_serves_everything_and_other_addresses_what_is_said() -> None:
    everything = known_namespaces()
    assert {"anvil", "debug", "eth", "personal", "testing", "txpool"} <= everything
    for host in ("127.0.0.1", "::1", "localhost"):
        assert Access().served(host) == everything
    for host in ("0.0.0.0", "::", "10.0.0.1", "node.example"):
        assert Access().served(host) == {"eth", "net", "web3", "rpc"}
    assert Access(namespaces=frozenset(("debug",))).served("127.0.0.1") == {"debug", "rpc"}


def test_what_signs_is_no_part_of_eth() -> None:
    for name in ("eth_sendTransaction", "eth_sign", "eth_signTransaction", "personal_sign"):
        assert name in METHODS
    assert parse_namespaces("eth, debug") == {"eth", "debug"}
    assert parse_namespaces("*") == known_namespaces()
    with pytest.raises(ValueError, match="no namespace 'dbug': there are anvil, "):
        parse_namespaces("eth,dbug")


def signed(claims: Any, *, alg: str = "HS256", secret: bytes = SECRET) -> str:
    def part(value: bytes) -> bytes:
        return base64.urlsafe_b64encode(value).rstrip(b"=")

    text = (
        part(json.dumps({"alg": alg, "typ": "JWT"}).encode())
        + b"."
        + part(json.dumps(claims).encode())
    )
    return (text + b"." + part(hmac.new(secret, text, hashlib.sha256).digest())).decode()


@pytest.mark.parametrize(
    ("token", "right"),
    [
        (signed({"iat": 1000}), True), (signed({"iat": 1060}), True),
        (signed({"iat": 940.5}), True),
        (signed({"iat": 1000, "exp": 1001}), True), (signed({"iat": 1000, "exp": 999}), False),
        (signed({"iat": 1061}), False), (signed({"iat": 939}), False), (signed({}), False),
        (signed({"iat": True}), False), (signed({"iat": "1000"}), False), (signed([1000]), False),
        (signed({"iat": 1000}, alg="none"), False), (signed({"iat": 1000}, alg="HS512"), False),
        (signed({"iat": 1000}, secret=bytes(32)), False), ("", False), ("a.b", False),
        ("\xe9.a.b", False), (signed({"iat": 1000})[:-1], False),
        (signed({"iat": 1000}) + "AAAA", False),
        (signed({"iat": float("nan")}), False), (signed({"iat": float("inf")}), False),
        (signed({"iat": 10**400}), False), (signed({"iat": 1000, "exp": 10**400}), False),
    ],
)  # fmt: skip
def test_tokens_of_the_engine_api(token: str, right: bool) -> None:
    assert is_signed(token, SECRET, 1000.0) is right


def test_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1000.0)
    keys = Keys("sixteen-characters", SECRET)
    assert keys.open("Bearer sixteen-characters") and keys.open("bearer  sixteen-characters")
    assert keys.open("Bearer " + signed({"iat": 1000}))
    for header in (None, "", "Bearer", "Bearer x", "Basic sixteen-characters", "sixteen-characters",
                   "Bearer sixteen-characters x", "Bearer \xe9", "Bearer \udcff",
                   "Bearer a.b.\udcff"):  # fmt: skip
        assert not keys.open(header)
    assert not Keys("sixteen-characters").open("Bearer " + signed({"iat": 1000}))


def test_files_of_keys(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sixteen-characters\n")
    assert read_token(file) == "sixteen-characters"
    file.write_text("0x" + SECRET.hex() + "\n")
    assert read_secret(file) == SECRET
    for text in ("", "short", "two words of enough characters"):
        file.write_text(text)
        with pytest.raises(ValueError, match="expected one word"):
            read_token(file)
        with pytest.raises(ValueError, match="expected 32 bytes"):
            read_secret(file)
