"""Tests the rules against EELS, the executable specification (`make peers` installs it)."""

import json
import subprocess
from typing import Any

import pytest

from fastevm.core.spec.activation import MAINNET
from fastevm.core.spec.forks import fork_named
from fastevm.core.spec.opcodes import FORMER_NAMES
from fastevm.core.spec.schedule import schedule_for
from tests.differential.peers import WORKERS, PeerError, python_of

# EELS module -> fork. EELS has mainnet's rules for Constantinople, which are those of Petersburg.
MODULES = {
    "frontier": "Frontier",
    "homestead": "Homestead",
    "dao_fork": "DAO",
    "tangerine_whistle": "TangerineWhistle",
    "spurious_dragon": "SpuriousDragon",
    "byzantium": "Byzantium",
    "constantinople": "Petersburg",
    "istanbul": "Istanbul",
    "muir_glacier": "MuirGlacier",
    "berlin": "Berlin",
    "london": "London",
    "arrow_glacier": "ArrowGlacier",
    "gray_glacier": "GrayGlacier",
    "paris": "Paris",
    "shanghai": "Shanghai",
    "cancun": "Cancun",
    "prague": "Prague",
    "osaka": "Osaka",
    "bpo1": "BPO1",
    "bpo2": "BPO2",
}
CONSTANTS = [
    ("vm.gas", "GAS_MEMORY", "memory_word_cost"),
    ("vm.gas", "GAS_COPY", "copy_word_cost"),
    ("vm.gas", "GAS_KECCAK256_WORD", "keccak_word_cost"),
    ("vm.gas", "GAS_LOG_DATA", "log_byte_cost"),
    ("vm.gas", "GAS_LOG_TOPIC", "log_topic_cost"),
    ("vm.gas", "GAS_EXPONENTIATION_PER_BYTE", "exp_byte_cost"),
    ("vm.gas", "GAS_STORAGE_SET", "sstore_set_cost"),
    ("vm.gas", "GAS_STORAGE_CLEAR_REFUND", "sstore_clear_refund"),
    ("vm.gas", "GAS_WARM_ACCESS", "warm_access_cost"),
    ("vm.gas", "GAS_COLD_SLOAD", "cold_sstore_surcharge"),
    ("vm.gas", "GAS_COLD_ACCOUNT_ACCESS", "cold_selfdestruct_surcharge"),
    ("vm.gas", "GAS_CODE_DEPOSIT", "code_deposit_cost"),
    ("vm.gas", "GAS_NEW_ACCOUNT", "call_new_account_cost"),
    ("vm.gas", "GAS_CALL_VALUE", "call_value_cost"),
    ("vm.gas", "GAS_CALL_STIPEND", "call_stipend"),
    ("vm.gas", "GAS_SELF_DESTRUCT_NEW_ACCOUNT", "selfdestruct_new_account_cost"),
    ("vm.gas", "REFUND_SELF_DESTRUCT", "selfdestruct_refund"),
    ("vm.gas", "GAS_INIT_CODE_WORD_COST", "create_word_cost"),
    ("vm.gas", "GAS_ECRECOVER", "ecrecover_cost"),
    ("vm.gas", "GAS_SHA256", "sha256_cost"),
    ("vm.gas", "GAS_SHA256_WORD", "sha256_word_cost"),
    ("vm.gas", "GAS_RIPEMD160", "ripemd160_cost"),
    ("vm.gas", "GAS_RIPEMD160_WORD", "ripemd160_word_cost"),
    ("vm.gas", "GAS_IDENTITY", "identity_cost"),
    ("vm.gas", "GAS_IDENTITY_WORD", "identity_word_cost"),
    ("vm.gas", "GAS_BLAKE2_PER_ROUND", "blake2f_round_cost"),
    ("vm.gas", "GAS_POINT_EVALUATION", "kzg_point_evaluation_cost"),
    ("vm.gas", "GAS_P256VERIFY", "p256_verify_cost"),
    ("vm.gas", "GAS_BLS_G1_ADD", "bls12_g1_add_cost"),
    ("vm.gas", "GAS_BLS_G1_MUL", "bls12_g1_mul_cost"),
    ("vm.gas", "GAS_BLS_G1_MAP", "bls12_map_fp_to_g1_cost"),
    ("vm.gas", "GAS_BLS_G2_ADD", "bls12_g2_add_cost"),
    ("vm.gas", "GAS_BLS_G2_MUL", "bls12_g2_mul_cost"),
    ("vm.gas", "GAS_BLS_G2_MAP", "bls12_map_fp2_to_g2_cost"),
    ("vm.gas", "GAS_PER_BLOB", "blob_gas_per_blob"),
    ("vm.gas", "BLOB_BASE_COST", "blob_reserve_cost"),
    ("vm.gas", "BLOB_SCHEDULE_TARGET", "blob_target"),
    ("vm.gas", "BLOB_SCHEDULE_MAX", "blob_max"),
    ("vm.gas", "BLOB_BASE_FEE_UPDATE_FRACTION", "blob_base_fee_fraction"),
    ("vm.gas", "MIN_BLOB_GASPRICE", "blob_min_base_fee"),
    ("vm.interpreter", "STACK_DEPTH_LIMIT", "call_depth_limit"),
    ("vm.interpreter", "MAX_CODE_SIZE", "max_code_size"),
    ("vm.interpreter", "MAX_INIT_CODE_SIZE", "max_initcode_size"),
    ("vm.eoa_delegation", "PER_EMPTY_ACCOUNT_COST", "authorization_cost"),
    ("transactions", "TX_BASE_COST", "tx_cost"),
    ("transactions", "TX_CREATE_COST", "tx_create_cost"),
    ("transactions", "TX_DATA_COST_PER_ZERO", "tx_zero_byte_cost"),
    ("transactions", "TX_DATA_COST_PER_NON_ZERO", "tx_nonzero_byte_cost"),
    ("transactions", "TX_ACCESS_LIST_ADDRESS_COST", "tx_access_address_cost"),
    ("transactions", "TX_ACCESS_LIST_STORAGE_KEY_COST", "tx_access_slot_cost"),
    ("transactions", "FLOOR_CALLDATA_COST", "tx_floor_token_cost"),
    ("transactions", "TX_MAX_GAS_LIMIT", "tx_gas_cap"),
    ("fork", "BASE_FEE_MAX_CHANGE_DENOMINATOR", "base_fee_change_denominator"),
    ("fork", "ELASTICITY_MULTIPLIER", "elasticity_multiplier"),
    ("fork", "INITIAL_BASE_FEE", "initial_base_fee"),
    ("fork", "BLOB_COUNT_LIMIT", "blob_max_per_tx"),
    ("fork", "BOMB_DELAY_BLOCKS", "bomb_delay_blocks"),
    ("fork", "GAS_LIMIT_ADJUSTMENT_FACTOR", "gas_limit_divisor"),
    ("fork", "GAS_LIMIT_MINIMUM", "min_gas_limit"),
    ("fork", "MINIMUM_DIFFICULTY", "min_difficulty"),
    ("fork", "MAX_OMMER_DEPTH", "max_uncle_depth"),
    ("fork", "MAX_RLP_BLOCK_SIZE", "max_block_rlp_size"),
    ("fork", "SYSTEM_TRANSACTION_GAS", "system_call_gas"),
]
REWARD = ("fork", "BLOCK_REWARD")


