"""Tests that simulated blocks of Amsterdam commit to their access list (EIP-7928)."""

from typing import Any

import pytest

from fastevm import keccak256
from fastevm.bench.programs.assembler import assemble
from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import EMPTY_LIST_HASH
from fastevm.core.simulation.values import StateView
from fastevm.simulate import simulate
from tests.unit.chain.blocks import KEY, SENDER, new_chain

CONTRACT, OTHER, MINER = (bytes([byte]) * 20 for byte in (0xC0, 0xD0, 0xEE))
# Counts its calls in slot 0, reads slot 5 and a balance, and sends 1 wei.
CODE = assemble(f"""
    0 SLOAD 1 ADD 0 SSTORE  5 SLOAD POP  0x{bytes([0xA1] * 20).hex()} BALANCE POP
    0 0 0 0 1 0x{OTHER.hex()} GAS CALL POP
""")
PRICE = 2 * 10**9
GAS = 1_000_000
CALLS = [(CONTRACT, 3), (OTHER, 0), (CONTRACT, 0)]


def chain_of(fork: str) -> Any:
    return new_chain(fork, alloc={CONTRACT.hex(): {"code": "0x" + CODE.hex()}})


def view_on(chain: Any) -> StateView:
    head = chain.head.header
    return StateView(
        layer=chain.layer_of(head.hash), header=head, block_hash=head.hash, ancestors=(),
        config=chain.config, schedule=chain.config.activations.at(head.number, head.timestamp),
    )  # fmt: skip


def payload(blocks: int, **members: Any) -> dict[str, Any]:
    """Returns a payload with validation. Each of its blocks makes all CALLS."""
    call = {"from": "0x" + SENDER.hex(), "gas": hex(GAS), "gasPrice": hex(PRICE)}
    calls = [call | {"to": "0x" + to.hex(), "value": hex(value)} for to, value in CALLS]
    block = {"calls": calls, "blockOverrides": {"feeRecipient": "0x" + MINER.hex()}}
    return {"blockStateCalls": [block | members] + [block] * (blocks - 1), "validation": True}


def built(chain: Any, simulated: Any) -> list[bytes]:
    """Builds blocks with the simulated headers and calls.

    Returns the hashes of their access lists.
    """
    layer, nonce, found = chain.layer_of(chain.head.hash), 0, []
    for item in simulated:
        header = item.block.header
        builder = BlockBuilder(
            layer, header, chain.config.activations.at(header.number, header.timestamp),
            chain_id=chain.config.chain_id, ancestors=(header.parent_hash,),
            deposit_contract=chain.config.deposit_contract,
        )  # fmt: skip
        builder.begin()
        for to, value in CALLS[: len(item.calls)]:
            made = Transaction.build(
                type=0, gas_price=PRICE, gas_limit=GAS, to=to, value=value, nonce=nonce
            )
            builder.add(made.sign(KEY, chain_id=chain.config.chain_id))
            nonce += 1
        _, result = builder.seal()
        assert result.access_list is not None
        found.append(keccak256(result.access_list))
        layer = result.layer
    return found


def lists_of(blocks: Any) -> list[bytes | None]:
    return [block.block.header.block_access_list_hash for block in blocks]


@pytest.mark.parametrize("state_root", [True, False])
@pytest.mark.parametrize("extras", [{}, {"returnStateDiff": True, "returnAccessList": True}])
def test_the_list_is_that_of_a_block_with_the_same_transactions(
    state_root: bool, extras: dict[str, bool]
) -> None:
    chain = chain_of("Amsterdam")
    simulated = simulate(view_on(chain), payload(3) | extras, state_root=state_root)
    lists = lists_of(simulated)
    assert lists == built(chain, simulated)
    assert len({*lists, EMPTY_LIST_HASH}) == 4


def test_blocks_between_and_without_calls_have_lists_too() -> None:
    chain = chain_of("Amsterdam")
    simulated = simulate(view_on(chain), {"blockStateCalls": [{"blockOverrides": {"number": 3}}]})
    assert len(simulated) == 3
    assert lists_of(simulated) == built(chain, simulated)


def test_overrides_are_no_part_of_the_list() -> None:
    chain = chain_of("Amsterdam")
    view = view_on(chain)
    before = lists_of(simulate(view, payload(1)))
    elsewhere = {"0x" + "99" * 20: {"balance": "0x1", "code": "0x00"}}
    assert lists_of(simulate(view, payload(1, stateOverrides=elsewhere))) == before
    stored = {
        "0x" + CONTRACT.hex(): {"stateDiff": {"0x" + bytes(32).hex(): "0x" + "00" * 31 + "07"}}
    }
    assert lists_of(simulate(view, payload(1, stateOverrides=stored))) != before


def test_older_forks_have_none() -> None:
    assert lists_of(simulate(view_on(chain_of("Osaka")), payload(2))) == [None, None]


def test_a_thread_that_simulated_another_fork_gives_the_same_lists() -> None:
    chain, old = chain_of("Amsterdam"), chain_of("Osaka")
    before = lists_of(simulate(view_on(chain), payload(2)))
    simulate(view_on(old), payload(2))
    assert lists_of(simulate(view_on(chain), payload(2))) == before
