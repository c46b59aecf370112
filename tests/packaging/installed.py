"""Tests an installed fastevm from outside the repository: ``python installed.py``.

Tests the machine, a node inside the process, the rules of a fork, bundles on threads, the command
line, and the import time.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

LONGEST_IMPORT = 0.05  # seconds of CPU time
TRIES = 5
MEASURED = """
import time
begun = time.process_time()
import fastevm
print(time.process_time() - begun)
"""
COUNTER = "0x5f54600101805f555f5260205ff3"


def check_import() -> None:
    """Checks that the import is fast and loads the installed package, not the repository."""
    command = [sys.executable, "-I", "-c", MEASURED]
    found = min(float(subprocess.check_output(command, text=True)) for _ in range(TRIES))
    if found > LONGEST_IMPORT:
        sys.exit(f"import fastevm takes {found * 1000:.0f} ms of CPU time")


def check_machine() -> None:
    """Checks that code runs, and that hashes, signatures and curves of other libraries work."""
    from fastevm import EVM, Layer, keccak256, simulate_many

    evm = EVM("osaka")
    payer, counter = "0x" + "a1" * 20, "0x" + "c0" * 20
    evm.set_account(payer, balance=10**18)
    evm.set_account(counter, code=COUNTER)
    assert evm.transact(counter, sender=payer).success
    assert evm.storage(counter, 0) == 1
    for number in range(1, 18):
        evm.call(number.to_bytes(20, "big"), b"\0" * 160)
    assert keccak256(b"").hex().startswith("c5d24601")
    state = Layer.of({b"\xa1" * 20: {"balance": 10**18}})
    call = {"from": payer, "to": "0x" + "b0" * 20, "value": "0x1"}
    results = list(simulate_many(state, [[call]] * 100))
    assert all(result.success for result in results)


def check_node() -> None:
    """Checks that a node inside the process answers, signs, mines, and recovers senders."""
    from fastevm.integrations.local_node import LocalNode

    with LocalNode() as node:
        payer, payee = node.accounts[:2]
        tx = {"from": payer, "to": payee, "value": "0x1"}
        sent = node.request("eth_sendTransaction", [tx])
        assert node.request("eth_getTransactionReceipt", [sent])["status"] == "0x1"


def check_command() -> None:
    """Checks that the command line is installed."""
    command = shutil.which("fastevm", path=str(Path(sys.executable).parent)) or "fastevm"
    assert subprocess.check_output([command, "--version"], text=True).startswith("fastevm ")


def main() -> None:
    """Runs all checks."""
    begun = time.monotonic()
    import fastevm

    assert "site-packages" in fastevm.__file__, fastevm.__file__
    check_import()
    check_machine()
    check_node()
    check_command()
    print(f"fastevm {fastevm.__version__} works as installed ({time.monotonic() - begun:.1f} s)")


if __name__ == "__main__":
    main()
