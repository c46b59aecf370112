"""Runs the programs in MERCHANT_FIRST_HOUR.md in order, and checks their output."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from fastevm.bench.node.launch import NodeProcess
from fastevm.payments import new_key, open_store
from fastevm.payments.store import every_order
from tests.shared_data import ROOT

PAGE = (ROOT / "examples/MERCHANT_FIRST_HOUR.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.S)
NODE = "http://127.0.0.1:8545"
LIMIT = 60  # time limit in seconds of one program


COMMANDS = re.findall(r"^fastevm pay (list|doctor|show .*|refund .*|export .*)$", PAGE, re.M)
EXPORTS = dict(re.findall(r"^export (\w+)=([^$\s]+)", PAGE, re.M))
PATHS = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "FASTEVM_PAYMENTS_KEY": new_key()}


def pay(command: str, folder: Path, node: str) -> str:
    """Runs a ``fastevm pay`` command of the page. Returns its output."""
    done = subprocess.run(
        [sys.executable, "-m", "fastevm", "pay", *shlex.split(command)], cwd=folder,
        capture_output=True, text=True, timeout=LIMIT,
        env={**PATHS, **EXPORTS, "FASTEVM_PAYMENTS_NODE": node},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def recipients_in(path: Path) -> set[str]:
    """Returns the recipients of the payments of all shops in a store."""
    store = open_store(f"sqlite:///{path}", create=False)
    try:
        shops = [store.scoped(name) for name in store.shops()]
        return {
            order.authorization.terms.recipient for shop in shops for order in every_order(shop)
        }
    finally:
        store.close()


def test_every_program_and_command_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fastevm", "node", "--chain-id", "84532", "--port", "0"]
    node = NodeProcess([*command, "--block-time", "500ms", "--slice-interval", "100"])
    node.start()
    try:
        printed = ""
        # Runs everything twice, as readers may.
        for number, program in enumerate((*PROGRAMS, *PROGRAMS)):
            file = tmp_path / f"program_{number}.py"
            text = (
                program.replace(NODE, node.url)
                .replace(":8402", ":18402")
                .replace("8402)", "18402)")
            )
            file.write_text(text)
            done = subprocess.run(
                [sys.executable, file.name], cwd=tmp_path, capture_output=True, text=True,
                timeout=LIMIT, env=PATHS,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            printed += done.stdout
        (order_id, _) = re.findall(r"^(order-\w+) captured", printed, re.M)
        assert [command.split()[0] for command in COMMANDS] == [
            "list", "doctor", "show", "refund", "export",
        ]  # fmt: skip
        output = [pay(item.replace("ORDER", order_id), tmp_path, node.url) for item in COMMANDS]
    finally:
        node.stop()
    assert f"{order_id}  paid" in output[0] and "FAIL" not in output[1]
    assert f"{order_id}/refund/late delivery of 1.00 USDC is final" in output[3]
    assert output[4].count(",USDC,0.01,") == 2, "the sales of the paywall"
    recipients = [recipients_in(tmp_path / name) for name in ("orders.db", "till.db")]
    assert recipients[0] and recipients[1] and recipients[0].isdisjoint(recipients[1])
    reasons = re.findall(r'refund_id="(.+?)"', PAGE) + re.findall(r"pay refund .*--id '(.+)'", PAGE)
    assert len(reasons) == len(set(reasons)) == 2, "each refund of the page has its own reason"
    assert printed.count("captured 12.50 USDC refunded 2.50 USDC") == 2
    assert printed.count('200 {"weather": "sunny"}') == 2


def test_the_tutorial_runs_twice(tmp_path: Path) -> None:
    page = (ROOT / "docs/tutorials/take-a-payment.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.S)
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True,
            timeout=LIMIT, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "captured 12.50 USDC" in done.stdout
