"""Tests development chains of the OP stack: genesis, predeploys, and recovery after a kill."""

from pathlib import Path

import pytest

from fastevm import EVM
from fastevm.chain.chain import Chain
from fastevm.chain.config import ChainConfig
from fastevm.chain.genesis import genesis_block
from fastevm.chain.stateless import verify, witness_of
from fastevm.chain.storage import DataDirectory
from fastevm.core.execution.block.fees import FeeParameters
from fastevm.core.execution.op_stack.l1_attributes import attributes_of
from fastevm.core.execution.op_stack.l1_fees import l1_data_fee_of
from fastevm.core.execution.op_stack.predeploys import (
    L1_BLOCK,
    L2_TO_L1_MESSAGE_PASSER,
    SEQUENCER_FEE_VAULT,
)
from fastevm.core.primitives.keccak import keccak256
from fastevm.errors import InvalidTransaction
from fastevm.node import Mining, Node, dev_node
from fastevm.node.op_stack import BASE_FORK_NAMES, OP_FORK_NAMES, op_stack_genesis
from fastevm.node.op_stack.op_genesis import (
    BASE_FEE_VAULT,
    GAS_PRICE_ORACLE,
    MIN_BASE_FEE,
    OPERATOR_FEE_VAULT,
)
from tests.op_chain import ALICE, BOB, START, deposit, payment

STANDARD_BRIDGE = L1_BLOCK[:-1] + b"\x10"
L1_FEE_VAULT = L1_BLOCK[:-1] + b"\x1a"
MANUAL = {"mining": Mining.MANUAL, "timestamp": START}


def ask(node: Node, to: bytes, signature: str, arguments: bytes = b"") -> int:
    """Returns the first word of a contract's answer on the newest state."""
    evm = EVM()
    evm.state = node.chain.layer_of(node.chain.head.hash)
    result = evm.call(to, keccak256(signature.encode())[:4] + arguments)
    assert result.success, signature
    return int.from_bytes(result.output[:32], "big")


@pytest.mark.parametrize("fork", OP_FORK_NAMES)
def test_the_witness_of_an_empty_block_verifies_it(fork: str) -> None:
    """From Isthmus on, the header commits to storage of an account that the block need not read."""
    node = dev_node(op_fork=fork, **MANUAL)
    (block,) = node.mine(1)
    chain = node.chain
    below = chain.layer_of(block.header.parent_hash)
    witness = witness_of(block, below, chain.config, lambda _: chain.genesis.header)
    assert verify(block, witness, chain.config).state_root == block.header.state_root


@pytest.mark.parametrize(
    ("fork", "count"),
    [*((fork, 2) for fork in OP_FORK_NAMES), *((fork, 7) for fork in BASE_FORK_NAMES)],
)
def test_a_chain_of_every_fork_is_valid_to_those_who_import_it(fork: str, count: int) -> None:
    node = dev_node(op_fork=fork, **MANUAL)
    payment(node)
    node.deposit(deposit(value=5))
    blocks = node.mine(count)
    for block in blocks:
        assert {receipt.status for receipt in node.chain.receipts_of(block.hash)} == {1}
    other = dev_node(op_fork=fork, mining=Mining.NEVER, timestamp=START)
    for block in blocks:
        other.add_block(block.rlp())
    assert other.chain.head.hash == node.chain.head.hash
    assert other.chain.layer_of(other.chain.head.hash).balance(BOB) == 6


def test_a_fork_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown fork 'osaka' of the OP stack"):
        op_stack_genesis({}, "osaka")


def test_the_genesis_commits_to_the_messages_that_leave() -> None:
    node = dev_node(op_fork="karst", **MANUAL)
    header = node.chain.genesis.header
    layer = node.chain.layer_of(node.chain.genesis.hash)
    assert header.withdrawals_root == layer.proof(L2_TO_L1_MESSAGE_PASSER, []).storage_root
    assert FeeParameters.read(header.extra_data) == FeeParameters(2, 250, 6, MIN_BASE_FEE)


@pytest.mark.parametrize("fork", ["ecotone", "fjord", "isthmus", "karst"])
def test_the_oracle_knows_the_fork_and_the_fee(fork: str) -> None:
    node = dev_node(op_fork=fork, **MANUAL)
    (block,) = node.mine()
    at = OP_FORK_NAMES.index(fork)
    for name in ("ecotone", "fjord", "isthmus", "jovian"):
        flag = ask(node, GAS_PRICE_ORACLE, f"is{name.capitalize()}()")
        assert flag == (OP_FORK_NAMES.index(name) <= at)
    known = attributes_of(block.transactions)
    assert ask(node, GAS_PRICE_ORACLE, "l1BaseFee()") == known.base_fee
    raw = bytes(range(200))
    words = (32).to_bytes(32, "big") + len(raw).to_bytes(32, "big") + raw.ljust(224, b"\0")
    reported = ask(node, GAS_PRICE_ORACLE, "getL1Fee(bytes)", words)
    schedule = node.chain.schedule_of(block.hash)
    # The oracle adds 68 bytes for a signature.
    least = l1_data_fee_of(raw, known, schedule)[0]
    assert least < reported < 2 * least


