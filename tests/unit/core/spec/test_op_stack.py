"""Tests the forks of OP-stack chains: rules and activation."""

import pytest

from fastevm.core.spec import op_stack
from fastevm.core.spec.activation import Activations
from fastevm.core.spec.eips import Eip
from fastevm.core.spec.forks import (
    AZUL,
    BASE_FORKS,
    KARST,
    LAGOON,
    OP_FORKS,
    fork_named,
    resolve,
)
from fastevm.core.spec.parameters import PARAMETERS
from fastevm.core.spec.schedule import schedule_for
from fastevm.errors import UnknownForkError

NAMES = [fork.name for fork in OP_FORKS]
# The value of a parameter from each fork on; source: OP Stack specification, page of each upgrade.
HISTORY = {
    "max_tx_type": {"Bedrock": 2, "Isthmus": 4},
    "has_deposits": {"Bedrock": True},
    "has_fee_vaults": {"Bedrock": True},
    "has_free_gas_limit": {"Bedrock": True},
    "deposits_report_gas": {"Regolith": True},
    "deposit_receipt_version": {"Canyon": 1},
    "l1_fee_version": {"Bedrock": 1, "Regolith": 2, "Ecotone": 3, "Fjord": 4},
    "operator_fee_version": {"Isthmus": 1, "Jovian": 2},
    "fee_parameters_version": {"Holocene": 1, "Jovian": 2},
    "has_da_footprint": {"Jovian": True},
    "commits_to_withdrawals": {"Isthmus": True},
    "elasticity_multiplier": {"Bedrock": 6},
    "base_fee_change_denominator": {"Bedrock": 50, "Canyon": 250},
    "warm_coinbase": {"Canyon": True},
    "has_withdrawals": {"Canyon": True},
    "has_beacon_root": {"Ecotone": True},
    "has_blobs": {"Ecotone": True},
    "accepts_blobs": {},
    "has_history_contract": {"Isthmus": True},
    "has_requests": {"Isthmus": True},
    "collects_requests": {},
    "tx_floor_token_cost": {"Isthmus": 10},
    "tx_gas_cap": {"Karst": 2**24},
    "max_block_rlp_size": {},
    "blob_reserve_cost": {},
    "modexp_version": {"Bedrock": 2, "Karst": 3},
    "p256_verify_cost": {"Fjord": 3450, "Karst": 6900},
    "bn254_pairing_max_input": {"Granite": 112687, "Jovian": 81984, "Karst": 57600},
    "bls12_g1_msm_max_input": {"Isthmus": 513760, "Jovian": 288960},
    "bls12_g2_msm_max_input": {"Isthmus": 488448, "Jovian": 278784},
    "bls12_pairing_max_input": {"Isthmus": 235008, "Jovian": 156672},
}
EVM_BASES = {
    "Bedrock": "Paris",
    "Regolith": "Paris",
    "Canyon": "Shanghai",
    "Delta": "Shanghai",
    "Ecotone": "Cancun",
    "Fjord": "Cancun",
    "Granite": "Cancun",
    "Holocene": "Cancun",
    "Isthmus": "Prague",
    "Jovian": "Prague",
    "Karst": "Osaka",
}


@pytest.mark.parametrize("fork", OP_FORKS, ids=NAMES)
def test_parameters_have_the_value_of_their_fork(fork):
    upto = NAMES[: NAMES.index(fork.name) + 1]
    values = resolve(fork).parameters
    for name, history in HISTORY.items():
        assert values[name] == [0, *(history[n] for n in upto if n in history)][-1], name


@pytest.mark.parametrize("fork", OP_FORKS, ids=NAMES)
def test_opcodes_are_those_of_the_fork_of_ethereum_that_it_includes(fork):
    assert resolve(fork).opcodes == resolve(fork_named(EVM_BASES[fork.name])).opcodes


def test_precompiles_are_those_of_ethereum_and_p256_verify_from_fjord_on():
    for fork in OP_FORKS:
        expected = set(resolve(fork_named(EVM_BASES[fork.name])).precompiles.values())
        if NAMES.index(fork.name) >= NAMES.index("Fjord"):
            expected.add(0x100)
        assert set(resolve(fork).precompiles.values()) == expected


def test_azul_is_karst_with_jovians_pairing_limit():
    azul, karst = resolve(AZUL), resolve(KARST)
    differing = {n for n in azul.parameters if azul.parameters[n] != karst.parameters[n]}
    assert differing == {"bn254_pairing_max_input"}
    assert azul.parameters["bn254_pairing_max_input"] == 81_984
    assert azul.opcodes == karst.opcodes


def test_forks_of_base_change_native_contracts_only():
    names = ("native_contracts", "b20_version", "has_base_time")
    values = [tuple(resolve(fork).parameters[name] for name in names) for fork in BASE_FORKS]
    assert values == [(0, 0, False), (1, 1, False), (1, 2, False), (1, 3, True)]
    azul = resolve(AZUL)
    for fork in BASE_FORKS:
        rules = resolve(fork)
        assert (rules.opcodes, rules.precompiles) == (azul.opcodes, azul.precompiles)
        differing = {n for n in azul.parameters if azul.parameters[n] != rules.parameters[n]}
        assert differing <= set(names)


