"""Tests development chains of Base: genesis, native tokens, blocks every 200 ms."""

from pathlib import Path
from typing import Any

import pytest

from fastevm.chain.stateless import verify, witness_of
from fastevm.chain.storage import DataDirectory
from fastevm.core.execution.block.fees import FeeParameters
from fastevm.core.execution.op_stack.base_time import timestamp_millis
from fastevm.core.execution.types import Receipt
from fastevm.core.primitives.keccak import keccak256
from fastevm.node import Mining, Node, dev_node
from fastevm.node.dev_chain import DevChain
from fastevm.node.op_stack import BASE_FORK_NAMES, OP_FORK_NAMES, op_stack_genesis
from fastevm.node.op_stack.op_genesis import FEATURE_SLOTS, MIN_BASE_FEE
from tests.op_chain import BOB, START, deposit, payment
from tests.unit.core.native.base.support import (
    ACTIVATION_REGISTRY,
    FACTORY,
    MARKER,
    TOKEN,
    call_data,
    create_data,
    root,
    slot,
    stablecoin_params,
    word,
)

MANUAL: dict[str, Any] = {"mining": Mining.MANUAL, "timestamp": START}
WITH_TOKENS = ("beryl", "cobalt", "denim")
FEATURES = ("base.policy_registry", "base.b20_asset", "base.b20_stablecoin")
GAS = 1_000_000


def send(node: Node, nonce: int, to: bytes, data: bytes) -> Receipt:
    """Mines a block in which the first account calls a contract. Returns the call's receipt."""
    payment(node, nonce=nonce, to=to, value=0, gas_limit=GAS, data=data)
    (block,) = node.mine()
    return node.chain.receipts_of(block.hash)[-1]


def create_token(node: Node) -> bytes:
    """Creates a stablecoin that the first account may mint. Returns its address."""
    owner = node.accounts[0].address
    grant = call_data("grantRole(bytes32,address)", keccak256(b"MINT_ROLE"), owner)
    data = create_data(1, stablecoin_params(admin=owner), [grant])
    receipt = send(node, 0, FACTORY, data)
    assert receipt.status == 1
    return next(log.address for log in receipt.logs if log.address != FACTORY)


@pytest.mark.parametrize("fork", BASE_FORK_NAMES)
def test_the_witness_of_a_block_verifies_it(fork: str) -> None:
    node = dev_node(op_fork=fork, **MANUAL)
    block = node.mine(2)[-1]
    chain = node.chain
    below = chain.layer_of(block.header.parent_hash)
    headers = {item.hash: item.header for item in (chain.genesis, chain.block_by_number(1))}
    witness = witness_of(block, below, chain.config, headers.__getitem__)
    assert verify(block, witness, chain.config).state_root == block.header.state_root


@pytest.mark.parametrize("fork", WITH_TOKENS)
def test_a_token_can_be_created_minted_and_transferred(fork: str) -> None:
    node = dev_node(op_fork=fork, **MANUAL)
    token = create_token(node)
    owner = node.accounts[0].address
    for nonce, (text, to) in enumerate(
        (("mint(address,uint256)", owner), ("transfer(address,uint256)", BOB)), start=1
    ):
        assert send(node, nonce, token, call_data(text, to, 70)).status == 1
    layer = node.chain.layer_of(node.chain.head.hash)
    assert layer.storage(token, slot(TOKEN + 4, BOB)) == 70
    assert layer.code(token) == MARKER


def test_every_feature_is_active() -> None:
    registry = root("base.activation_registry")
    slots = {slot(registry, keccak256(name.encode())) for name in FEATURES}
    assert slots == {int(item, 16) for item in FEATURE_SLOTS}


@pytest.mark.parametrize("fork", WITH_TOKENS)
def test_the_first_account_switches_features(fork: str) -> None:
    node = dev_node(op_fork=fork, **MANUAL)
    feature = keccak256(FEATURES[2].encode())
    switched = send(node, 0, ACTIVATION_REGISTRY, call_data("deactivate(bytes32)", feature))
    assert switched.status == 1
    layer = node.chain.layer_of(node.chain.head.hash)
    assert layer.storage(ACTIVATION_REGISTRY, int(FEATURE_SLOTS[2], 16)) == 0
    owner = node.accounts[0].address
    data = create_data(1, stablecoin_params(admin=owner), [])
    assert send(node, 1, FACTORY, data).status == 0


