"""Tests prices, limits and flags of each fork against tables that list the changes by fork.

The implementation lists them by EIP.
"""

import re
from pathlib import Path

import pytest

from fastevm.core.spec import amsterdam, eips
from fastevm.core.spec.forks import (
    BPO2,
    CONSTANTINOPLE,
    FORKS,
    FRONTIER,
    HOMESTEAD,
    PETERSBURG,
    fork_named,
    resolve,
    same_rules,
)
from fastevm.core.spec.opcodes import BY_MNEMONIC
from fastevm.core.spec.parameters import PARAMETERS
from fastevm.errors import UnknownForkError

NAMES = [fork.name for fork in FORKS]

# Opcodes and their first price, by the fork that introduced them; then all later price changes.
BORN = {
    "Frontier": {
        0: "STOP RETURN SSTORE SELFDESTRUCT",
        1: "JUMPDEST",
        2: "ADDRESS ORIGIN CALLER CALLVALUE CALLDATASIZE CODESIZE GASPRICE COINBASE TIMESTAMP"
        " NUMBER PREVRANDAO GASLIMIT POP PC MSIZE GAS",
        3: "ADD SUB NOT LT GT SLT SGT EQ ISZERO AND OR XOR BYTE CALLDATALOAD MLOAD MSTORE MSTORE8"
        " CALLDATACOPY CODECOPY "
        + " ".join(f"PUSH{n}" for n in range(1, 33))
        + " "
        + " ".join(f"DUP{n} SWAP{n}" for n in range(1, 17)),
        5: "MUL DIV SDIV MOD SMOD SIGNEXTEND",
        8: "ADDMOD MULMOD JUMP",
        10: "JUMPI EXP",
        20: "BLOCKHASH BALANCE EXTCODESIZE EXTCODECOPY",
        30: "KECCAK256",
        40: "CALL CALLCODE",
        50: "SLOAD",
        375: "LOG0",
        750: "LOG1",
        1125: "LOG2",
        1500: "LOG3",
        1875: "LOG4",
        32000: "CREATE",
    },
    "Homestead": {40: "DELEGATECALL"},
    "Byzantium": {0: "REVERT", 2: "RETURNDATASIZE", 3: "RETURNDATACOPY", 700: "STATICCALL"},
    "Constantinople": {3: "SHL SHR SAR", 400: "EXTCODEHASH", 32000: "CREATE2"},
    "Istanbul": {2: "CHAINID", 5: "SELFBALANCE"},
    "London": {2: "BASEFEE"},
    "Shanghai": {2: "PUSH0"},
    "Cancun": {2: "BLOBBASEFEE", 3: "BLOBHASH MCOPY", 100: "TLOAD TSTORE"},
    "Osaka": {5: "CLZ"},
    "Amsterdam": {2: "SLOTNUM", 3: "DUPN SWAPN EXCHANGE"},
}
REPRICED = {
    "TangerineWhistle": {
        200: "SLOAD",
        400: "BALANCE",
        700: "EXTCODESIZE EXTCODECOPY CALL CALLCODE DELEGATECALL",
        5000: "SELFDESTRUCT",
    },
    "Istanbul": {700: "BALANCE EXTCODEHASH", 800: "SLOAD"},
    "Berlin": {
        100: "SLOAD BALANCE EXTCODESIZE EXTCODECOPY EXTCODEHASH CALL CALLCODE DELEGATECALL"
        " STATICCALL"
    },
    "Amsterdam": {200: "EXTCODESIZE EXTCODECOPY", 12000: "CREATE CREATE2"},
}

