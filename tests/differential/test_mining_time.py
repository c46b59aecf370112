"""Sends random requests to ``fastevm dev`` and anvil, and compares timestamps and mining modes."""

import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastevm.bench.node.compared import anvil_binary
from fastevm.bench.node.launch import NodeProcess
from tests.max_wait import MAX_WAIT

# Seconds by which timestamps may differ. The nodes get requests one after the other, and both round
# down.
TOLERANCE = 4
SEQUENCES, STEPS = 12, 25
SENDER = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
MODES = ("evm_setAutomine", "evm_setIntervalMining")
Pair = tuple[NodeProcess, NodeProcess]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    if shutil.which("npm") is None:
        pytest.skip("anvil comes with npm, which is not installed")
    ours = NodeProcess([sys.executable, "-m", "fastevm", "dev", "-q"])
    theirs = NodeProcess([str(anvil_binary()), "--silent"])
    with ours, theirs:
        yield ours, theirs


def newest(node: NodeProcess, tag: str = "latest") -> tuple[int, int]:
    block = node.ask("eth_getBlockByNumber", tag, False)
    return int(block["number"], 16), int(block["timestamp"], 16)


def state(node: NodeProcess) -> list[Any]:
    """Returns the values that must be equal on both nodes, including the pending block's."""
    modes = [node.ask("anvil_getAutomine"), node.ask("anvil_getIntervalMining")]
    pool = node.ask("txpool_status")
    return [*newest(node), *newest(node, "pending"), *modes, pool["pending"], pool["queued"]]


def agree(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(agree, ours, theirs))
    if isinstance(ours, int) and isinstance(theirs, int) and not isinstance(ours, bool):
        return abs(ours - theirs) <= (TOLERANCE if ours > 10 else 0)
    return bool(ours == theirs)


def payment() -> dict[str, str]:
    return {"from": SENDER, "to": SENDER, "value": "0x1", "gas": "0x5208"}


def choices(rng: random.Random, base: int) -> list[tuple[str, list[Any]]]:
    """Returns the requests to choose the next one from.

    ``base``: the timestamp of the newest block.
    """
    later = base + rng.choice((0, 20, 500, 5_000))
    return [
        ("evm_mine", []),
        ("evm_mine", [later]),
        ("evm_mine", [hex(later)]),
        ("evm_mine", [{"timestamp": later, "blocks": rng.randrange(1, 4)}]),
        ("evm_mine", [base - 100]),
        ("anvil_mine", [hex(rng.randrange(4))]),
        ("hardhat_mine", [hex(rng.randrange(1, 5)), hex(rng.choice((0, 15, 60)))]),
        ("evm_increaseTime", [rng.choice((0, 100, 3_600))]),
        ("evm_increaseTime", [hex(86_400)]),
        ("evm_setNextBlockTimestamp", [later]),
        ("evm_setNextBlockTimestamp", [base - 50]),
        ("evm_setTime", [later + rng.choice((20, 100_000))]),
        ("anvil_setTime", [(later + 1_000) * 1_000]),
        ("anvil_setBlockTimestampInterval", [rng.choice((0, 17, 30))]),
        ("anvil_removeBlockTimestampInterval", []),
        ("evm_setAutomine", [rng.random() < 0.7]),
        ("evm_setIntervalMining", [rng.choice((0, 100_000))]),
        ("eth_sendTransaction", [payment()]),
        ("eth_sendTransaction", [payment()]),
        ("evm_snapshot", []),
        ("evm_revert", []),
    ]


def asked(node: NodeProcess, name: str, parameters: list[Any]) -> Any:
    """Returns the result of a request, or a text with the code of its error."""
    try:
        return node.ask(name, *parameters)
    except Exception as error:
        return f"refused {getattr(error, 'code', error)}"


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_time_and_modes_are_those_of_anvil(pair: Pair, seed: int) -> None:
    rng = random.Random(seed)
    # Begins after all timestamps of the previous sequences, because blocks cannot go back in time.
    start = max(newest(node)[1] for node in pair) + 1_000
    for node in pair:
        node.ask("anvil_removeBlockTimestampInterval")
        node.ask("evm_setTime", start)
        node.ask("anvil_mine")
        node.ask("evm_setAutomine", True)
    done: list[Any] = []
    snapshots: list[tuple[Any, Any]] = []
    for _ in range(STEPS):
        name, parameters = rng.choice(choices(rng, newest(pair[1])[1]))
        each = [parameters, parameters]
        if name == "evm_snapshot":
            return_to_clock(pair)
            for node in pair:
                node.ask("evm_mine")
        if name == "evm_revert":
            if not snapshots:
                continue
            each = [[item] for item in snapshots.pop()]
            for node in pair:  # Empties the pools, because they need not be equal after evm_revert.
                node.ask("evm_mine")
        answers = [asked(node, name, item) for node, item in zip(pair, each, strict=True)]
        if name == "evm_snapshot":
            snapshots.append((answers[0], answers[1]))
        if name == "evm_revert":
            return_to_clock(pair)
        done.append((name, parameters))
        if name.startswith(("evm_increase", "evm_setTime", "anvil_setTime", "anvil_remove")):
            assert agree(*answers), (repr(done[-8:]), answers)
        assert str(answers[0]).startswith("refused") == str(answers[1]).startswith("refused"), (
            repr(done[-8:]), answers,
        )  # fmt: skip
        assert eventually(lambda: agree(state(pair[0]), state(pair[1]))), (
            repr(done[-8:]), state(pair[0]), state(pair[1]),
        )  # fmt: skip


def return_to_clock(pair: Pair) -> None:
    """Removes the fixed interval between timestamps, on both nodes.

    anvil's evm_revert keeps the interval and continues from the block's time. fastevm restores
    interval and time, as Hardhat does (tests/rpc/test_reverted_settings.py). Without an interval,
    and with a block mined by the clock just before the snapshot, both nodes behave the same.
    """
    for node in pair:
        node.ask("anvil_removeBlockTimestampInterval")


def eventually(condition: Callable[[], bool]) -> bool:
    """Waits until the condition is true, because anvil answers before it mines.

    Returns False after `MAX_WAIT`.
    """
    deadline = time.monotonic() + MAX_WAIT
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