def test_the_operator_fee_of_the_oracle_is_that_of_the_fork() -> None:
    slot_8 = 1_000 << 64 | 10  # scalar, constant
    for fork, expected in (("granite", 0), ("isthmus", 11), ("karst", 100_000_010)):
        node = dev_node(op_fork=fork, **MANUAL)
        node.development.amend({"0x" + L1_BLOCK.hex(): {"storage": {"0x8": hex(slot_8)}}})
        gas = (1_000).to_bytes(32, "big")
        assert ask(node, GAS_PRICE_ORACLE, "getOperatorFee(uint256)", gas) == expected


def test_only_the_depositor_sets_what_l1_said() -> None:
    node = dev_node(op_fork="karst", **MANUAL)
    evm = EVM()
    evm.state = node.chain.layer_of(node.chain.head.hash)
    result = evm.call(L1_BLOCK, bytes.fromhex("3db6be2b").ljust(178, b"\0"), sender=ALICE)
    assert not result.success
    assert result.output == keccak256(b"NotDepositor()")[:4]


def test_the_operator_fee_vault_has_code() -> None:
    node = dev_node(op_fork="karst", **MANUAL)
    assert ask(node, OPERATOR_FEE_VAULT, "MIN_WITHDRAWAL_AMOUNT()") > 0


def test_a_chain_by_its_genesis_file_alone_makes_blocks_too() -> None:
    genesis = op_stack_genesis(
        {
            "config": {"chainId": 7}, "alloc": {}, "gasLimit": "0x1c9c380",
            "timestamp": hex(START),
        }
    )  # fmt: skip
    config = ChainConfig.from_genesis(genesis)
    node = Node(Chain(config, *genesis_block(genesis, config)), mining=Mining.MANUAL)
    (block,) = node.mine()
    assert attributes_of(block.transactions) is not None


def test_a_deposit_survives_the_end_of_the_process(tmp_path: Path) -> None:
    node = dev_node(op_fork="karst", directory=DataDirectory(tmp_path), **MANUAL)
    node.mine(timestamp=START + 2)
    included = node.deposit(deposit())
    node.mine()
    waiting = node.deposit(deposit())
    node.directory.close()
    again = dev_node(op_fork="karst", directory=DataDirectory(tmp_path), **MANUAL)
    (block,) = again.mine()
    assert [transaction.hash for transaction in block.transactions[1:]] == [waiting]
    assert included != waiting
    again.directory.close()


def test_published_deposits_are_sealed_after_the_end_of_the_process(tmp_path: Path) -> None:
    node = dev_node(op_fork="karst", directory=DataDirectory(tmp_path), **MANUAL)
    promised = node.deposit(deposit())
    node.built(node.producer.begin(START + 2))
    node.directory.close()
    again = dev_node(op_fork="karst", directory=DataDirectory(tmp_path), **MANUAL)
    assert [transaction.hash for transaction in again.chain.head.transactions[1:]] == [promised]
    assert len(again.mine()[0].transactions) == 1
    again.directory.close()


def test_a_deposit_that_cannot_be_written_is_in_no_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = dev_node(op_fork="karst", directory=DataDirectory(tmp_path), **MANUAL)

    def full(*arguments: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(node.directory.pool, "add", full)
    with pytest.raises(InvalidTransaction, match="not all bytes were written"):
        node.deposit(deposit())
    assert len(node.mine()[0].transactions) == 1
    node.directory.close()


def test_the_bridge_sends_ether_to_l1() -> None:
    node = dev_node(op_fork="karst", **MANUAL)
    no_data = (200_000).to_bytes(32, "big") + (64).to_bytes(32, "big") + bytes(32)
    selector = keccak256(b"bridgeETH(uint32,bytes)")[:4]
    payment(node, to=STANDARD_BRIDGE, value=7, gas_limit=1_000_000, data=selector + no_data)
    (block,) = node.mine()
    assert node.chain.receipts_of(block.hash)[1].status == 1
    layer = node.chain.layer_of(block.hash)
    assert layer.balance(L2_TO_L1_MESSAGE_PASSER) == 7
    assert block.header.withdrawals_root != node.chain.genesis.header.withdrawals_root


def test_fees_go_to_the_vaults() -> None:
    node = dev_node(op_fork="karst", **MANUAL)
    payment(node)
    (block,) = node.mine()
    layer, known = node.chain.layer_of(block.hash), attributes_of(block.transactions)
    schedule = node.chain.schedule_of(block.hash)
    l1_fee, _ = l1_data_fee_of(block.transactions[1].raw, known, schedule)
    base_fee = 21_000 * block.header.base_fee_per_gas
    vaults = (SEQUENCER_FEE_VAULT, BASE_FEE_VAULT, L1_FEE_VAULT)
    assert [layer.balance(vault) for vault in vaults] == [21_000 * 10, base_fee, l1_fee]
