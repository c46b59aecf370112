"""Tests the transcription of the OP-stack rules against published values, without fastevm.

Each vector of `op-stack/vectors.json`, beside the repository, names its origin: a test or a chain.
Vectors of the origin "own" come from another program of this project.
"""

from typing import Any

import pytest

from tests.op_stack_data import input_of, vectors

from .specification.attributes import (
    Attributes,
    FeeParameters,
    parameters_from_attributes,
    selector_of,
)
from .specification.constants import CREATE2_DEPLOYER, CREATE2_DEPLOYER_CODE
from .specification.deposits import (
    aliased,
    attributes_source_hash,
    decode_deposit,
    upgrade_source_hash,
)
from .specification.encoding import (
    DecodingError,
    from_hex,
    keccak256,
    ordered_root,
    rlp_decode,
    to_hex,
    word,
)
from .specification.fastlz import fastlz_length
from .specification.fees import (
    MILLION,
    da_footprint,
    estimated_size,
    fjord_cost,
    l1_cost,
    l1_gas_used,
    operator_fee,
)
from .specification.forks import Fork
from .specification.headers import (
    FeeRule,
    InvalidHeader,
    decode_extra_data,
    extra_data_for,
    next_base_fee,
)
from .specification.precompile_limits import LIMITS, limit_of
from .specification.receipts import Receipt

Vector = dict[str, Any]
VECTORS: list[Vector] = vectors()
PARAMETERS = {
    "l1BaseFee": "base_fee",
    "overhead": "overhead",
    "scalar": "scalar",
    "l1BlobBaseFee": "blob_base_fee",
    "baseFeeScalar": "base_fee_scalar",
    "blobBaseFeeScalar": "blob_base_fee_scalar",
    "operatorFeeScalar": "operator_fee_scalar",
    "operatorFeeConstant": "operator_fee_constant",
    "daFootprintGasScalar": "footprint_scalar",
}
FORKS_OF_FORMS = {
    "bedrock": Fork.BEDROCK,
    "ecotone": Fork.ECOTONE,
    "isthmus": Fork.ISTHMUS,
    "jovian": Fork.JOVIAN,
}


def of_kind(kind: str) -> Any:
    found = [vector for vector in VECTORS if vector["kind"] == kind]
    return pytest.mark.parametrize("vector", found, ids=[vector["id"] for vector in found])


def parameters_of(fields: dict[str, int]) -> FeeParameters:
    known = dict.fromkeys(FeeParameters.__annotations__, 0)
    known |= {PARAMETERS[name]: value for name, value in fields.items()}
    return FeeParameters(**known)


@of_kind("fastlz")
def test_fastlz(vector: Vector) -> None:
    assert fastlz_length(input_of(vector)) == vector["length"]


@of_kind("l1fee")
def test_l1_fee(vector: Vector) -> None:
    parameters = parameters_of(vector["params"])
    if "fastlz" in vector:
        scaled = 16 * parameters.base_fee * parameters.base_fee_scalar
        scaled += parameters.blob_base_fee * parameters.blob_base_fee_scalar
        assert fjord_cost(vector["fastlz"], scaled) == vector["l1Fee"]
        assert estimated_size(vector["fastlz"]) * 16 // MILLION == vector["l1GasUsed"]
        return
    raw = input_of(vector)
    if raw[0] == 0x7E:
        # Deposits pay no L1 fee.
        assert vector["l1Fee"] == 0
        return
    fork = Fork.named(vector["rules"])
    assert l1_cost(raw, parameters, fork) == vector["l1Fee"]
    if "l1GasUsed" in vector:
        assert l1_gas_used(raw, parameters, fork) == vector["l1GasUsed"]
    if "attributes" in vector:
        attributes = Attributes.decode(decode_deposit(from_hex(vector["attributes"])).data)
        assert l1_cost(raw, parameters_from_attributes(attributes), fork) == vector["l1Fee"]


@of_kind("operatorFee")
def test_operator_fee(vector: Vector) -> None:
    parameters = parameters_of(
        {"operatorFeeScalar": vector["scalar"], "operatorFeeConstant": vector["constant"]}
    )
    assert operator_fee(vector["gas"], parameters, Fork.HOLOCENE) == 0
    assert operator_fee(vector["gas"], parameters, Fork.ISTHMUS) == vector["isthmus"]
    assert operator_fee(vector["gas"], parameters, Fork.JOVIAN) == vector["jovian"]


@of_kind("daFootprint")
def test_da_footprint(vector: Vector) -> None:
    parameters = parameters_of({"daFootprintGasScalar": vector["scalar"]})
    raw = input_of(vector)
    assert estimated_size(fastlz_length(raw)) // MILLION == vector["estimatedBytes"]
    assert da_footprint(raw, parameters, Fork.JOVIAN) == vector["footprint"]
    assert da_footprint(raw, parameters, Fork.ISTHMUS) == 0


@of_kind("deposit")
def test_deposit(vector: Vector) -> None:
    raw = from_hex(vector["raw"])
    deposit = decode_deposit(raw)
    assert deposit.encode() == raw
    assert to_hex(deposit.hash()) == vector["hash"]
    assert [to_hex(deposit.source_hash), to_hex(deposit.sender), to_hex(deposit.to)] == [
        vector[name].lower() for name in ("sourceHash", "from", "to")
    ]
    numbers = [deposit.mint, deposit.value, deposit.gas, deposit.is_system]
    assert numbers == [vector[name] for name in ("mint", "value", "gas", "isSystemTx")]
    attributes = Attributes.decode(deposit.data)
    source = attributes_source_hash(word(attributes.hash), attributes.sequence_number)
    assert to_hex(source) == vector["sourceHashFromAttributes"]
    assert (source == deposit.source_hash) == vector["sourceHashMatches"]


