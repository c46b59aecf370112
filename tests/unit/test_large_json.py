"""Tests that large JSON read in pieces gives the same values and errors."""

import json
import random
import sys
import threading
import time
from typing import Any

import msgspec
import pytest

from fastevm.bench.node.launch import wait_for
from fastevm.rpc_client import large_json
from fastevm.rpc_client.large_json import decode
from tests.max_wait import MAX_WAIT


def value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(8 if depth < 5 else 5)
    if kind == 0:
        return rng.choice([None, True, False, 0, -1, 2**70, 1.5])
    if kind < 5:
        return rng.choice(['"', "\\", ",", "]", "{", "é", "\n", "x" * rng.randrange(200)]) * 3
    if kind < 7:
        return [value(rng, depth + 1) for _ in range(rng.randrange(12))]
    return {str(value(rng, 9)): value(rng, depth + 1) for _ in range(rng.randrange(8))}


@pytest.fixture(params=[1, 7, 64, 1000])
def piece(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(large_json, "PIECE", request.param)
    return int(request.param)


@pytest.mark.parametrize("seed", range(40))
def test_values_are_those_of_the_whole_text(piece: int, seed: int) -> None:
    rng = random.Random(seed)
    found = [value(rng) for _ in range(20)]
    for indent in (None, 2):
        text = json.dumps({"a": found, "b": found}, indent=indent, ensure_ascii=rng.random() < 0.5)
        assert decode(text) == json.loads(text)
        assert decode(text.encode()) == json.loads(text)


BROKEN = [
    "[1,,2]", "[1,]", "[,1]", "[", "]", "[1", "1]", "[1}", "{1]", '{"a":1,}', '{"a"}', "{1:2}",
    "[[1,2},{3,4]]", '["a]', '{"a":[1,2}}', "[1 2]", "[]]", "[[]", '{"a":1}}', "[1],2", "", "x",
    '{"a":1,"b"}', "[\\]", '["\\"]', "[1],[2]", '{"a":1},{"b":2}',
]  # fmt: skip


@pytest.mark.parametrize("text", BROKEN)
@pytest.mark.parametrize("loads", [json.loads, msgspec.json.decode])
def test_broken_text_is_an_error(piece: int, text: str, loads: Any) -> None:
    with pytest.raises(ValueError):
        decode(text.encode(), loads)
    padded = text[:-1] + " " * 3000 + text[-1:]
    with pytest.raises(ValueError):
        decode(padded.encode(), loads)


def test_a_parser_of_typed_values_is_refused_for_small_text_too() -> None:
    """It would fail only on large text, which is parsed in parts."""
    parser = msgspec.json.Decoder(msgspec.defstruct("Answer", [("result", int, 0)])).decode
    with pytest.raises(TypeError, match="lists and dicts"):
        decode(b'{"result": 1}', parser)


def test_empty_arrays_and_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_json, "PIECE", 1)
    assert decode("[   ]") == []
    assert decode('{"a": [  ], "b": {  } }') == {"a": [], "b": {}}


def test_what_is_nested_too_deep_is_refused_if_strict() -> None:
    inner = "[" + "1," * 100_000 + "1]"
    text = "[" * 80 + inner + "]" * 80
    assert decode(text) == json.loads(text)
    with pytest.raises(ValueError, match="nested too deep"):
        decode(text, strict=True)


def test_other_threads_run_meanwhile() -> None:
    """A counting thread makes progress. A parser that holds the GIL would prevent this."""
    text = b"[" + b'{"a":{}},' * 400_000 + b"1]"
    turns, done = [0], threading.Event()
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)

    def count() -> None:
        while not done.is_set():
            turns[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)

    def turns_meanwhile() -> int:
        turns[0] = 0
        decode(text, msgspec.json.decode)
        return turns[0]

    thread.start()
    try:
        wait_for(lambda: turns_meanwhile() > 20, MAX_WAIT, "no other thread runs")
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(before)
