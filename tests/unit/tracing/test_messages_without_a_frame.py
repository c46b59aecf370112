"""Tests transactions that end before their first frame: tracers show the failed frame."""

import pytest

from fastevm import EVM

SENDER, NEW = "0x" + "a1" * 20, "0x" + "ab" * 20
GAS = 30_000  # covers the intrinsic gas in Amsterdam, but not the state gas of a new account


def poor() -> EVM:
    evm = EVM("amsterdam")
    evm.set_account(SENDER, balance=10**20)
    return evm


def test_a_new_account_that_cannot_be_paid_is_a_frame_out_of_gas() -> None:
    result = poor().transact(NEW, value=1, gas=GAS, sender=SENDER, trace="calls")
    assert not result.success
    frame = result.trace
    assert (frame["from"], frame["to"], frame["value"]) == (SENDER, NEW, "0x1")
    assert (frame["error"], frame["gasUsed"]) == ("out of gas", hex(GAS))
    assert "calls" not in frame


@pytest.mark.parametrize("tracer", ["calls", "flat", "prestate", "diff", "access_list", "gas"])
def test_every_tracer_answers(tracer: str) -> None:
    result = poor().transact(NEW, value=1, gas=GAS, sender=SENDER, trace=tracer)
    assert result.gas_used == GAS
    assert result.trace is not None