# Parameters that only forks of the OP stack set, by fork. Before the first change they are 0 or
# False.
OF_THE_OP_STACK = (
    "bn254_pairing_max_input",
    "bls12_g1_msm_max_input",
    "bls12_g2_msm_max_input",
    "bls12_pairing_max_input",
    "l1_fee_version",
    "operator_fee_version",
    "fee_parameters_version",
    "deposit_receipt_version",
    "has_deposits",
    "deposits_report_gas",
    "has_fee_vaults",
    "has_free_gas_limit",
    "has_da_footprint",
    "commits_to_withdrawals",
    "has_post_exec",
    "native_contracts",
    "arbos_version",
    "b20_version",
    "activation_admin",
    "has_base_time",
)
# Changes of Amsterdam, and changes that only the devnet of April 2026 had.
AMSTERDAM = {
    "state_gas_version": 2,
    "state_byte_cost": 1530,
    "account_state_bytes": 120,
    "slot_state_bytes": 64,
    "delegation_state_bytes": 23,
    "system_call_state_gas": 1_566_720,
    "account_write_cost": 9000,
    "code_word_cost": 6,
    "tx_recipient_cost": 3000,
    "tx_value_cost": 6000,
    "tx_total_gas_cap": 4_294_967_295,
    "tx_floor_byte_cost": 64,
    "tx_floor_address_cost": 1280,
    "tx_floor_slot_cost": 2048,
    "block_access_item_gas": 2000,
    "has_transfer_logs": True,
    "counts_gas_before_refunds": True,
    "has_slot_number": True,
    "has_block_access_list": True,
    "creates_over_storage": True,
    "selfdestruct_keeps_balance": True,
    "has_builder_requests": True,
}
APRIL_2026 = {
    "has_burn_logs": True,
    "max_code_size": 32768,
    "max_initcode_size": 65536,
    "state_gas_version": 1,
    "state_byte_cost": 0,
    "account_state_bytes": 112,
    "slot_state_bytes": 32,
    "delegation_state_bytes": 23,
    "code_word_cost": 6,
    "tx_cost": 21000,
    "tx_create_cost": 9000,
    "tx_recipient_cost": 0,
    "tx_value_cost": 0,
    "tx_access_address_cost": 3680,
    "tx_access_slot_cost": 3948,
    "tx_total_gas_cap": 0,
    "tx_floor_byte_cost": 64,
    "authorization_cost": 7500,
    "authorization_refund": 0,
    "account_write_cost": 0,
    "sstore_set_cost": 2900,
    "sstore_reset_cost": 2900,
    "sstore_clear_refund": 4800,
    "cold_account_surcharge": 2500,
    "cold_sstore_surcharge": 2100,
    "call_value_cost": 9000,
    "call_new_account_cost": 0,
    "selfdestruct_new_account_cost": 0,
    "code_deposit_cost": 0,
    "system_call_state_gas": 0,
    "creates_over_storage": False,
    "selfdestruct_keeps_balance": False,
    "has_builder_requests": False,
}

