"""Runs calls, bundles and the messages of a block on pyrevm's fork of a node."""

import time
from importlib.metadata import version as installed
from typing import Any

import pyrevm
from protocol import data, number

Request = "dict[str, Any]"
FORKS: "dict[str, pyrevm.EVM]" = {}
NO_LIMIT = 2**64 - 1


def call(evm: pyrevm.EVM, message: "dict[str, str]") -> bytes:
    """Runs a message and returns its output, which is empty after an error."""
    try:
        found = evm.message_call(
            message["from"], message["to"], data(message["data"]), 0, number(message["gas"])
        )
    except RuntimeError:
        return b""
    return bytes(found)


def bundle(evm: pyrevm.EVM, messages: "list[dict[str, str]]") -> bytes:
    """Runs messages one after another, reverts them, and returns the last output."""
    snapshot = evm.snapshot()
    outputs = [call(evm, message) for message in messages]
    evm.revert(snapshot)
    return outputs[-1]


def answer(request: "dict[str, Any]") -> "dict[str, Any]":
    """Handles ``hello``, ``open`` (url, block), ``run`` (bundles) or ``keep`` (without revert)."""
    kind = request["do"]
    if kind == "hello":
        return {"version": installed("pyrevm")}
    start = time.perf_counter()
    if kind == "open":
        FORKS["now"] = pyrevm.EVM(
            fork_url=request["url"], fork_block=request["block"], gas_limit=NO_LIMIT
        )
        return {"seconds": time.perf_counter() - start}
    evm = FORKS["now"]
    if kind == "run":
        outputs = [bundle(evm, messages).hex() for messages in request["bundles"]]
    else:
        outputs = [call(evm, message).hex() for message in request["messages"]]
    return {"seconds": time.perf_counter() - start, "outputs": outputs}
