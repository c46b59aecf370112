"""Compares the shapes of anvil's and fastevm's results, method by method.

``python -m tests.ecosystem.development.shapes [--all]`` prints the differences that
``shape_differences.txt`` does not explain (with ``--all`` every difference), and explanations that
explain nothing. Exit status 1 if it printed something.

A shape is a set of paths with the kind of value at each path: quantity, word of 32 bytes, address,
other bytes, boolean, null, or an error with its code. Values are not compared.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from eth_account import Account
from eth_utils import to_checksum_address

from fastevm.node.dev_accounts import dev_accounts
from fastevm.payments.contracts import artifact
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import RpcRefusal
from tests.max_wait import MAX_WAIT

from .method_calls import CHANGES, LAST, READS, Call
from .nodes import BASELINE, NODES, OURS, running

EXPLAINED: Final = Path(__file__).parent / "shape_differences.txt"
NOBODY: Final = "0x00000000000000000000000000000000000000b0"
WORD: Final = "0x" + "77" * 32
# Increments slot 0, logs the new value with topic 7, calls NOBODY, and returns the new value.
COUNTER: Final = "5f54600101805f555f52600760205fa15f5f5f5f5f60b05af15060205ff3"
REVERTER: Final = "60015f5260205ffd"  # reverts with the word 1
KINDS: Final = {42: "address", 66: "word"}  # length of the hex text -> kind
# members whose bytes may have any length
BYTES: Final = ("data", "input", "output", "extraData", "returnData", "forkId")
# One in 256 values of r or s begins with a zero byte, which a quantity omits.
SIGNED: Final = (".r", ".s")
QUANTITY: Final = re.compile("0x(0|[1-9a-f][0-9a-f]{0,31})")
# Parts of member names that differ from run to run.
VARYING: Final = re.compile("0x[0-9a-fA-F]{40,}|[0-9]+|0x[0-9a-fA-F]{1,8}")

Shape = dict[str, set[str]]


def initcode(runtime: str) -> str:
    """Returns init code that creates a contract with the runtime code."""
    size = f"{len(runtime) // 2:02x}"
    return f"0x60{size}600a5f3960{size}5ff3{runtime}"


def prepare(node: JsonRpcClient) -> dict[str, Any]:
    """Makes contracts, calls, logs and a failed transaction on a node.

    Returns name -> value, for the ``$names`` in parameters.
    """
    owner, *_ = node.call("eth_accounts")

    def sent(**members: Any) -> dict[str, Any]:
        found = node.call("eth_sendTransaction", {"from": owner, "gas": "0x2dc6c0"} | members)
        while (receipt := node.call("eth_getTransactionReceipt", found)) is None:
            pass
        return dict(receipt)

    token = artifact("Token").initcode("Dollar", "USD", 6, owner)
    counter = sent(data=initcode(COUNTER))
    reverter = sent(data=initcode(REVERTER))["contractAddress"]
    values = {
        "owner": owner, "nobody": NOBODY, "word": WORD, "counter": counter["contractAddress"],
        "creation": counter["transactionHash"], "reverter": reverter,
        "token": sent(data="0x" + token.hex())["contractAddress"],
        "failure": sent(to=reverter)["transactionHash"],
        "payment": sent(to=NOBODY, value="0x1")["transactionHash"],
    }  # fmt: skip
    call = sent(to=values["counter"])
    proof = node.call("eth_getProof", values["counter"], [], "latest")
    latest = node.call("eth_getBlockByNumber", "latest", False)
    return values | {
        "call": call["transactionHash"], "block": call["blockHash"], "codehash": proof["codeHash"],
        "number": call["blockNumber"], "height": int(call["blockNumber"], 16),
        "later": hex(int(latest["timestamp"], 16) + 1_000),
        "nonce": hex(int(call["blockNumber"], 16)), "raw": signed(node),
        "state": node.call("anvil_dumpState"),
        "blockFilter": node.call("eth_newBlockFilter"),
        "logFilter": node.call("eth_newFilter", {"address": values["counter"], "fromBlock": "0x0"}),
    }  # fmt: skip


def signed(node: JsonRpcClient) -> str:
    """Returns a signed payment of the second account without sending it."""
    payer = Account.from_key(dev_accounts(2)[1].private_key)
    members = {
        "to": to_checksum_address(NOBODY),
        "value": 1,
        "gas": 21_000,
        "nonce": 0,
        "gasPrice": 2 * 10**9,
    }
    chain = int(node.call("eth_chainId"), 16)
    return "0x" + payer.sign_transaction(members | {"chainId": chain}).raw_transaction.hex()


def filled(given: Any, values: Mapping[str, Any]) -> Any:
    """Returns the parameters with values in place of ``$names``."""
    if isinstance(given, str) and given.startswith("$"):
        return values[given[1:]]
    if isinstance(given, list):
        return [filled(item, values) for item in given]
    if isinstance(given, dict):
        return {filled(key, values): filled(item, values) for key, item in given.items()}
    return given


def kind(value: Any, path: str) -> str:
    """Returns the kind of a value that is neither a list nor an object."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if not isinstance(value, str):
        return "number"
    if not value.startswith("0x"):
        return "text"
    if path.endswith(BYTES):
        return "bytes"
    if path.endswith(SIGNED) and value[2:3] != "0":
        return "quantity"
    if found := KINDS.get(len(value)):
        return found
    return "quantity" if QUANTITY.fullmatch(value) else "bytes"


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yields the path and the kind of every value in a result."""
    if isinstance(value, dict):
        if not value:
            yield path, "{}"
        for key, item in value.items():
            yield from leaves(item, f"{path}.{'*' if VARYING.fullmatch(key) else key}")
    elif isinstance(value, list):
        if not value:
            yield path, "[]"
        for item in value:
            yield from leaves(item, f"{path}[]")
    else:
        yield path, kind(value, path)


def shape(node: JsonRpcClient, method: str, params: list[Any]) -> Shape:
    """Returns the shape of a result, or the code of an error."""
    try:
        answer = node.call(method, *params)
    except RpcRefusal as refusal:
        return {"": {f"error {refusal.code}"}}
    found: Shape = {}
    for path, what in leaves(answer):
        found.setdefault(path, set()).add(what)
    return found


def title(call: Call) -> str:
    """Returns a call's name for the output: the method, and the tracer if there is one."""
    method, params = call
    tracer = params and isinstance(params[-1], dict) and params[-1].get("tracer")
    return f"{method}:{tracer}" if tracer else method