def test_azul_has_no_native_tokens() -> None:
    genesis = DevChain(op_fork="azul").genesis([])
    assert "0x" + ACTIVATION_REGISTRY.hex() not in genesis["alloc"]
    assert "activationAdminAddress" not in genesis["config"]


def test_a_fork_of_base_can_be_named_as_hardfork() -> None:
    options = {"timestamp": START, "mining": Mining.NEVER}
    named = dev_node(hardfork="Denim", **options)
    assert named.chain.genesis.hash == dev_node(op_fork="denim", **options).chain.genesis.hash


def test_no_fork_of_base_is_one_of_the_op_stack() -> None:
    assert not set(BASE_FORK_NAMES) & set(OP_FORK_NAMES)
    with pytest.raises(ValueError, match=r"known are .*'karst'.*'denim'"):
        op_stack_genesis({}, "osaka")


# --- blocks every 200 ms --------------------------------------------------------------------------


def test_blocks_come_every_200_milliseconds() -> None:
    node = dev_node(op_fork="denim", **MANUAL)
    blocks = node.mine(7)
    millis = [timestamp_millis(block.header, block.transactions) for block in blocks]
    assert millis == [START * 1_000 + 200 * n for n in range(1, 8)]


def test_a_tenth_of_the_gas_and_of_the_change_of_the_base_fee() -> None:
    node, before = (dev_node(op_fork=fork, **MANUAL) for fork in ("denim", "cobalt"))
    header = node.mine()[0].header
    assert header.gas_limit * 10 == before.chain.genesis.header.gas_limit == 400_000_000
    assert FeeParameters.read(header.extra_data) == FeeParameters(2, 2_500, 6, MIN_BASE_FEE)


def test_the_configured_pace_is_that_of_the_rules() -> None:
    config = dev_node(op_fork="denim", **MANUAL).chain.config
    assert (config.block_time_ms, config.slice_interval_ms) == (200, 200)
    with pytest.raises(ValueError, match="block_time_ms: the rules require 200, found 2000"):
        dev_node(op_fork="denim", block_time_ms=2_000, **MANUAL)


def test_nobody_chooses_a_timestamp() -> None:
    node = dev_node(op_fork="denim", **MANUAL)
    node.mine()
    control = node.development.time
    for change in (
        lambda: control.increase(10),
        lambda: control.set(START + 60),
        lambda: control.set_next(START + 60),
        lambda: control.set_interval(3),
        lambda: node.mine(timestamp=START + 60),
        lambda: node.development.mine(2, interval=1),
    ):
        with pytest.raises(ValueError, match="every block comes 200 ms after its parent"):
            change()
    (block,) = node.mine()
    assert timestamp_millis(block.header, block.transactions) == START * 1_000 + 400


def test_the_schedule_goes_on_after_a_restart(tmp_path: Path) -> None:
    node = dev_node(op_fork="denim", directory=DataDirectory(tmp_path), **MANUAL)
    node.mine(3)
    node.directory.close()
    again = dev_node(op_fork="denim", directory=DataDirectory(tmp_path), **MANUAL)
    (block,) = again.mine()
    assert timestamp_millis(block.header, block.transactions) == START * 1_000 + 800
    again.directory.close()


def test_a_block_below_200_milliseconds_has_no_slices() -> None:
    node = dev_node(op_fork="denim", **MANUAL)
    noticed: list[Any] = []
    node.on_slice(lambda pending, first: noticed.append(pending))
    node.built(node.producer.begin(START))
    beginning = node.pending()
    assert beginning is not None and len(beginning.transactions) == 2
    assert timestamp_millis(beginning.header, beginning.transactions) == START * 1_000 + 200
    payment(node)
    node.producer.fill(GAS)
    node.built(node.producer.close_slice())
    assert node.pending() is beginning
    assert not noticed


def test_deposits_leave_room_for_the_milliseconds() -> None:
    node = dev_node(op_fork="denim", gas_limit=3_000_000, **MANUAL)
    node.deposit(deposit(gas_limit=1_000_000))
    (block,) = node.mine()
    assert len(block.transactions) == 3
    assert block.transactions[1].data[-32:] == word(200)
