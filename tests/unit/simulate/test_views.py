"""Tests the block values that simulations read from an EVM or a bare state."""

import inspect
from concurrent.futures import ThreadPoolExecutor

import pytest

import fastevm
from fastevm import EVM, Hooks, Layer, simulate_many
from fastevm.simulate import SimulatedBlock, view_of
from fastevm.simulate.views import BLOCK_OPTIONS

A = "0x" + "a1" * 20
READER = "0x" + "c0" * 20
# MSTORE of NUMBER, CHAINID, BASEFEE, TIMESTAMP, COINBASE, PREVRANDAO, GASLIMIT, BLOCKHASH
CODE = "0x435f52466020524860405242606052416080524460a0524560c052600143034060e0526101005ff3"
COINBASE = b"\xcc" * 20
ENVIRONMENT = {
    "chain_id": 1337,
    "number": 500,
    "timestamp": 99_999,
    "base_fee": 7,
    "coinbase": COINBASE,
    "prev_randao": 2**200 + 1,
    "gas_limit": 20_000_000,
}


def words(output: bytes) -> list[int]:
    return [int.from_bytes(output[i : i + 32], "big") for i in range(0, len(output), 32)]


def machine(fork: str = "osaka", **changes: object) -> EVM:
    found = EVM(fork, **{**ENVIRONMENT, **changes})  # type: ignore[arg-type]
    found.set_account(READER, code=CODE)
    found.set_account(A, balance=10**18)
    return found


def seen(blocks: list[SimulatedBlock]) -> list[int]:
    return words(blocks[-1].calls[-1].output)


@pytest.mark.parametrize("number", [1, 2, 500, 2**40])
def test_simulations_run_in_the_block_of_the_machine(number: int) -> None:
    evm = machine(number=number, block_hashes=[b"\x77" * 32])
    expected = words(evm.call(READER).output)
    assert expected[0] == number
    assert seen(fastevm.simulate(evm, [{"from": A, "to": READER}])) == expected
    (bundle,) = simulate_many(evm, [[{"from": A, "to": READER}]], threads=1)
    assert words(bundle.calls[0].output) == expected
    with ThreadPoolExecutor(1) as executor:
        (bundle,) = simulate_many(evm, [[{"from": A, "to": READER}]], executor=executor)
    assert words(bundle.calls[0].output) == expected


def test_simulations_follow_the_rules_of_the_machine() -> None:
    push0 = "0x5f00"
    for fork, succeeds in (("london", False), ("shanghai", True)):
        evm = EVM(fork)
        evm.set_account(READER, code=push0)
        assert fastevm.simulate(evm, [{"to": READER}])[0].calls[0].success is succeeds
        (bundle,) = simulate_many(evm, [[{"to": READER}]])
        assert bundle.success is succeeds


def test_a_payload_says_otherwise_than_the_machine() -> None:
    evm = machine()
    payload = {
        "blockStateCalls": [
            {"blockOverrides": {"number": 700, "baseFeePerGas": 9}, "calls": [{"to": READER}]},
            {"calls": [{"to": READER}]},
        ]
    }
    first, second = fastevm.simulate(evm, payload)
    assert words(first.calls[0].output)[:3] == [700, 1337, 9]
    assert words(second.calls[0].output)[:3] == [701, 1337, 7]
    assert words(second.calls[0].output)[5] == 2**200 + 1
    (bundle,) = simulate_many(evm, [payload])
    assert [words(call.output)[0] for call in bundle.calls] == [700, 701]


def test_with_validation_later_base_fees_follow_from_the_first() -> None:
    payload = {"blockStateCalls": [{}, {}], "validation": True}
    blocks = fastevm.simulate(machine(base_fee=800), payload)
    assert [block.block.header.base_fee_per_gas for block in blocks] == [800, 700]


def test_a_machine_takes_no_block_beside_its_own() -> None:
    with pytest.raises(TypeError, match="an EVM knows its block: number"):
        fastevm.simulate(machine(), [{}], number=3)


