"""Tests that deeply nested JSON is rejected, even if a package has raised the recursion limit."""

import gzip
import subprocess
import sys

import pytest

from fastevm.node.saved_state import read_state
from fastevm.rpc_client.large_json import DEEPEST, decode, is_too_deep

DEPTH = 60_000  # deeper than the C stack of a thread allows
PROGRAM = """
import asyncio, sys
sys.setrecursionlimit(100_000)  # as py_ecc does
from typing import Any
from fastevm.bench.node.launch import ServerThread
from fastevm.node import dev_node
from fastevm.rpc_client.blocking import JsonRpcClient
import urllib.request

def post(url, body):
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=60).read()

deep = b"[" * DEPTH + b"]" * DEPTH
with ServerThread(dev_node(), development=True) as server:
    url = server.url("geth")
    for params in (deep, b"[" + deep + b"]", b'{"a":' * DEPTH + b"1" + b"}" * DEPTH):
        for method in (b"eth_call", b"eth_simulateV1", b"eth_chainId", b"none"):
            body = b'{"jsonrpc":"2.0","id":1,"method":"%b","params":%b}' % (method, params)
            assert b"parse error" in post(url, body).lower(), method
            post(url, b"[" + body + b"]")
    typed = b'{"jsonrpc":"2.0","id":1,"method":"eth_signTypedData_v4","params":["0x%b","%b"]}'
    print(post(url, typed % (b"f3" * 20, deep))[:200])
    assert b"0x7a69" in post(url, b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}')
print("alive")
"""


def test_a_node_refuses_it_and_goes_on() -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"DEPTH = {DEPTH}\n{PROGRAM}"], capture_output=True, text=True
    )
    assert done.stdout.endswith("alive\n"), (done.returncode, done.stderr[-2000:])


@pytest.mark.parametrize(
    ("text", "deep"),
    [
        (b"[" * DEEPEST + b"]" * DEEPEST, False),
        (b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), True),
        (b'{"a":' * (DEEPEST + 1), True),
        (b'["' + b"[" * 2 * DEEPEST + b'"]', False),
        (b'["\\"' + b"[" * 2 * DEEPEST + b'"]', False),
        (b"[]," * DEEPEST, False),
        ("[" * (DEEPEST + 1), True),
    ],
)
def test_the_depth_counts_open_brackets_outside_of_text(text: bytes | str, deep: bool) -> None:
    assert is_too_deep(text) is deep


def test_an_answer_of_another_node_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 4096 levels"):
        decode(b"[" * DEPTH + b"]" * DEPTH)


def test_a_state_file_is_refused() -> None:
    with pytest.raises(ValueError, match="not a state"):
        read_state(gzip.compress(b"[" * DEPTH + b"]" * DEPTH))


def test_signing_typed_data_leaves_the_recursion_limit() -> None:
    pytest.importorskip("eth_account", reason="eth-account is not installed")
    program = (
        "import sys; from fastevm.rpc.methods import signing; before = sys.getrecursionlimit();"
        "signing._encoder(); assert sys.getrecursionlimit() == before"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
