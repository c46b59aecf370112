"""Tests cheat codes called from Python and from contracts."""

import pytest

from fastevm import EVM, Contract
from fastevm.integrations.cheat_codes import FUNCTIONS, VM_ADDRESS, Cheats

ALICE, TARGET, CALLER = b"\xa1" * 20, b"\xb2" * 20, b"\xc3" * 20
# Reverts unless the caller is ALICE.
GUARDED = bytes.fromhex("73" + ALICE.hex() + "3314" + "601d57" + "5f5ffd" + "5b00")
# Forwards its call data to the cheat codes, and reverts if the call fails.
FORWARDS = bytes.fromhex(f"365f5f375f5f365f5f73{VM_ADDRESS[2:]}5af1" + "602657" + "5f5ffd" + "5b00")


def test_python_changes_the_machine() -> None:
    evm = EVM()
    cheats = Cheats(evm)
    cheats.deal(ALICE, 5)
    cheats.etch(TARGET, "0x00")
    cheats.store(TARGET, 1, 2)
    cheats.warp(99)
    cheats.roll(7)
    assert evm.balance(ALICE) == 5 and evm.code(TARGET) == b"\0" and cheats.load(TARGET, 1) == 2
    assert (evm.block.timestamp, evm.block.number) == (99, 7)


def test_senders_and_reverts() -> None:
    evm = EVM()
    cheats, guarded = Cheats(evm), Contract(evm, ["function run()"], TARGET)
    evm.set_code(TARGET, GUARDED)
    with cheats.expect_revert("execution reverted"):
        guarded.run()
    with cheats.prank(guarded, ALICE):
        guarded.run()
    with cheats.expect_revert():
        guarded.run()
    with pytest.raises(AssertionError, match="every call succeeded"), cheats.expect_revert():
        pass
    other = pytest.raises(AssertionError, match="expected a revert with 'other'")
    with other, cheats.expect_revert("other"):
        guarded.run()


def test_contracts_change_the_state_of_their_run() -> None:
    evm = EVM()
    Cheats(evm).install()
    evm.set_code(CALLER, FORWARDS)
    by_name = {function.name: function for function in FUNCTIONS.values()}
    slot, value = (3).to_bytes(32, "big"), (4).to_bytes(32, "big")
    for name, arguments in (
        ("deal", (ALICE, 6)), ("etch", (TARGET, b"\x5b")), ("setNonce", (ALICE, 9)),
        ("store", (TARGET, slot, value)),
    ):  # fmt: skip
        assert evm.call(CALLER, by_name[name].encode(arguments), commit=True).success
    assert (evm.balance(ALICE), evm.nonce(ALICE)) == (6, 9)
    assert (evm.code(TARGET), evm.storage(TARGET, 3)) == (b"\x5b", 4)
    assert evm.call(VM_ADDRESS, by_name["load"].encode((TARGET, slot))).output == value
    assert not evm.call(CALLER, b"\x01\x02\x03\x04").success
