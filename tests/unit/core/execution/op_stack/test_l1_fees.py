"""Tests the fees of OP-stack chains: published vectors, and overflow."""

import random

import pytest

from fastevm.conformance.pre_states import Recorded
from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.block.fees import FeeParameters, next_base_fee
from fastevm.core.execution.op_stack.l1_attributes import (
    L1Attributes,
    attributes_of,
    read_l1_attributes,
)
from fastevm.core.execution.op_stack.l1_fees import (
    compressed_size,
    da_footprint_of,
    l1_data_fee_of,
    operator_fee_of,
)
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Header
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState
from fastevm.errors import InvalidTransaction, StateNotKnown
from tests.op_stack_data import hex_data, input_of, vectors_of

KEY = b"\x11" * 32
L1_BLOCK = bytes.fromhex("4200000000000000000000000000000000000015")


def ids(kind):
    return [vector["id"] for vector in vectors_of(kind)]


def attributes(params):
    return L1Attributes(
        base_fee=params.get("l1BaseFee", 0),
        blob_base_fee=params.get("l1BlobBaseFee", 0),
        fee_overhead=params.get("overhead", 0),
        fee_scalar=params.get("scalar", 0),
        base_fee_scalar=params.get("baseFeeScalar", 0),
        blob_base_fee_scalar=params.get("blobBaseFeeScalar", 0),
    )


def data_of_compressed_size(size):
    """Returns data whose compressed size is ``size``: random bytes, then zeros."""
    seed = random.Random(size).randbytes(size)
    for length in range(size, 0, -1):
        for run in range(20):
            data = seed[:length] + bytes(run)
            if compressed_size(data) == size:
                return data
    raise AssertionError(f"no data with the compressed size {size}")


@pytest.mark.parametrize("vector", vectors_of("fastlz"), ids=ids("fastlz"))
def test_the_compressed_size_is_that_of_fastlz(vector):
    assert compressed_size(input_of(vector)) == vector["length"]


@pytest.mark.parametrize("vector", vectors_of("l1fee"), ids=ids("l1fee"))
def test_the_l1_fee_is_the_published_one(vector):
    raw = input_of(vector) if "input" in vector else data_of_compressed_size(vector["fastlz"])
    rules = ["bedrock", "ecotone", "karst"] if vector["rules"] == "any" else [vector["rules"]]
    for fork in rules:
        fee, gas = l1_data_fee_of(raw, attributes(vector["params"]), schedule_for(fork))
        assert fee == vector["l1Fee"]
        assert gas == vector.get("l1GasUsed", gas)


def until_known(remote, run):
    """Fetches missing state and repeats ``run`` until it succeeds. Returns its result."""
    while True:
        try:
            return run()
        except StateNotKnown:
            pass
        except InvalidTransaction as error:
            assert error.code == "needs_state"
        remote.fetch_missing()


@pytest.mark.parametrize(
    ("fork", "unset", "slots"),
    [
        ("bedrock", (), {1, 5, 6}),
        ("ecotone", (), {1, 3, 7}),
        # slots 3 and 7 are not set yet in Ecotone's first block, which pays the fees of Bedrock
        ("ecotone", (3, 7), {1, 3, 5, 6, 7}),
        ("isthmus", (), {1, 3, 7, 8}),
        ("jovian", (), {1, 3, 7, 8}),
    ],
)
def test_a_transaction_reads_the_parameters_that_its_fork_uses(fork, unset, slots):
    storage = {slot: 2**160 + 2**128 + 1 for slot in (1, 3, 5, 6, 7, 8) if slot not in unset}
    sender = public_key_address(KEY)
    accounts = {sender: {"balance": 2**255}, L1_BLOCK: {"code": b"\0", "storage": storage}}
    remote = RemoteState(Recorded(accounts))
    tx = Transaction.build(
        to=b"\x22" * 20, gas_limit=21_000, gas_price=1, chain_id=10, nonce=0
    ).sign(KEY)
    header = Header(
        gas_limit=30_000_000,
        timestamp=12,
        number=1,
        base_fee_per_gas=0,
        excess_blob_gas=0,
        parent_beacon_block_root=bytes(32),
    )

    def run():
        made = BlockBuilder(
            Layer.remote(remote),
            header,
            schedule_for(fork),
            chain_id=10,
            deposit_contract=bytes(20),
            withdrawals=(),
            suspends=True,  # with guessed values, the run could request other slots
        )
        made.begin()
        return made.add(tx)

    assert until_known(remote, run).status == 1
    found = {slot for address, slot in remote.known_values().slots if address == L1_BLOCK}
    assert found == slots


def test_ethereum_has_no_l1_fee():
    known = L1Attributes(base_fee=10**9, base_fee_scalar=10**6, operator_fee_constant=5)
    assert l1_data_fee_of(b"\x02" * 200, known, schedule_for("osaka")) == (0, 0)
    assert operator_fee_of(10**6, known, schedule_for("osaka")) == 0


