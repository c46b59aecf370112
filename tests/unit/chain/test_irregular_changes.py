"""Tests state changes that a fork makes in its first block without a transaction."""

import pytest

from fastevm.chain.block_entry import check_activation_block
from fastevm.chain.create2_deployer import CREATE2_DEPLOYER, CREATE2_DEPLOYER_CODE
from fastevm.chain.irregular_changes import state_before
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Header
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.spec.activation import MAINNET, Activations
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidBlock
from tests.op_stack_data import hex_data, vectors_of

CANYON = Activations.from_genesis_config({"optimism": {}, "regolithTime": 0, "canyonTime": 100})


def test_the_code_of_create2_deployer_is_the_published_one():
    (vector,) = vectors_of("code")
    assert hex_data(vector["address"]) == CREATE2_DEPLOYER
    assert hex_data(vector["code"]) == CREATE2_DEPLOYER_CODE
    assert keccak256(CREATE2_DEPLOYER_CODE) == hex_data(vector["codeHash"])


def test_canyon_deploys_it_once_and_keeps_balance_and_nonce():
    layer = Layer.of({CREATE2_DEPLOYER: {"balance": 5, "nonce": 7}})
    for parent, own, expected in ((98, 99, b""), (99, 101, CREATE2_DEPLOYER_CODE), (100, 102, b"")):
        after = state_before(CANYON, layer, Header(timestamp=parent), own)
        assert after.code(CREATE2_DEPLOYER) == expected
        assert (after.balance(CREATE2_DEPLOYER), after.nonce(CREATE2_DEPLOYER)) == (5, 7)


def test_a_chain_that_begins_with_canyon_or_later_does_not_deploy_it():
    for config in ({"canyonTime": 0}, {"karstTime": 0}):
        chain = Activations.from_genesis_config({"optimism": {}, **config})
        layer = Layer.empty()
        assert state_before(chain, layer, Header(timestamp=0), 2) is layer
    assert MAINNET.canyon_time is None


def test_the_first_block_of_a_fork_since_jovian_holds_deposits_only():
    deposit = Transaction.build(type=126, sender=b"\xaa" * 20, to=bytes(20), gas_limit=50_000)
    block = Block(Header(number=7), (deposit, Transaction.build(to=bytes(20))))
    check_activation_block(block, schedule_for("isthmus"))
    check_activation_block(block, schedule_for("osaka"))
    for fork in ("jovian", "karst"):
        check_activation_block(Block(block.header, (deposit,)), schedule_for(fork))
        with pytest.raises(InvalidBlock, match=r"transactions\[1\].*deposits only"):
            check_activation_block(block, schedule_for(fork))