def wait_for_empty_pool(node: JsonRpcClient) -> None:
    """Waits until all sent transactions are mined and removed from the pool.

    anvil removes a transaction from its pool only after it has returned the receipt. Until then it
    rejects the transaction if it is sent again, even after a revert to a snapshot.
    """
    end = time.monotonic() + MAX_WAIT
    while any(int(count, 16) for count in node.call("txpool_status").values()):
        if time.monotonic() > end:
            raise TimeoutError("the pool keeps transactions that no block takes")
        time.sleep(0.01)


def shapes(name: str) -> list[tuple[str, Shape]]:
    """Runs all calls on a node of this name. Returns the title and shape of each result."""
    with running(NODES[name]()) as process:
        node = JsonRpcClient(process.url, timeout=MAX_WAIT)
        values = prepare(node)

        def shown(call: Call) -> tuple[str, Shape]:
            return title(call), shape(node, call[0], filled(call[1], values))

        found = [shown(call) for call in READS]
        for call in CHANGES:
            mark = node.call("evm_snapshot")
            found.append(shown(call))
            wait_for_empty_pool(node)
            node.call("evm_revert", mark)
        return [*found, *(shown(call) for call in LAST)]


def differences() -> list[str]:
    """Returns a line for each path at which anvil's and fastevm's shapes differ."""
    lines = []
    for (name, theirs), (_, ours) in zip(shapes(BASELINE), shapes(OURS), strict=True):
        for path in sorted(theirs.keys() | ours.keys()):
            kinds = [",".join(sorted(item.get(path, {"nothing"}))) for item in (theirs, ours)]
            if kinds[0] != kinds[1]:
                lines.append(f"{name} {path or '.'} {kinds[0]} -> {kinds[1]}")
    return list(dict.fromkeys(lines))


def explanations() -> list[str]:
    """Returns the patterns of accepted differences, without the reasons that the file gives."""
    lines = [line for line in EXPLAINED.read_text().splitlines() if line and line[0] != "#"]
    return [line.split(" | ")[0].strip() for line in lines]


def surprises(every: bool = False) -> list[str]:
    """Returns differences without an explanation, and explanations that explain nothing.

    ``every``: returns all differences.
    """
    found, patterns = differences(), explanations()
    new = [
        line
        for line in found
        if every or not any(fnmatchcase(line, pattern) for pattern in patterns)
    ]
    idle = [
        pattern for pattern in patterns if not any(fnmatchcase(line, pattern) for line in found)
    ]
    return new + [f"no difference needs: {item}" for item in idle]


def main() -> int:
    """Compares both nodes and prints the differences. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.ecosystem.development.shapes")
    parser.add_argument("--all", action="store_true", help="explained differences too")
    found = surprises(parser.parse_args().all)
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
