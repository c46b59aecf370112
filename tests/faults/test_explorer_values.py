"""Tests that the explorer does not freeze on calldata whose offsets point to the same place."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fastevm.rpc.explorer as explorer
from tests.max_wait import MAX_WAIT

ASSETS = Path(explorer.__file__).resolve().parent / "assets"
MULTICALL = "0xac9650d8"  # multicall(bytes[])
SECONDS = 5.0
WORD = 32

DOCUMENT = """
let made = 0;
const element = () => ({
  classList: { add() {} }, setAttribute() {}, addEventListener() {}, append() {}, size: ++made,
});
const querySelector = () => ({ content: "" });
globalThis.document = { createElement: element, createElementNS: element, querySelector };
globalThis.window = globalThis;
globalThis.location = new URL("http://localhost/");
globalThis.localStorage = { getItem: () => null, setItem() {} };
"""
SHOW = """
const { decodeInput } = await import(ASSETS + "/names.js");
const { parametersOf } = await import(ASSETS + "/links.js");
const began = performance.now();
const found = decodeInput(null, INPUT);
if (found) parametersOf(found.entry.inputs, found.values);
console.log(JSON.stringify({ ms: performance.now() - began, made, known: !!found }));
process.exit();
"""
FAILURES = """
const { failureOf } = await import(ASSETS + "/names.js");
console.log(JSON.stringify(INPUT.map(failureOf)));
process.exit();
"""


def word(number: int) -> bytes:
    return number.to_bytes(WORD, "big")


def nested(depth: int, width: int) -> bytes:
    """Returns calldata of multicalls nested ``depth`` deep, each with ``width`` equal calls."""
    call = bytes.fromhex(MULTICALL[2:]) + word(WORD) + word(0)
    for _ in range(depth):
        element = word(len(call)) + call.ljust(-(-len(call) // WORD) * WORD, b"\0")
        offsets = word(width * WORD) * width
        call = bytes.fromhex(MULTICALL[2:]) + word(WORD) + word(width) + offsets + element
    return call


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provides the page's scripts in a folder that Node.js reads as modules."""
    found = tmp_path_factory.mktemp("explorer")
    for path in ASSETS.glob("*.js"):
        shutil.copy(path, found)
    (found / "package.json").write_text('{"type": "module"}')
    return found


def printed(modules: Path, script: str, given: object) -> Any:
    """Runs a script in Node.js with the explorer's modules and an input value.

    Returns the JSON that the script prints.
    """
    constants = f"const ASSETS = {json.dumps(modules.as_uri())}, INPUT = {json.dumps(given)};"
    ran = subprocess.run(
        ["node", "--input-type=module", "-"], input=constants + DOCUMENT + script,
        capture_output=True, text=True, timeout=MAX_WAIT, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-1_000:]
    return json.loads(ran.stdout)


def shown(modules: Path, data: bytes) -> dict[str, float]:
    found: dict[str, float] = printed(modules, SHOW, f"0x{data.hex()}")
    return found


pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")


def test_an_ordinary_multicall_is_shown_with_its_calls(modules: Path) -> None:
    found = shown(modules, nested(2, 8))
    assert found["known"] and found["made"] > 8 * 8


@pytest.mark.parametrize(("depth", "width"), [(5, 20), (8, 8), (1, 4_000), (3, 500)])
def test_calls_that_repeat_the_same_bytes_are_cut(modules: Path, depth: int, width: int) -> None:
    found = shown(modules, nested(depth, width))
    assert found["ms"] < 1_000 * SECONDS and found["made"] < 60_000, found


def test_only_a_revert_is_shown_with_its_reason(modules: Path) -> None:
    reason = "0x08c379a0" + (word(WORD) + word(2) + b"no".ljust(WORD, b"\0")).hex()
    frames: list[dict[str, str]] = [
        {"error": "out of gas"},
        {"error": "execution reverted"},
        {"error": "execution reverted", "output": reason},
    ]
    assert printed(modules, FAILURES, frames) == ["out of gas", "reverted without a reason", "no"]
