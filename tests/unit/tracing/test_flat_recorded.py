"""Tests flatCallTracer against go-ethereum's recordings."""

from typing import Any

import pytest

from fastevm.conformance.real_traces import ERROR_KINDS

from .recorded import recorded, traced

LOCATION_MEMBERS = ("blockHash", "blockNumber", "transactionHash", "transactionPosition")
# In go-ethereum's recordings, zero and empty members may be missing. The comparison ignores them.
NOTHING = ("0x", "0x0", "0x" + "00" * 20)


@pytest.mark.parametrize("name", sorted(recorded("call_tracer_flat")))
def test_flat_frames(name: str) -> None:
    test = recorded("call_tracer_flat")[name]
    found = traced(test, "flatCallTracer")
    assert [values_of(frame) for frame in found] == [values_of(frame) for frame in test["result"]]


def values_of(frame: dict[str, Any]) -> dict[str, Any]:
    values = {name: value for name, value in frame.items() if name not in LOCATION_MEMBERS}
    for part in ("action", "result"):
        members = values.get(part) or {}
        values[part] = {key: value for key, value in members.items() if value not in NOTHING}
    if "error" in values:
        values["error"] = ERROR_KINDS.get(values["error"], values["error"])
    return values
