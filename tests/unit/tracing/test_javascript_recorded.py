"""Tests go-ethereum's own JavaScript tracers against its recordings.

The source of the tracers comes from the folder in FASTEVM_GO_ETHEREUM, or from Go's module cache.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import pytest

from .recorded import recorded, traced

pytest.importorskip("quickjs", reason="needs the extra fastevm[javascript]")

TRACERS: Final = "eth/tracers/js/internal/tracers"
GO_MODULES: Final = Path(os.environ.get("GOMODCACHE", Path.home() / "go" / "pkg" / "mod"))


def sources() -> Path:
    """Returns the folder of go-ethereum's programs. Skips the tests if the folder is missing."""
    chosen = os.environ.get("FASTEVM_GO_ETHEREUM")
    cached = sorted(GO_MODULES.glob("github.com/ethereum/go-ethereum@v1*"))
    for folder in [Path(chosen)] if chosen else reversed(cached):
        if (folder / TRACERS).is_dir():
            return folder / TRACERS
    pytest.skip(
        "no source of go-ethereum: set FASTEVM_GO_ETHEREUM, or run"
        " `go mod download github.com/ethereum/go-ethereum@v1.16.7`",
        allow_module_level=True,
    )


PROGRAMS: Final = sources()


def program(name: str) -> str:
    """Returns a tracer without its leading comments."""
    text = (PROGRAMS / f"{name}.js").read_text()
    return text[text.index("\n{") :]


@pytest.mark.parametrize("name", sorted(recorded("call_tracer_legacy")))
def test_the_call_tracer(name: str) -> None:
    test = recorded("call_tracer_legacy")[name]
    found = traced(test, program("call_tracer_legacy"))
    assert frame_of(found) == frame_of(test["result"])


@pytest.mark.parametrize("name", sorted(recorded("prestate_tracer_legacy")))
def test_the_prestate_tracer(name: str) -> None:
    test = recorded("prestate_tracer_legacy")[name]
    assert traced(test, program("prestate_tracer_legacy")) == test["result"]


CALLS: Final = [
    name for name, test in recorded("call_tracer").items() if test["result"]["type"] == "CALL"
]


# Only calls: the program reads a selector from init code, the built-in tracer does not.
@pytest.mark.parametrize("name", sorted(CALLS))
def test_selectors_are_those_of_the_built_in_tracer(name: str) -> None:
    test = recorded("call_tracer")[name] | {"tracerConfig": None}
    assert traced(test, program("4byte_tracer_legacy")) == traced(test, "4byteTracer")


@pytest.mark.parametrize("name", sorted(recorded("call_tracer")))
def test_steps_are_those_of_the_built_in_logger(name: str) -> None:
    test = recorded("call_tracer")[name] | {"tracerConfig": None}
    names = [step["op"] for step in traced(test, "")["structLogs"]]
    assert traced(test, program("opcount_tracer")) == len(names)
    counts = traced(test, program("unigram_tracer"))
    assert sum(counts.values()) == len(names)


def frame_of(frame: dict[str, Any]) -> dict[str, Any]:
    """Returns a frame without its duration, which go-ethereum does not compare either."""
    found = {
        name: value.lower()
        for name, value in frame.items()
        if isinstance(value, str) and name != "time" and value not in ("0x", "0x0")
    }
    return found | {"calls": [frame_of(item) for item in frame.get("calls", [])]}