@pytest.fixture(scope="module")
def theirs() -> dict[str, Any]:
    """Returns the parameters of the specification's forks. One worker process reads all forks."""
    try:
        python = python_of("eels")
    except PeerError as error:
        pytest.skip(str(error))
    constants = [REWARD, *((module, name) for module, name, _ in CONSTANTS)]
    done = subprocess.run(
        [python, "eels_rules.py"], cwd=WORKERS, capture_output=True, text=True, check=True,
        input=json.dumps({"forks": list(MODULES), "constants": constants}),
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("fork", "name"), MODULES.items())
def test_constants_agree(theirs, fork, name):
    ours = schedule_for(name).parameters
    constants = theirs[fork]["constants"]
    found = {
        (constant, parameter): (constants[f"{module}.{constant}"], int(ours[parameter]))
        for module, constant, parameter in CONSTANTS
        if f"{module}.{constant}" in constants
    }
    assert len(found) > 25
    assert {key for key, (their, our) in found.items() if their != our} == set()


def test_every_constant_exists_in_some_fork(theirs):
    known = {name for fork in theirs.values() for name in fork["constants"]}
    assert {f"{module}.{name}" for module, name, _ in CONSTANTS} - known == set()


@pytest.mark.parametrize(("fork", "name"), MODULES.items())
def test_opcodes_exist_in_the_same_forks(theirs, fork, name):
    aliases = {"KECCAK": "KECCAK256", **FORMER_NAMES}
    expected = {aliases.get(opcode, opcode) for opcode in theirs[fork]["opcodes"]}
    assert schedule_for(name).opcodes.keys() == expected


@pytest.mark.parametrize(("fork", "name"), MODULES.items())
def test_precompiles_exist_in_the_same_forks(theirs, fork, name):
    expected = {int(address, 16) for address in theirs[fork]["precompiles"]}
    assert set(schedule_for(name).precompiles.values()) == expected


@pytest.mark.parametrize(("fork", "name"), MODULES.items())
def test_block_rewards_agree(theirs, fork, name):
    reward = theirs[fork]["constants"].get(".".join(REWARD), 0)
    assert schedule_for(name).parameters["block_reward_gwei"] * 10**9 == reward


@pytest.mark.parametrize(("fork", "name"), MODULES.items())
def test_mainnet_activates_at_the_same_points(theirs, fork, name):
    ours = {a.fork: a.number for a in MAINNET.by_block}
    ours |= {a.fork: a.timestamp for a in MAINNET.by_time}
    ours[MAINNET.merge_fork] = MAINNET.merge_block
    assert ours[fork_named(name)] == theirs[fork]["activation"]