HISTORY = {
    "sstore_dirty_cost": {"Constantinople": 200, "Petersburg": 0, "Istanbul": 800, "Berlin": 100},
    "sstore_net_metering": {"Constantinople": True, "Petersburg": False, "Istanbul": True},
    "sstore_set_cost": {"Frontier": 20000, "Amsterdam": 10100},
    "sstore_reset_cost": {"Frontier": 5000, "Berlin": 2900, "Amsterdam": 10100},
    "sstore_clear_refund": {"Frontier": 15000, "London": 4800, "Amsterdam": 11616},
    "sstore_sentry": {"Istanbul": 2300},
    "has_access_lists": {"Berlin": True},
    "cold_account_surcharge": {"Berlin": 2500, "Amsterdam": 2900},
    "cold_slot_surcharge": {"Berlin": 2000},
    "cold_sstore_surcharge": {"Berlin": 2100, "Amsterdam": 2000},
    "cold_selfdestruct_surcharge": {"Berlin": 2600, "Amsterdam": 3000},
    "warm_access_cost": {"Berlin": 100},
    "call_value_cost": {"Frontier": 9000, "Amsterdam": 11300},
    "call_stipend": {"Frontier": 2300},
    "call_new_account_cost": {"Frontier": 25000, "Amsterdam": 0},
    "create_word_cost": {"Shanghai": 2},
    "code_deposit_cost": {"Frontier": 200, "Amsterdam": 0},
    "max_code_size": {"SpuriousDragon": 24576, "Amsterdam": 65536},
    "max_initcode_size": {"Shanghai": 49152, "Amsterdam": 131072},
    "all_but_one_64th": {"TangerineWhistle": True},
    "new_account_cost_needs_value": {"SpuriousDragon": True},
    "code_deposit_must_be_paid": {"Homestead": True},
    "rejects_code_starting_ef": {"London": True},
    "selfdestruct_new_account_cost": {"TangerineWhistle": 25000, "Amsterdam": 9000},
    "selfdestruct_refund": {"Frontier": 24000, "London": 0},
    "selfdestruct_only_if_created": {"Cancun": True},
    "created_account_nonce": {"SpuriousDragon": 1},
    "clears_empty_accounts": {"SpuriousDragon": True},
    "has_delegations": {"Prague": True},
    "exp_byte_cost": {"Frontier": 10, "SpuriousDragon": 50},
    "difficulty_is_randomness": {"Paris": True},
    "bn254_add_cost": {"Byzantium": 500, "Istanbul": 150},
    "bn254_mul_cost": {"Byzantium": 40000, "Istanbul": 6000},
    "bn254_pairing_base_cost": {"Byzantium": 100000, "Istanbul": 45000},
    "bn254_pairing_pair_cost": {"Byzantium": 80000, "Istanbul": 34000},
    "modexp_version": {"Byzantium": 1, "Berlin": 2, "Osaka": 3},
    "modexp_max_length": {"Osaka": 1024},
    "p256_verify_cost": {"Osaka": 6900},
    "tx_cost": {"Frontier": 21000, "Amsterdam": 12000},
    "tx_create_cost": {"Homestead": 32000, "Amsterdam": 12000},
    "tx_zero_byte_cost": {"Frontier": 4},
    "tx_nonzero_byte_cost": {"Frontier": 68, "Istanbul": 16},
    "tx_access_address_cost": {"Berlin": 2400, "Amsterdam": 4180},
    "tx_access_slot_cost": {"Berlin": 1900, "Amsterdam": 4048},
    "tx_floor_token_cost": {"Prague": 10, "Amsterdam": 0},
    "tx_gas_cap": {"Osaka": 16777216},
    "authorization_cost": {"Prague": 25000, "Amsterdam": 7816},
    "authorization_refund": {"Prague": 12500, "Amsterdam": 0},
    "refund_quotient": {"Frontier": 2, "London": 5},
    "max_tx_type": {"Berlin": 1, "London": 2, "Cancun": 3, "Prague": 4},
    "signature_low_s": {"Homestead": True},
    "has_chain_id_in_signature": {"SpuriousDragon": True},
    "warm_coinbase": {"Shanghai": True},
    "has_base_fee": {"London": True},
    "elasticity_multiplier": {"London": 2},
    "base_fee_change_denominator": {"London": 8},
    "initial_base_fee": {"London": 10**9},
    "has_blobs": {"Cancun": True},
    "blob_gas_per_blob": {"Cancun": 131072},
    "blob_target": {"Cancun": 3, "Prague": 6, "BPO1": 10, "BPO2": 14},
    "blob_max": {"Cancun": 6, "Prague": 9, "BPO1": 15, "BPO2": 21},
    "blob_base_fee_fraction": {
        "Cancun": 3338477,
        "Prague": 5007716,
        "BPO1": 8346193,
        "BPO2": 11684671,
    },
    "blob_max_per_tx": {"Osaka": 6},
    "blob_min_base_fee": {"Cancun": 1},
    "blob_reserve_cost": {"Osaka": 8192},
    "proof_of_stake": {"Paris": True},
    "block_reward_gwei": {
        "Frontier": 5 * 10**9,
        "Byzantium": 3 * 10**9,
        "Constantinople": 2 * 10**9,
        "Paris": 0,
    },
    "difficulty_version": {"Homestead": 1, "Byzantium": 2},
    "bomb_delay_blocks": {
        "Byzantium": 3_000_000,
        "Constantinople": 5_000_000,
        "MuirGlacier": 9_000_000,
        "London": 9_700_000,
        "ArrowGlacier": 10_700_000,
        "GrayGlacier": 11_400_000,
        "Paris": 0,
    },
    "receipt_has_state_root": {"Frontier": True, "Byzantium": False},
    "has_withdrawals": {"Shanghai": True},
    "has_beacon_root": {"Cancun": True},
    "has_history_contract": {"Prague": True},
    "has_requests": {"Prague": True},
    "accepts_blobs": {"Cancun": True},
    "collects_requests": {"Prague": True},
    **{name: {} for name in OF_THE_OP_STACK},
    **{name: {"Amsterdam": value} for name, value in AMSTERDAM.items()},
    "has_burn_logs": {},
    "max_block_rlp_size": {"Osaka": 8 * 2**20},
}

PRECOMPILES = {
    "Frontier": {1, 2, 3, 4},
    "Byzantium": {5, 6, 7, 8},
    "Istanbul": {9},
    "Cancun": {10},
    "Prague": set(range(11, 18)),
    "Osaka": {0x100},
}


def _upto(fork_name, by_fork):
    """Returns the entries of all forks up to ``fork_name``, in order."""
    return [by_fork[name] for name in NAMES[: NAMES.index(fork_name) + 1] if name in by_fork]


@pytest.mark.parametrize("fork", FORKS, ids=NAMES)
def test_opcodes_exist_at_their_price(fork):
    expected = {}
    for table in (BORN, REPRICED):
        for prices in _upto(fork.name, table):
            expected.update((m, gas) for gas, names in prices.items() for m in names.split())
    assert resolve(fork).opcodes == expected


@pytest.mark.parametrize("fork", FORKS, ids=NAMES)
def test_parameters_have_the_value_of_their_fork(fork):
    expected = {name: [0, *_upto(fork.name, history)][-1] for name, history in HISTORY.items()}
    values = resolve(fork).parameters
    assert {name: values[name] for name in HISTORY} == expected


def test_the_state_of_april_2026_differs_in_numbers_and_switches():
    fork = fork_named("amsterdam-2026-04")
    values = resolve(fork).parameters
    assert {name: values[name] for name in APRIL_2026} == APRIL_2026
    assert resolve(fork).opcodes["CREATE"] == resolve(fork).opcodes["CREATE2"] == 9_000
    assert resolve(fork).opcodes["EXTCODESIZE"] == 100


