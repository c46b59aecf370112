"""Tests that tests wait for `MAX_WAIT`, and have no other time limits.

A busy machine may stand still for many seconds. Limits below one second are allowed, because a test
may want to reach them. A longer limit would be a guess about the speed of the machine.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.max_wait import MAX_WAIT

from .sources import ROOT, files, shown

# Functions whose last positional argument is a time limit, and functions with a ``timeout``
# argument.
POSITIONAL = {"timeout", "wait_for", "wait", "join"}
NAMED = {
    "AsyncJsonRpcClient", "JsonRpcClient", "check_output", "communicate", "create_connection",
    "receive", "receive_json", "result", "run", "urlopen", "wait_for_transaction_receipt",
}  # fmt: skip
LIMITS = {"deadline", "end", "ends", "limit", "until"}
# Exempt are programs that people run, or that run without this package.
OTHERS = (
    "tests/ecosystem/", "tests/fuzz/", "tests/packaging/", "tests/faults/all_attacks.py",
    "tests/faults/hostile_clients.py", "tests/payments/x402/honest/",
)  # fmt: skip
WANTED = {
    # The node disconnects a slow sender after 2 s. Sending everything would take 4 s.
    ("tests/unit/rpc/transport/test_slow_clients.py", "timeout", 2.5),
    # The payment never arrives.
    ("tests/payments/test_secrets.py", "wait", 2),
    # The handler runs longer than the payment is reserved.
    ("tests/payments/x402/test_redelivery.py", "end", 3),
}


def seconds(value: ast.expr | None) -> float:
    """Returns the seconds of a literal, or 0 for any other expression."""
    is_number = isinstance(value, ast.Constant) and isinstance(value.value, int | float)
    return float(value.value) if is_number else 0.0  # type: ignore[union-attr]


def limits(tree: ast.Module) -> Iterator[tuple[int, str, float]]:
    """Yields line, name and seconds of each literal time limit."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else ""
            name = function.id if isinstance(function, ast.Name) else name
            if name in POSITIONAL and node.args:
                yield node.lineno, name, seconds(node.args[-1])
            if name in NAMED:
                for keyword in node.keywords:
                    if keyword.arg == "timeout":
                        yield node.lineno, name, seconds(keyword.value)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id in LIMITS and "time" in ast.dump(node):
                yield node.lineno, target.id, seconds(node.value.right)


def found() -> list[str]:
    return [
        f"{shown(path)}:{line}: {name} of {value:g} seconds"
        for path in files(".py", under=("tests",))
        if not shown(path).startswith(OTHERS) and "node_modules" not in path.parts
        for line, name, value in limits(ast.parse(path.read_text()))
        if 1 <= value < MAX_WAIT and (shown(path), name, value) not in WANTED
    ]


def test_no_test_guesses_how_fast_the_machine_is() -> None:
    assert not "\n".join(found())


@pytest.mark.parametrize(
    "text",
    [
        "asyncio.timeout(10)", "await asyncio.wait_for(run(), 5.0)", "event.wait(30)",
        "subprocess.run(words, timeout=60)", "deadline = time.monotonic() + 10",
    ],
)  # fmt: skip
def test_a_guess_is_found(text: str) -> None:
    ((_, _, value),) = limits(ast.parse(text))
    assert value >= 1
    assert (ROOT / "tests/max_wait.py").is_file()
