"""Tests genesis files: valid and optional members, and errors that name an invalid member."""

import json

import pytest
import rlp
from trie import HexaryTrie

from fastevm import keccak256
from fastevm.chain import named as chains
from fastevm.chain.config import DAO_EXTRA_DATA, MAINNET_CONFIG, ChainConfig
from fastevm.chain.genesis import genesis_block, genesis_state
from fastevm.core.execution.block.requests import requests_hash
from fastevm.core.execution.types import EMPTY_ROOT
from fastevm.core.spec.activation import Activations
from tests.shared_data import SHARED

BLOCK_FORKS = (
    "homestead eip150 eip155 eip158 byzantium constantinople petersburg istanbul berlin london"
)
MERGED = {f"{fork}Block": 0 for fork in BLOCK_FORKS.split()} | {"terminalTotalDifficulty": 0}


def genesis(**members):
    return {"config": {"chainId": 7}, "alloc": {}} | members


def test_the_recorded_genesis_has_its_hash():
    path = SHARED / "rpc-compat" / "genesis.json"
    if not path.is_file():
        pytest.skip("the shared test data are not there")
    block, layer = genesis_block(json.loads(path.read_text()))
    assert block.hash.hex().startswith("44fd89d5")
    assert block.header.state_root == layer.state_root()
    assert layer.account_count == 27


def test_members_of_the_header_are_read():
    block, _ = genesis_block(
        genesis(
            nonce="0x42",
            timestamp="0x5",
            extraData="0x1122",
            gasLimit="0x1388",
            difficulty="0x400",
            mixHash="0x" + "01" * 32,
            coinbase="0x" + "02" * 20,
        )
    )
    header = block.header
    assert header.nonce == bytes(7) + b"\x42"
    assert (header.timestamp, header.gas_limit, header.difficulty) == (5, 5_000, 1_024)
    assert (header.extra_data, header.mix_hash) == (b"\x11\x22", b"\x01" * 32)
    assert header.coinbase == b"\x02" * 20
    assert header.base_fee_per_gas is None
    assert block.withdrawals is None


def test_a_chain_born_with_a_late_fork_has_its_header_fields():
    config = MERGED | {"chainId": 7, "shanghaiTime": 0, "cancunTime": 0, "pragueTime": 0}
    block, _ = genesis_block(genesis(config=config))
    header = block.header
    assert header.difficulty == 0
    assert header.base_fee_per_gas == 10**9
    assert header.withdrawals_root == EMPTY_ROOT
    assert (header.blob_gas_used, header.excess_blob_gas) == (0, 0)
    assert header.parent_beacon_block_root == bytes(32)
    assert header.requests_hash == requests_hash(())
    assert block.withdrawals == ()


def test_an_account_has_balance_nonce_code_and_storage():
    layer = genesis_state(
        {
            "0x" + "01" * 20: {
                "balance": "0x10",
                "nonce": "0x2",
                "code": "0x6000",
                "storage": {"0x01": "0x02", "00" * 32: "0x" + "00" * 31 + "03"},
            },
            "02" * 20: {"balance": "17"},
        }
    )
    first, second = b"\x01" * 20, b"\x02" * 20
    assert (layer.balance(first), layer.nonce(first)) == (16, 2)
    assert layer.code(first) == b"\x60\x00"
    assert layer.storage_items(first) == {1: 2, 0: 3}
    assert layer.balance(second) == 17


@pytest.mark.parametrize(
    ("alloc", "message"),
    [
        ({"0x01": {}}, "alloc: expected 20 bytes, found 1"),
        ({"xy" * 20: {}}, "alloc: expected a hex string"),
        ({"01" * 20: {"balance": "ten"}}, f"alloc.{'01' * 20}.balance"),
        ({"01" * 20: {"balance": 2**256}}, f"alloc.{'01' * 20}.balance: expected at most 32 bytes"),
        ({"01" * 20: {"nonce": 2**64}}, f"alloc.{'01' * 20}.nonce: expected at most 8 bytes"),
        ({"01" * 20: {"code": "0x6"}}, f"alloc.{'01' * 20}.code"),
        ({"01" * 20: {"storage": {"0x1": "zz"}}}, "storage.0x1: expected a hex number"),
        ({"01" * 20: {"storage": {"0x1": "0x" + "f" * 65}}}, "at most 32 bytes"),
    ],
)
def test_a_wrong_account_is_named(alloc, message):
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        genesis_state(alloc)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"config": None}, "config: expected an object"),
        ({"config": {}}, "config.chainId: missing"),
        ({"config": {"chainId": -1}}, "config.chainId"),
        ({"config": {"chainId": 2**64}}, "chain_id: expected 0 to"),
        (
            {"config": {"chainId": 1, "depositContractAddress": "0x00"}},
            "expected 20 bytes, found 1",
        ),
        ({"mixHash": "0x00"}, "mixHash: expected 32 bytes, found 1"),
        ({"gasLimit": "many"}, "gasLimit"),
    ],
)
def test_a_wrong_member_is_named(members, message):
    with pytest.raises(ValueError, match=message):
        genesis_block(genesis(**members))


def test_the_deposit_contract_is_the_zero_address_unless_given():
    assert ChainConfig.from_genesis(genesis()).deposit_contract == bytes(20)
    config = {"chainId": 1, "depositContractAddress": "0x" + "05" * 20}
    assert ChainConfig.from_genesis(genesis(config=config)).deposit_contract == b"\x05" * 20


@pytest.mark.parametrize(("block", "slice_"), [(0, 200), (2_000, 0), (100, 200)])
def test_the_cadence_must_make_sense(block, slice_):
    with pytest.raises(ValueError, match="slice_interval_ms"):
        ChainConfig(
            chain_id=1,
            activations=Activations.always("Osaka"),
            block_time_ms=block,
            slice_interval_ms=slice_,
        )


def test_ten_blocks_from_the_dao_fork_on_carry_its_mark():
    marked = [n for n in range(1_919_990, 1_920_020) if MAINNET_CONFIG.extra_data_at(n)]
    assert marked == list(range(1_920_000, 1_920_010))
    assert MAINNET_CONFIG.extra_data_at(1_920_000) == DAO_EXTRA_DATA


def test_a_genesis_under_isthmus_commits_to_the_withdrawals_that_wait():
    chain = chains.find("unichain-sepolia")
    genesis = chain.genesis()
    genesis["config"] |= dict.fromkeys(("holoceneTime", "isthmusTime"), 0)
    genesis["extraData"] = "0x000000003200000006"
    header = genesis_block(genesis)[0].header
    storage = HexaryTrie({})
    for slot, value in genesis["alloc"]["42" + "00" * 18 + "16"]["storage"].items():
        key = keccak256(bytes.fromhex(slot.removeprefix("0x").rjust(64, "0")))
        storage[key] = rlp.encode(int(value, 16))
    assert header.withdrawals_root == storage.root_hash != EMPTY_ROOT
    assert header.requests_hash == requests_hash(())
