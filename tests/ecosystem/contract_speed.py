"""Times contract calls with fastevm, with eth-abi on pyrevm, and with web3.py.

``python -m tests.ecosystem.contract_speed [CALLS [ROUNDS]]`` prints a table of CPU microseconds:
medians of rounds that alternate between the libraries. pyrevm is loaded from ``.venv-pyrevm``
(``make peers``), and eth-abi decodes its results. web3.py uses a node in this process.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from eth_abi import abi
from web3 import Web3

from fastevm import EVM, Contract
from fastevm.bench.programs.assembler import assemble
from fastevm.integrations.web3 import FastevmProvider, LocalNode
from tests.shared_data import ROOT

POOL: Final = "0x" + "C0" * 20
USER: Final = "0x" + "A1" * 20
OUTPUTS: Final = ("uint160", "int24", "uint16", "uint16", "uint16", "uint8", "bool")
VALUES: Final = (79228162514264337593543950336, 10, 1, 2, 3, 4, 1)
CODE: Final = assemble(
    " ".join(f"{value} {32 * at} MSTORE" for at, value in enumerate(VALUES)) + " 224 0 RETURN"
)
ABI: Final = [
    {
        "type": "function", "name": "slot0", "stateMutability": "view", "inputs": [],
        "outputs": [{"name": f"v{at}", "type": kind} for at, kind in enumerate(OUTPUTS)],
    },
    {
        "type": "function", "name": "transfer", "stateMutability": "nonpayable",
        "inputs": [{"name": "to", "type": "address"}, {"name": "amount", "type": "uint256"}],
        "outputs": [],
    },
]  # fmt: skip
Work = Callable[[], object]


def pyrevm_call() -> Callable[[bytes], bytes] | None:
    """Returns a function that calls the pool on pyrevm, or None if pyrevm is not installed."""
    sys.path += [str(path) for path in ROOT.glob(".venv-pyrevm/lib/python3*/site-packages")]
    try:
        pyrevm: Any = import_module("pyrevm")
    except ImportError:
        return None
    evm = pyrevm.EVM(spec_id="CANCUN", gas_limit=2**63)
    evm.insert_account_info(POOL, pyrevm.AccountInfo(code=CODE))
    return lambda data: bytes(evm.message_call(USER, POOL, data))


def works(node: LocalNode) -> dict[str, dict[str, Work]]:
    """Returns the rows of the table: row -> library -> function to time."""
    evm = EVM()
    evm.set_code(POOL, CODE)
    pool: Any = Contract(evm, ABI, POOL)
    node.request("anvil_setCode", [POOL, CODE])
    web3 = Web3(FastevmProvider(node))
    client = web3.eth.contract(address=Web3.to_checksum_address(POOL), abi=ABI)
    selector, head = pool.slot0.encode(), pool.transfer.encode(USER, 1)[:4]
    output = evm.call(POOL, selector).output
    user = Web3.to_checksum_address(USER)
    decode = pool.interface.functions["slot0"][0].decode
    assert tuple(pool.slot0())[:6] == VALUES[:6] == tuple(abi.decode(OUTPUTS, output))[:6]
    assert client.functions.slot0().call()[:6] == list(VALUES[:6])
    found: dict[str, dict[str, Work]] = {
        "call and decode slot0()": {
            "fastevm": lambda: pool.slot0(),
            "web3.py": lambda: client.functions.slot0().call(),
        },
        "decode its seven values": {
            "fastevm": lambda: decode(output),
            "eth-abi": lambda: abi.decode(OUTPUTS, output),
            "web3.py": lambda: web3.codec.decode(OUTPUTS, output),
        },
        "encode a transfer": {
            "fastevm": lambda: pool.transfer.encode(USER, 10**18),
            "eth-abi": lambda: head + abi.encode(("address", "uint256"), (USER, 10**18)),
            "web3.py": lambda: client.encode_abi("transfer", [user, 10**18]),
        },
        "call without decoding": {"fastevm": lambda: evm.call(POOL, selector)},
        'the same with trace="gas"': {"fastevm": lambda: evm.call(POOL, selector, trace="gas")},
    }
    call = pyrevm_call()
    if call is not None:
        found["call and decode slot0()"]["pyrevm"] = lambda: abi.decode(OUTPUTS, call(selector))
        found["call without decoding"]["pyrevm"] = lambda: call(selector)
    return found


def microseconds(work: Work, calls: int) -> float:
    """Returns the CPU microseconds of one call."""
    started = time.process_time()
    for _ in range(calls):
        work()
    return (time.process_time() - started) * 1e6 / calls


def main() -> None:
    """Measures all rows and prints the table."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.ecosystem.{Path(__file__).stem}")
    parser.add_argument("calls", nargs="?", type=int, default=20_000)
    parser.add_argument("rounds", nargs="?", type=int, default=5)
    arguments = parser.parse_args()
    names = ("fastevm", "eth-abi", "pyrevm", "web3.py")
    print(f"| CPU us | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    with LocalNode() as node:
        for row, sides in works(node).items():
            times: dict[str, list[float]] = {name: [] for name in sides}
            for _ in range(arguments.rounds):
                for name, work in sides.items():
                    count = arguments.calls // 20 if name == "web3.py" else arguments.calls
                    times[name].append(microseconds(work, max(1, count)))
            cells = [f"{statistics.median(times[n]):.2f}" if n in times else "" for n in names]
            print(f"| {row} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
