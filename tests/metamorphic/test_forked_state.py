"""Tests that runs on a remote state and on the complete state agree, and need few requests."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from fastevm import EVM, Layer, simulate, simulate_many
from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.simulation.values import SimulateOptions
from fastevm.core.state.remote import resolved
from fastevm.errors import ForkError, InvalidTransaction, StateNotKnown
from fastevm.simulate import CallRequest, call, estimate_gas
from fastevm.simulate.batch.repro import make_capsule, open_capsule
from fastevm.simulate.views import view_of
from fastevm.tracing import TraceRequest, create_access_list, trace_call
from tests.unit.core.state.remote_source import LayerSource

SENDER, TOKEN, PROXY, ROUTER, LIST, SINK = (bytes([n]) * 20 for n in range(0xA1, 0xA7))
PUSH20 = b"\x73"

# Increments storage[key], for the key in the calldata, and returns the new value.
COUNT = bytes.fromhex("600035805460010180915560005260206000f3")
# Delegates every call to the address in slot 0.
DELEGATE = bytes.fromhex("3660006000373d60003660006000545af43d6000803e3d6000f3")
# Follows a linked list in storage: slot n contains the next key. Returns the last nonzero key.
WALK = bytes.fromhex("6000355b805480156011579050600356565b5060005260206000f3")


def caller_of(*targets: bytes) -> bytes:
    """Returns code that calls each target with its own calldata and returns the last output."""
    code = bytes.fromhex("3660006000373d50")
    for target in targets:
        code += bytes.fromhex("602060003660006000") + PUSH20 + target + bytes.fromhex("5af150")
    return code + bytes.fromhex("60206000f3")


TOKENS = [bytes([0xC0, n]) + bytes(18) for n in range(20)]


def accounts() -> dict[bytes, dict[str, Any]]:
    found: dict[bytes, dict[str, Any]] = {
        SENDER: {"balance": 10**20, "nonce": 7},
        TOKEN: {"nonce": 1, "code": COUNT, "storage": {5: 41}},
        PROXY: {"nonce": 1, "code": DELEGATE, "storage": {0: int.from_bytes(TOKEN, "big")}},
        LIST: {"nonce": 1, "code": WALK, "storage": {1: 9, 9: 4, 4: 77}},
        ROUTER: {"nonce": 1, "code": caller_of(*TOKENS)},
        SINK: {"balance": 1},
    }
    for n, token in enumerate(TOKENS):
        found[token] = {"nonce": 1, "code": COUNT, "storage": {5: n}}
    return found


WHOLE = Layer.of(accounts())


@pytest.fixture
def source() -> LayerSource:
    return LayerSource(WHOLE)


@pytest.fixture
def layer(source: LayerSource) -> Layer:
    return Layer.remote(source)


def word(n: int) -> bytes:
    return n.to_bytes(32, "big")


def both(layer: Layer) -> Iterator[EVM]:
    return (EVM(state=item) for item in (WHOLE, layer))


@pytest.mark.parametrize("target", [TOKEN, PROXY, LIST, ROUTER, SINK, bytes(20)])
def test_a_call_gives_the_same(layer: Layer, target: bytes) -> None:
    data = word(1 if target == LIST else 5)
    expected, found = (evm.call(target, data, sender=SENDER) for evm in both(layer))
    assert (found.success, found.output, found.gas_used, found.gas_refunded) == (
        expected.success, expected.output, expected.gas_used, expected.gas_refunded,
    )  # fmt: skip
    assert found.success


def test_a_call_of_many_contracts_takes_few_requests(layer: Layer, source: LayerSource) -> None:
    EVM(state=layer).call(ROUTER, word(5), sender=SENDER)
    # One request each for the router, the tokens, and the slots of the tokens.
    assert len(source.asked) == 3
    assert {len(wanted.slots) for wanted in source.asked} == {0, len(TOKENS)}
    EVM(state=layer).call(ROUTER, word(5), sender=SENDER)
    assert len(source.asked) == 3


def test_the_source_is_reported_what_is_called(layer: Layer, source: LayerSource) -> None:
    EVM(state=layer).call(TOKEN, word(5), sender=SENDER, value=3)
    assert source.asked[0].calls == [
        {
            "from": "0x" + SENDER.hex(),
            "to": "0x" + TOKEN.hex(),
            "data": "0x" + word(5).hex(),
            "value": "0x3",
        }
    ]
    assert not any(wanted.calls for wanted in source.asked[1:])


def test_transactions_give_the_same_and_stay_above(layer: Layer) -> None:
    results = []
    for evm in both(layer):
        outcomes = [
            evm.transact(TOKEN, word(5), sender=SENDER),
            evm.transact(PROXY, word(5), sender=SENDER),
            evm.transact(SINK, sender=SENDER, value=5),
            evm.deploy(bytes.fromhex("60016000556001600155"), sender=SENDER),
        ]
        results.append(
            (
                [
                    (outcome.success, outcome.output, outcome.gas_used, outcome.created_address)
                    for outcome in outcomes
                ],
                evm.storage(TOKEN, 5), evm.storage(PROXY, 5), evm.balance(SINK), evm.nonce(SENDER),
            )
        )  # fmt: skip
    assert results[0] == results[1]
    assert layer.storage(TOKEN, 5) == 41
    assert layer.nonce(SENDER) == 7


def test_what_was_created_here_is_not_asked_for(layer: Layer, source: LayerSource) -> None:
    evm = EVM(state=layer)
    made = evm.deploy(bytes.fromhex("60138060093d393df3") + COUNT, sender=SENDER)
    assert made.created_address is not None
    asked = len(source.asked)
    assert evm.transact(made.created_address, word(3), sender=SENDER).output == word(1)
    assert evm.storage(made.created_address, 8) == 0
    assert len(source.asked) == asked


def test_an_invalid_transaction_is_invalid_for_its_own_reason(layer: Layer) -> None:
    with pytest.raises(InvalidTransaction, match="nonce too low"):
        EVM(state=layer).transact(SINK, sender=SENDER, nonce=3)
    with pytest.raises(InvalidTransaction, match="insufficient funds"):
        EVM(state=layer).transact(SINK, sender=SINK, value=2)


def test_an_error_of_the_source_leaves_the_machine_usable(
    layer: Layer, source: LayerSource
) -> None:
    evm = EVM(state=layer)
    source.broken = True
    with pytest.raises(ForkError):
        evm.call(TOKEN, word(5))
    with pytest.raises(ForkError):
        evm.transact(TOKEN, word(5), sender=SENDER)
    source.broken = False
    assert evm.call(TOKEN, word(5)).output == word(42)
    assert evm.state is layer


@pytest.mark.parametrize("target", [TOKEN, ROUTER, LIST])
def test_calls_and_estimates_give_the_same(layer: Layer, target: bytes) -> None:
    request = CallRequest(sender=SENDER, to=target, data=word(5))
    assert call(view_of(layer), request) == call(view_of(WHOLE), request)
    assert estimate_gas(view_of(layer), request) == estimate_gas(view_of(WHOLE), request)


PAYLOAD = {
    "blockStateCalls": [
        {
            "stateOverrides": {"0x" + SINK.hex(): {"balance": "0x9"}},
            "calls": [
                {"from": "0x" + SENDER.hex(), "to": "0x" + target.hex(), "data": "0x" + data.hex()}
                for target, data in ((TOKEN, word(5)), (ROUTER, word(5)), (LIST, word(1)))
            ],
        },
        {"calls": [{"from": "0x" + SENDER.hex(), "to": "0x" + PROXY.hex(), "data": "0x05"}]},
    ]
}


def test_simulated_chains_give_the_same(layer: Layer, source: LayerSource) -> None:
    expected = simulate(WHOLE, PAYLOAD, state_root=False)
    found = simulate(layer, PAYLOAD, state_root=False)
    assert [block.calls for block in found] == [block.calls for block in expected]
    assert found[-1].block.header == expected[-1].block.header
    assert len(source.asked) <= 5


def bundles() -> list[Any]:
    return [
        [{"from": SENDER, "to": TOKENS[n % 20], "data": word(n % 50)} for n in range(k, k + 3)]
        for k in range(1000)
    ]


def test_a_batch_shares_its_requests(layer: Layer, source: LayerSource) -> None:
    expected = list(simulate_many(WHOLE, bundles()))
    found = list(simulate_many(layer, bundles(), threads=3))
    assert [item.calls for item in found] == [item.calls for item in expected]
    assert len(source.asked) <= 5


def test_workers_get_what_they_read_and_no_network(layer: Layer, source: LayerSource) -> None:
    expected = [item.calls for item in simulate_many(WHOLE, bundles())]
    changed = layer.with_accounts({TOKENS[3]: {"storage": {3: 0}}}).without_accounts([SINK])
    with ProcessPoolExecutor(2) as executor:
        found = [item.calls for item in simulate_many(changed, bundles(), executor=executor)]
    assert found == expected
    assert len(source.asked) <= 6


@pytest.mark.parametrize("tracer", [None, "callTracer", "prestateTracer"])
def test_traces_give_the_same(layer: Layer, tracer: str | None) -> None:
    request = CallRequest(sender=SENDER, to=ROUTER, data=word(5))
    how = TraceRequest(tracer=tracer)
    expected, found = (trace_call(view_of(item), request, how) for item in (WHOLE, layer))
    assert found == expected


def test_access_lists_are_the_same(layer: Layer) -> None:
    request = CallRequest(sender=SENDER, to=PROXY, data=word(5))
    assert create_access_list(view_of(layer), request) == create_access_list(
        view_of(WHOLE), request
    )


def test_a_capsule_needs_no_source(layer: Layer, source: LayerSource) -> None:
    options = SimulateOptions(zero_state_root=True, block_spacing=12)
    data, blocks = make_capsule(view_of(layer), PAYLOAD, options)
    source.broken = True
    view, payload, _ = open_capsule(data)
    found = simulate(view, payload, state_root=False)
    assert [block.calls for block in found] == [block.calls for block in blocks]


def builder_on(layer: Layer, *, suspends: bool) -> BlockBuilder:
    view = view_of(layer, number=101)
    return BlockBuilder(
        layer, view.header, view.schedule, chain_id=1, deposit_contract=bytes(20), suspends=suspends
    )


def test_a_block_in_the_making_leaves_out_what_it_does_not_know(layer: Layer) -> None:
    transaction = Transaction.build(
        sender=SENDER, to=TOKEN, data=word(5), gas_limit=100_000, nonce=7, gas_price=0
    )
    with pytest.raises(StateNotKnown):
        builder_on(layer, suspends=True).begin()
    resolved(layer, lambda: builder_on(layer, suspends=False).begin())
    builder = builder_on(layer, suspends=True)
    builder.begin()
    remote = layer.remote_state
    assert remote is not None
    for _ in range(4):
        with pytest.raises(InvalidTransaction) as refused:
            builder.add(transaction)
        assert refused.value.code == "needs_state"
        assert builder.gas_used == 0
        remote.fetch_missing()
        if layer_knows(layer, transaction):
            break
    receipt = builder.add(transaction)
    assert receipt.status == 1
    assert builder.snapshot().storage(TOKEN, 5) == 42


def layer_knows(layer: Layer, transaction: Any) -> bool:
    remote = layer.remote_state
    assert remote is not None
    known = remote.known_values()
    return (TOKEN, 5) in known.slots and {SENDER, TOKEN, bytes(20)} <= known.accounts.keys()


def test_random_lives_are_the_same_above_a_remote_state() -> None:
    for seed in range(12):
        chance = random.Random(seed)
        machines = [EVM(state=WHOLE), EVM(state=Layer.remote(LayerSource(WHOLE)))]
        for _ in range(25):
            target = chance.choice([TOKEN, PROXY, ROUTER, LIST, SINK, *TOKENS])
            data, value = word(chance.randrange(8)), chance.choice([0, 0, 3])
            outcomes = []
            for evm in machines:
                result = evm.transact(target, data, sender=SENDER, value=value)
                outcomes.append((result.success, result.output, result.gas_used))
            assert outcomes[0] == outcomes[1], (seed, target.hex())
            if chance.random() < 0.1:
                gone = [chance.choice([TOKEN, *TOKENS])]
                for evm in machines:
                    evm.state = evm.state.without_accounts(gone)