@pytest.mark.parametrize("fork", FORKS, ids=NAMES)
def test_flags_are_booleans_and_numbers_are_not(fork):
    for name, value in resolve(fork).parameters.items():
        assert isinstance(value, bool) == (PARAMETERS[name].unit == "flag"), name


def test_every_parameter_that_can_change_is_checked():
    assert HISTORY.keys() == {p.name for p in PARAMETERS.values() if not p.constant}


@pytest.mark.parametrize("fork", FORKS, ids=NAMES)
def test_precompiles_exist(fork):
    assert set(resolve(fork).precompiles.values()) == set().union(*_upto(fork.name, PRECOMPILES))


def test_constants_never_change_after_their_birth():
    for name in (p.name for p in PARAMETERS.values() if p.constant):
        assert len({resolve(fork).parameters[name] for fork in FORKS} - {0}) == 1, name


def test_the_c_constants_are_those_of_the_eips():
    source = (Path(eips.__file__).parent / "constants.pxd").read_text()
    declared = {n.lower(): int(v) for n, v in re.findall(r"^    (\w+) = (\d+)$", source, re.M)}
    rules = resolve(BPO2).parameters
    assert declared == {p.name: rules[p.name] for p in PARAMETERS.values() if p.constant}


def test_eips_speak_only_of_things_that_exist():
    for eip in entries().values():
        assert eip.opcodes.keys() <= BY_MNEMONIC.keys()
        assert eip.parameters.keys() <= PARAMETERS.keys()


def entries():
    """Returns every EIP entry of Ethereum's forks by name."""
    found = {**vars(eips), **vars(amsterdam)}
    return {name: e for name, e in found.items() if isinstance(e, eips.Eip)}


def test_eips_are_named_by_their_number_and_used_once():
    used = [eip for fork in FORKS for eip in fork.eips]
    assert len(used) == len(set(used))
    assert set(used) == set(entries().values()) - {amsterdam.SNAPSHOT}
    names = ("YELLOW_PAPER", "SNAPSHOT")
    assert all(name in (f"EIP_{e.number}", *names) for name, e in entries().items())


def test_every_value_knows_its_eip():
    rules = resolve(fork_named("osaka"))
    assert rules.sources["opcodes", "SLOAD"] is eips.EIP_2929
    assert rules.sources["opcodes", "ADD"] is eips.YELLOW_PAPER
    assert rules.sources["parameters", "refund_quotient"] is eips.EIP_3529
    assert rules.sources["precompiles", "P256VERIFY"] is eips.EIP_7951
    assert rules.sources["contracts", "HISTORY_STORAGE_ADDRESS"] is eips.EIP_2935


def test_petersburg_takes_net_metering_back_and_keeps_the_rest():
    assert set(CONSTANTINOPLE.all_eips) - set(PETERSBURG.all_eips) == {eips.EIP_1283}
    assert not resolve(PETERSBURG).parameters["sstore_net_metering"]


def test_the_dao_fork_changes_no_rule():
    assert same_rules(fork_named("DAO"), HOMESTEAD)


def test_same_rules_sees_a_difference_of_one_flag():
    assert same_rules(FRONTIER.then("Homestead", eips.EIP_2, eips.EIP_7), HOMESTEAD)
    assert not same_rules(FRONTIER.then("Homestead", eips.EIP_2), HOMESTEAD)


@pytest.mark.parametrize(
    ("name", "fork"),
    [
        ("Frontier", "Frontier"),
        ("EIP150", "TangerineWhistle"),
        ("Tangerine Whistle", "TangerineWhistle"),
        ("eip158", "SpuriousDragon"),
        ("spurious_dragon", "SpuriousDragon"),
        ("ConstantinopleFix", "Petersburg"),
        ("st. petersburg", "Petersburg"),
        ("Merge", "Paris"),
        ("paris", "Paris"),
        ("muir glacier", "MuirGlacier"),
        ("gray-glacier", "GrayGlacier"),
        ("dao", "DAO"),
        ("OSAKA", "Osaka"),
        ("bpo2", "BPO2"),
        ("amsterdam", "Amsterdam"),
        ("Amsterdam-2026-04", "amsterdam-2026-04"),
    ],
)
def test_forks_are_found_by_any_usual_spelling(name, fork):
    assert fork_named(name).name == fork


def test_an_unknown_fork_is_an_error_with_a_suggestion():
    with pytest.raises(UnknownForkError, match=r"unknown fork 'lodnon': did you mean London\?"):
        fork_named("lodnon")


@pytest.mark.parametrize("name", ["", "zzzzzz", "Bogota "])
def test_an_unknown_fork_without_likeness_lists_the_known(name):
    with pytest.raises(UnknownForkError, match=r"unknown fork .*: (known are Frontier|did you)"):
        fork_named(name)