def test_the_first_block_of_ecotone_pays_as_before():
    old = L1Attributes(base_fee=10**9, fee_overhead=50, fee_scalar=7 * 10**6)
    raw = hex_data("0xdd80808094095e7baea6a6c7c4c2dfeb977efac326af552d878080808080")
    ecotone = schedule_for("ecotone")
    assert l1_data_fee_of(raw, old, ecotone)[0] == 3710000000000
    assert l1_data_fee_of(raw, replace(old, blob_base_fee=1), ecotone)[0] == 0


@pytest.mark.parametrize("fork", ["bedrock", "regolith", "ecotone", "fjord"])
def test_the_l1_fee_stops_at_256_bits(fork):
    high = L1Attributes(
        base_fee=2**256 - 1,
        blob_base_fee=2**256 - 1,
        fee_overhead=2**256 - 1,
        fee_scalar=2**256 - 1,
        base_fee_scalar=2**32 - 1,
        blob_base_fee_scalar=2**32 - 1,
    )
    divisor = {"bedrock": 10**6, "regolith": 10**6, "ecotone": 16 * 10**6, "fjord": 10**12}[fork]
    assert l1_data_fee_of(b"\x01" * 100, high, schedule_for(fork))[0] == (2**256 - 1) // divisor


@pytest.mark.parametrize("vector", vectors_of("operatorFee"), ids=ids("operatorFee"))
def test_the_operator_fee_is_the_published_one(vector):
    known = L1Attributes(
        operator_fee_scalar=vector["scalar"], operator_fee_constant=vector["constant"]
    )
    for fork in ("isthmus", "jovian"):
        assert operator_fee_of(vector["gas"], known, schedule_for(fork)) == vector[fork]


@pytest.mark.parametrize("vector", vectors_of("daFootprint"), ids=ids("daFootprint"))
def test_the_da_footprint_is_the_published_one(vector):
    known = L1Attributes(da_footprint_gas_scalar=vector["scalar"])
    assert da_footprint_of(input_of(vector), known) == vector["footprint"]


@pytest.mark.parametrize("vector", vectors_of("baseFee"), ids=ids("baseFee"))
def test_the_base_fee_is_the_published_one(vector):
    fork = vector["rules"].split(",")[0].replace("pre-canyon", "regolith")
    schedule = schedule_for(fork)
    extra_data = b""
    version = int(schedule.parameters["fee_parameters_version"])
    if version:
        parameters = (vector["denominator"], vector["elasticity"], vector["minBaseFee"])
        extra_data = FeeParameters(version, *parameters).extra_data()
    parent = Header(
        base_fee_per_gas=vector["parentBaseFee"],
        gas_limit=vector["parentGasLimit"],
        gas_used=vector["parentGasMetered"],
        blob_gas_used=0,
        extra_data=extra_data,
    )
    assert next_base_fee(parent, schedule) == vector["baseFee"]


def test_the_da_footprint_counts_like_gas_from_jovian_on():
    extra_data = FeeParameters(2, 250, 6, 0).extra_data()
    parent = Header(base_fee_per_gas=10**9, gas_limit=30_000_000, gas_used=0, extra_data=extra_data)
    full = replace(parent, blob_gas_used=30_000_000)
    jovian = schedule_for("jovian")
    assert next_base_fee(replace(parent, blob_gas_used=0), jovian) == 996_000_000
    assert next_base_fee(full, jovian) == 1_020_000_000


def test_the_first_block_of_holocene_uses_the_constants():
    parent = Header(base_fee_per_gas=10**9, gas_limit=30_000_000, gas_used=10_000_000)
    assert next_base_fee(parent, schedule_for("holocene")) == 1_004_000_000


@pytest.mark.parametrize("vector", vectors_of("extraData"), ids=ids("extraData"))
def test_fee_parameters_are_read_and_written(vector):
    data = hex_data(vector["extraData"])
    found = FeeParameters.read(data)
    assert found is not None
    assert found.extra_data() == data
    assert found.min_base_fee == (vector["minBaseFee"] or 0)
    given = hex_data(vector["eip1559Params"])
    if any(given):
        numbers = (found.denominator, found.elasticity)
        assert b"".join(n.to_bytes(4, "big") for n in numbers) == given


@pytest.mark.parametrize("vector", vectors_of("deposit"), ids=ids("deposit"))
def test_attributes_of_real_blocks_are_read_and_written(vector):
    transaction = Transaction.decode(hex_data(vector["raw"]))
    found = attributes_of((transaction,))
    assert found is not None
    assert found.calldata(transaction.data[:4]) == transaction.data
    expected = vector["attributes"]
    assert found.number == expected["number"]
    assert found.sequence_number == expected["sequenceNumber"]
    assert found.base_fee == expected["baseFee"]


def test_other_transactions_have_no_attributes():
    assert attributes_of(()) is None
    assert attributes_of((Transaction.build(to=bytes(20)),)) is None
    with pytest.raises(ValueError, match="unknown selector 0x00000000"):
        read_l1_attributes(bytes(260))
    with pytest.raises(ValueError, match="expected 164 bytes, found 165"):
        read_l1_attributes(bytes.fromhex("440a5e20") + bytes(161))