def test_lagoon_is_a_switch_that_adds_refunds():
    lagoon, karst = resolve(LAGOON), resolve(KARST)
    assert {n for n in lagoon.parameters if lagoon.parameters[n] != karst.parameters[n]} == {
        "has_post_exec"
    }
    chain = Activations.from_genesis_config({"optimism": {}, "karstTime": 0, "lagoonTime": 9})
    assert [chain.at(1, time).name for time in (8, 9)] == ["Karst", "Lagoon"]


def test_limits_of_inputs_are_packed_by_precompile():
    limits = schedule_for("isthmus").packed()["precompile_max_input"]
    assert {i: n for i, n in enumerate(limits) if n} == {
        0x08: 112_687,
        0x0C: 513_760,
        0x0E: 488_448,
        0x0F: 235_008,
    }
    assert not any(schedule_for("osaka").packed()["precompile_max_input"])


def test_upgrades_speak_only_of_things_that_exist():
    for upgrade in (entry for entry in vars(op_stack).values() if isinstance(entry, Eip)):
        assert upgrade.parameters.keys() <= PARAMETERS.keys()
        assert upgrade.label == upgrade.name


def test_a_genesis_configuration_of_op_geth_activates_the_forks():
    config = {
        "bedrockBlock": 0,
        "regolithTime": 0,
        "canyonTime": 10,
        "shanghaiTime": 10,
        "ecotoneTime": 20,
        "cancunTime": 20,
        "pectraBlobScheduleTime": 25,
        "isthmusTime": 30,
        "karstTime": 40,
        "optimism": {
            "eip1559Elasticity": 10,
            "eip1559Denominator": 60,
            "eip1559DenominatorCanyon": 70,
        },
    }
    chain = Activations.from_genesis_config(config)
    names = [chain.at(5, time).name for time in (0, 9, 10, 20, 30, 40)]
    assert names == ["Regolith", "Regolith", "Canyon", "Ecotone", "Isthmus", "Karst"]
    rules = [chain.at(5, time).parameters for time in (0, 10, 40)]
    assert [r["base_fee_change_denominator"] for r in rules] == [60, 70, 70]
    assert {r["elasticity_multiplier"] for r in rules} == {10}
    assert chain.fork_times == (10, 20, 30, 40)


def test_the_forks_with_the_usual_constants_are_the_named_ones():
    chain = Activations.from_genesis_config({"optimism": {}, "regolithTime": 0, "karstTime": 7})
    assert chain.at(1, 0).fork is fork_named("Regolith")
    assert chain.at(1, 7).fork is KARST


def test_base_may_give_its_forks_and_their_admin_in_an_object():
    base = {"azul": 3, "beryl": 4, "cobalt": 5, "denim": 6, "activationAdminAddress": f"0x{7:040x}"}
    chain = Activations.from_genesis_config({"optimism": {}, "jovianTime": 0, "base": base})
    names = [chain.at(1, time).name for time in (2, 3, 4, 5, 6)]
    assert names == ["Jovian", "Azul", "Beryl", "Cobalt", "Denim"]
    assert [chain.at(1, time).parameters["activation_admin"] for time in (3, 4, 6)] == [0, 7, 7]
    with pytest.raises(ValueError, match="denimTime: expected 6 as in base, found 7"):
        Activations.from_genesis_config({"optimism": {}, "base": base, "denimTime": 7})
    with pytest.raises(ValueError, match="base: expected an object"):
        Activations.from_genesis_config({"optimism": {}, "base": 7})
    with pytest.raises(UnknownForkError, match="zenithTime"):
        Activations.from_genesis_config({"optimism": {}, "base": {**base, "zenith": 9}})


def test_base_has_azul_instead_of_karst():
    chain = Activations.from_genesis_config({"optimism": {}, "jovianTime": 0, "azulTime": 7})
    assert [chain.at(1, time).name for time in (0, 7)] == ["Jovian", "Azul"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"canyonTime": 5, "shanghaiTime": 6}, "shanghaiTime: expected canyonTime 5, found 6"),
        ({"canyonTime": 5, "regolithTime": 6}, "regolithTime 6 comes after canyonTime 5"),
        ({"optimism": []}, "optimism: expected an object"),
        ({"optimism": {"eip1559Elasticity": 0}}, "eip1559Elasticity: expected at least 1"),
    ],
)
def test_a_wrong_configuration_is_refused(config, message):
    with pytest.raises(ValueError, match=message):
        Activations.from_genesis_config({"optimism": {}, **config})


def test_an_unknown_fork_of_the_op_stack_is_refused():
    with pytest.raises(UnknownForkError, match="monsoonTime"):
        Activations.from_genesis_config({"optimism": {}, "monsoonTime": 3})


def test_one_fork_from_the_first_block_on():
    for fork in OP_FORKS:
        assert Activations.always(fork).at(0, 0).name == fork.name
