"""Tests that the C struct of a fork's rules has the values of the Python tables."""

import pytest

from fastevm.core.spec import op_stack
from fastevm.core.spec.blobs import BlobParameters
from fastevm.core.spec.forks import BERLIN, DENIM, FORKS, OSAKA, fork_named
from fastevm.core.spec.opcodes import BY_VALUE
from fastevm.core.spec.parameters import PARAMETERS
from fastevm.core.spec.schedule import ForkSchedule, schedule_for
from fastevm.errors import UnknownForkError

NAMES = [fork.name for fork in FORKS]
# Parameters from which the SSTORE rows are computed. The struct contains only the rows.
OF_THE_ROWS = {"sstore_set_cost", "sstore_reset_cost", "sstore_dirty_cost", "sstore_clear_refund"}
# Parameters that are limits of precompiles. The struct has them in one table.
OF_THE_TABLE = {
    "bn254_pairing_max_input",
    "bls12_g1_msm_max_input",
    "bls12_g2_msm_max_input",
    "bls12_pairing_max_input",
}
# Parameters that are addresses. The struct has them as arrays of limbs.
ADDRESSES = {"activation_admin"}
TABLES = {"gas", "precompile_active", "precompile_max_input", "sstore_cost", "sstore_refund"}


@pytest.mark.parametrize("fork", FORKS, ids=NAMES)
def test_the_struct_holds_every_parameter(fork):
    schedule = schedule_for(fork)
    packed = schedule.packed()
    fields = packed.keys() - TABLES - ADDRESSES
    changing = {p.name for p in PARAMETERS.values() if not p.constant}
    assert fields == changing - OF_THE_ROWS - OF_THE_TABLE - ADDRESSES
    assert {name: packed[name] for name in fields} == {
        name: schedule.parameters[name] for name in fields
    }


def test_addresses_are_packed_as_limbs():
    address = bytes(range(1, 21))
    schedule = schedule_for(DENIM.then("Denim", op_stack.activation_admin(address)))
    limbs = schedule.packed()["activation_admin"]
    assert sum(limb << 64 * i for i, limb in enumerate(limbs)) == int.from_bytes(address, "big")


@pytest.mark.parametrize("fork", FORKS, ids=NAMES)
def test_undefined_opcodes_have_a_negative_price(fork):
    schedule = schedule_for(fork)
    for value, gas in enumerate(schedule.packed()["gas"]):
        op = BY_VALUE.get(value)
        price = schedule.gas(op.mnemonic) if op else None
        assert gas == (-1 if price is None else price)


@pytest.mark.parametrize(
    ("fork", "active"),
    [
        ("Frontier", {1, 2, 3, 4}),
        ("Byzantium", set(range(1, 9))),
        ("Istanbul", set(range(1, 10))),
        ("Cancun", set(range(1, 11))),
        ("Prague", set(range(1, 18))),
        ("Osaka", set(range(1, 19))),
    ],
)
def test_precompiles_are_active_by_number_and_p256verify_is_the_last(fork, active):
    table = schedule_for(fork).packed()["precompile_active"]
    assert {number for number, is_active in enumerate(table) if is_active} == active


def test_prices_are_asked_for_by_name():
    assert schedule_for("Berlin").gas("SLOAD") == 100
    assert schedule_for("Berlin").gas("PUSH0") is None
    assert schedule_for("Berlin").gas("sha3") == 30
    with pytest.raises(KeyError):
        schedule_for("Berlin").gas("NOSUCH")


def test_a_schedule_is_made_once():
    assert schedule_for("Merge") is schedule_for(fork_named("paris"))
    own = BlobParameters(6, 9, 5_007_716)
    assert schedule_for("osaka", blobs=own) is schedule_for(OSAKA)


def test_a_chain_may_set_its_own_blobs():
    blobs = BlobParameters(target=1, max=2, base_fee_fraction=1_000)
    schedule = schedule_for("cancun", blobs=blobs)
    packed = schedule.packed()
    assert (packed["blob_target"], packed["blob_max"]) == (1, 2)
    assert packed["blob_base_fee_fraction"] == schedule.parameters["blob_base_fee_fraction"] == 1000
    assert schedule.blobs == blobs
    assert schedule_for("cancun").blobs == BlobParameters(3, 6, 3_338_477)
    assert schedule_for("shanghai").blobs is None


def test_blobs_before_blobs_are_an_error():
    with pytest.raises(ValueError, match="Shanghai has no blobs"):
        schedule_for("shanghai", blobs=BlobParameters(1, 2, 3))


def test_an_unknown_name_is_an_error():
    with pytest.raises(UnknownForkError, match="did you mean Osaka"):
        schedule_for("osakka")


def test_a_schedule_cannot_be_changed_or_half_built():
    schedule = schedule_for("london")
    with pytest.raises(AttributeError):
        schedule.name = "other"
    with pytest.raises(TypeError):
        schedule.parameters["tx_cost"] = 0
    with pytest.raises(TypeError):
        schedule.opcodes["ADD"] = 0
    with pytest.raises(TypeError):
        ForkSchedule.__new__(ForkSchedule)


def test_a_fork_of_ones_own_is_packed_like_any_other():
    cheap = BERLIN.then("Cheap", *OSAKA.eips)
    assert schedule_for(cheap).name == "Cheap"
    assert schedule_for(cheap).gas("CLZ") == 5
    assert schedule_for(cheap).gas("PUSH0") is None


def test_system_contracts_come_with_their_forks():
    assert schedule_for("shanghai").system_contracts == {}
    assert set(schedule_for("cancun").system_contracts) == {"BEACON_ROOTS_ADDRESS"}
    assert set(schedule_for("prague").system_contracts) == {
        "BEACON_ROOTS_ADDRESS",
        "CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS",
        "HISTORY_STORAGE_ADDRESS",
        "WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS",
    }
    for address in schedule_for("prague").system_contracts.values():
        assert len(address) == 20