def test_a_bare_state_takes_coinbase_and_randomness() -> None:
    state = machine().state
    options = {"coinbase": "0x" + "cc" * 20, "prev_randao": 5}
    calls = [{"from": A, "to": READER}]
    assert seen(fastevm.simulate(state, calls, **options))[4:6] == [
        int.from_bytes(COINBASE, "big"),
        5,
    ]
    (bundle,) = simulate_many(state, [calls], **options)
    assert words(bundle.calls[0].output)[4:6] == [int.from_bytes(COINBASE, "big"), 5]


@pytest.mark.parametrize("number", [1, 256, 257, 20_000_000])
def test_no_empty_blocks_lead_to_a_number_above_a_bare_state(number: int) -> None:
    entry = {"blockOverrides": {"number": number}, "calls": [{"from": A, "to": READER}]}
    payload = {"blockStateCalls": [entry, {}]}
    blocks = fastevm.simulate(machine().state, payload)
    assert [block.block.number for block in blocks] == [number, number + 1]
    (bundle,) = simulate_many(machine().state, [{"blockStateCalls": [entry]}])
    assert bundle.error is None
    assert words(bundle.calls[0].output)[0] == number


def test_gaps_between_the_blocks_of_a_payload_are_filled() -> None:
    payload = {
        "blockStateCalls": [{"blockOverrides": {"number": 90}}, {"blockOverrides": {"number": 93}}]
    }
    blocks = fastevm.simulate(Layer.empty(), payload)
    assert [block.block.number for block in blocks] == [90, 91, 92, 93]


def test_the_view_of_a_machine_is_its_block() -> None:
    header = view_of(machine()).header
    assert (header.number, header.timestamp, header.coinbase) == (500, 99_999, COINBASE)
    assert view_of(machine(), number=7).header.number == 7


@pytest.mark.parametrize("state", [Layer.empty(), EVM()])
def test_a_misspelt_option_is_named_with_the_one_that_was_meant(state: Layer | EVM) -> None:
    with pytest.raises(TypeError, match="no option 'stat_root': did you mean 'state_root'"):
        fastevm.simulate(state, [{"to": "0x" + "c0" * 20}], stat_root=False)
    with pytest.raises(TypeError, match="no option 'numbr': did you mean 'number'"):
        list(fastevm.simulate_many(state, [], numbr=7))
    assert set(BLOCK_OPTIONS) == set(inspect.signature(view_of).parameters) - {"state"}


NAMED = {"number": 77, "timestamp": 1_000, "base_fee": 9, "gas_limit": 12_345_678}


@pytest.mark.parametrize("given", [{name: NAMED[name]} for name in NAMED] + [NAMED])
def test_the_named_block_is_the_block_that_runs(given: dict[str, int]) -> None:
    ops = {"number": "43", "timestamp": "42", "base_fee": "48", "gas_limit": "45"}
    code = bytes.fromhex("".join(f"{ops[name]}60{32 * at:02x}52" for at, name in enumerate(given)))
    code += bytes.fromhex(f"60{32 * len(given):02x}5ff3")
    state = Layer.of({b"\x01" * 20: {"code": code}})
    calls = [{"to": b"\x01" * 20, "gas": 100_000}]
    expected = list(given.values())
    assert words(fastevm.simulate(state, calls, **given)[0].calls[0].output) == expected  # type: ignore[arg-type]
    bundle = next(simulate_many(state, [calls], threads=1, **given))  # type: ignore[call-overload]
    assert words(bundle.calls[0].output) == expected


def test_a_machine_whose_code_runs_in_python_is_not_simulated() -> None:
    evm = machine()
    evm.precompiles[b"\x55" * 20] = lambda data, gas: data
    for run in (fastevm.simulate, simulate_many):
        with pytest.raises(TypeError, match="precompiles of an EVM"):
            run(evm, [[{"to": b"\x55" * 20}]])
    del evm.precompiles[b"\x55" * 20]
    assert fastevm.simulate(evm, [{"to": b"\x55" * 20}])
    evm.hooks = Hooks(enter=print)
    with pytest.raises(TypeError, match="hooks of an EVM"):
        fastevm.simulate(evm, [{"to": b"\x55" * 20}])