@of_kind("deposit")
def test_attributes_of_a_deposit(vector: Vector) -> None:
    expected = dict(vector["attributes"])
    fork = FORKS_OF_FORMS[expected.pop("format")]
    attributes = Attributes.decode(decode_deposit(from_hex(vector["raw"])).data)
    names = {"baseFee": "base_fee", "blobBaseFee": "blob_base_fee"} | {
        "sequenceNumber": "sequence_number", "batcherHash": "batcher_hash",
    }  # fmt: skip
    for name, value in expected.items():
        number = int(value, 16) if isinstance(value, str) else value
        assert getattr(attributes, names.get(name) or PARAMETERS.get(name) or name) == number
    assert attributes.calldata(fork)[:4] == selector_of(fork)
    assert attributes.calldata(fork) == decode_deposit(from_hex(vector["raw"])).data


@of_kind("sourceHash")
def test_source_hash_of_an_upgrade(vector: Vector) -> None:
    assert vector["domain"] == 2
    assert to_hex(upgrade_source_hash(vector["intent"])) == vector["sourceHash"]


@of_kind("address")
def test_alias(vector: Vector) -> None:
    assert to_hex(aliased(from_hex(vector["l1"]))) == vector["l2"].lower()


@of_kind("receipt")
def test_receipt(vector: Vector) -> None:
    nonce = vector["depositNonce"]
    receipt = Receipt(0x7E, bool(vector["status"]), vector["cumulativeGasUsed"], (), nonce)
    if "inRoot" in vector:
        assert to_hex(receipt.encode(Fork.REGOLITH)) == vector["inRoot"]
    else:
        assert to_hex(receipt.encode(Fork.CANYON)) == vector["raw"]
        assert to_hex(keccak256(receipt.encode(Fork.KARST))) == vector["keccak"]


@of_kind("receiptsRoot")
def test_receipts_root(vector: Vector) -> None:
    receipts = [from_hex(text) for text in vector["receiptsWithoutNonce"]]
    assert to_hex(ordered_root(receipts)) == vector["rootRegolith"]


@of_kind("extraData")
def test_extra_data(vector: Vector) -> None:
    fork = Fork.HOLOCENE if vector["minBaseFee"] is None else Fork.JOVIAN
    constants = FeeRule(80, 60)
    least = vector["minBaseFee"] or 0
    extra_data = extra_data_for(from_hex(vector["eip1559Params"]), least, constants, fork)
    assert to_hex(extra_data) == vector["extraData"]
    assert decode_extra_data(extra_data, fork).extra_data(fork) == extra_data


@of_kind("extraDataInvalid")
def test_invalid_extra_data(vector: Vector) -> None:
    extra_data = from_hex(vector["extraData"])
    of_holocene = "Holocene" in vector["reason"] or extra_data[:1] == b"\0"
    with pytest.raises(InvalidHeader):
        decode_extra_data(extra_data, Fork.HOLOCENE if of_holocene else Fork.JOVIAN)


@of_kind("baseFee")
def test_base_fee(vector: Vector) -> None:
    rule = FeeRule(vector["denominator"], vector["elasticity"], vector["minBaseFee"])
    base_fee = next_base_fee(
        vector["parentBaseFee"], vector["parentGasLimit"], vector["parentGasMetered"], rule
    )
    assert base_fee == vector["baseFee"]


@of_kind("precompileLimit")
def test_limit_of_a_precompile(vector: Vector) -> None:
    address = int(vector["address"], 16)
    for title, largest in vector["largestAllowed"].items():
        fork = Fork.named(title)
        assert limit_of(address, fork) == largest
        assert limit_of(address, Fork(fork - 1)) != largest
    assert len(LIMITS[address]) == len(vector["largestAllowed"])


@of_kind("code")
def test_create2_deployer(vector: Vector) -> None:
    assert from_hex(vector["address"]) == CREATE2_DEPLOYER
    assert from_hex(vector["code"]) == CREATE2_DEPLOYER_CODE


@pytest.mark.parametrize("raw", ["", "7e", "7ec0", "7f" + "c0", "7e" + "80", "7ec3808080"])
def test_what_is_no_deposit_is_refused(raw: str) -> None:
    with pytest.raises(DecodingError):
        decode_deposit(bytes.fromhex(raw))


def test_every_kind_of_vector_is_used_or_named() -> None:
    """Only two kinds have no test here: vaults (see real blocks) and Lagoon's type 0x7d."""
    elsewhere = {"vaults", "postExec"}
    known = {
        mark.args[1][0]["kind"]
        for test in globals().values()
        for mark in getattr(test, "pytestmark", [])
        if mark.args and mark.args[0] == "vector"
    }
    assert known | elsewhere == {vector["kind"] for vector in VECTORS}


def test_rlp_goes_both_ways() -> None:
    raw = from_hex(next(vector for vector in VECTORS if vector["kind"] == "deposit")["raw"])
    assert len(rlp_decode(raw[1:])) == 8
