"""Tests that the reader contract returns every listed slot on every fork."""

import pytest

from fastevm import EVM
from fastevm.fork.reader_contract import (
    GAS_OF_A_CALL,
    READER,
    SLOTS_OF_A_CALL,
    reader_call,
    values_in,
)

TARGET = b"\x70" * 20


@pytest.mark.parametrize("fork", ["Byzantium", "London", "Cancun", "Osaka"])
@pytest.mark.parametrize("count", [0, 1, 3, 100])
def test_the_reader_gives_the_slots_it_is_asked_for(fork: str, count: int) -> None:
    storage = {slot * 2**200 + 7: slot + 1 for slot in range(0, 100, 2)}
    evm = EVM(fork=fork)
    evm.set_account(TARGET, code=READER, storage=storage)
    slots = [slot * 2**200 + 7 for slot in range(count)]
    call = reader_call(TARGET, slots)
    result = evm.call(TARGET, call["input"], gas=int(call["gas"], 16))
    assert result.success
    values = values_in("0x" + bytes(result.output).hex(), slots)
    assert values == [storage.get(slot, 0) for slot in slots]


def test_the_longest_list_fits_into_the_gas_of_one_transaction() -> None:
    evm = EVM(fork="Osaka")
    evm.set_account(TARGET, code=READER)
    slots = [2**256 - 1 - slot for slot in range(SLOTS_OF_A_CALL)]
    call = reader_call(TARGET, slots)
    gas = int(call["gas"], 16)
    assert GAS_OF_A_CALL < gas < 2**24
    result = evm.call(TARGET, call["input"], gas=gas)
    assert values_in("0x" + bytes(result.output).hex(), slots) == [0] * SLOTS_OF_A_CALL
