"""Tests real headers of Base under the fork Beryl, and the first transaction of each block.

Source: recorded from the chain by slvDev/sieve, tests/fixtures/base-reference, at 594928843a9b.
"""

from typing import Any

import pytest

from fastevm.chain import named as chains
from fastevm.core.execution.block.fees import FeeParameters
from fastevm.core.execution.op_stack.l1_attributes import (
    DEPOSITOR,
    attributes_source_hash,
    read_l1_attributes,
)
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.rpc_types.blocks import header_from_json

COMMON = {
    "sha3Uncles": "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347",
    "miner": "0x4200000000000000000000000000000000000011",
    "difficulty": "0x0",
    "gasLimit": "0x17d78400",
    "extraData": "0x01000000640000000500000000004c4b40",
    "nonce": "0x0000000000000000",
    "baseFeePerGas": "0x4c4b40",
    "excessBlobGas": "0x0",
    "requestsHash": "0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
}
FIRST = {
    **COMMON,
    "number": "0x2d987df",
    "timestamp": "0x6a3d6ca1",
    "gasUsed": "0x1294bb8",
    "blobGasUsed": "0x3b5108",
    "parentHash": "0xf27d863c8ba2d8a7fceb84e316eee3f0c7eddd5224cc9bf50c75e4f04cb4de3a",
    "stateRoot": "0x72f0a89471a8532c3e5c15266baa7b050c2f12ce01e219557862060ec17cf952",
    "transactionsRoot": "0xdfb5c3e9d211b0a71f378ba8b666168365b6685753d8b2cdc38107a68f94c3cb",
    "receiptsRoot": "0xf7f4ad9e79e9a3e58b0170d72117323615009f5236cdccc3884af7e1e54faab6",
    "mixHash": "0x8651cb6da7817f464379a8829802f9e9f2d7c95b4343462857183f40d2ab8a4a",
    "withdrawalsRoot": "0xec0d933c2b9810d6c51f7229018e7e0f6d6c8b60a471995bff5a924039f7677e",
    "parentBeaconBlockRoot": "0x4d5178347c9dfebf24c73971fb5965bdfeba3bf28770dd0b4a46c000d39a666e",
    "logsBloom": (
        "0x00008000823011002008400504602100106000610882110000548600240160101f302640910252c022004a1080"
        "23140600418000854a208882301503323800200c0000a028c004080006000881742860e180810219491820"
        "45c0660024481d5020809800162720402700060100120820c0051050140504242064081000895c200489060"
        "40c015830c0024620c0128010488096cb61240190610a18a4024200c80a400000950100000a801821809004"
        "28000d08021c191400004410280000010128008c0a22080c144212006c006c1111e008e0c2060246048080"
        "1002882820045910111510400920764620440a080500a0e414800c4064442000404180878010"
    ),
}
LATER = {
    **COMMON,
    "number": "0x318514e",
    "timestamp": "0x6abaff7f",
    "gasUsed": "0x171b9b5",
    "blobGasUsed": "0x34d414",
    "parentHash": "0xe6f1517c99e8262daa0322d2f213994297f008b13cfab20bb1e93f7ecd341316",
    "stateRoot": "0xfc3bff701e895dfe123f6f1cc07053166dd9d87f698bfb428e4ef7abf235513d",
    "transactionsRoot": "0x0ea49766b8aa63cf41eccf6ac02a7a73e30892d1d509b8eb4fe5118eec3e40ad",
    "receiptsRoot": "0x591c2c955998400216ad994c273d8bf60c2415495fa18ba1543b013d7c6664d9",
    "mixHash": "0x4e0bc9fd761b9ce74135fc7569f51663631af7b271523a3aea5b1be0de3b5b26",
    "withdrawalsRoot": "0x9ef00fc19d5a9cdce094f47560ba454eb31d69c3324ebda1563fad9310368849",
    "parentBeaconBlockRoot": "0xa013fccefd71f4241d476238004d130e8b5173b24afe2c770252450f1e173acf",
    "logsBloom": (
        "0x57b635010740f27ab1191801b61a90a3f7750640f33ed281a3d66a1532a418c3552dc009532a2371c667c831"
        "cf26745fc7589a2c5e50b316b7624e0361f44b17546a33f2045e94be8714a63db411003cf049ea597acdd8b8"
        "30c2c55cb96170406b8201bbee5a082015768d3116278babd3a63a07db9517200987d7de200ec3c698040f0d"
        "ba00422c45cd2eaad9627b205af7a7897824c2497d9af564850595a00a442202abd47888c45af9dfd2138088"
        "76156403aada352ef3cfbb293c05c18fa815133a6cc79ce968f51caa2861f8a31449846e363e54900b5007d3"
        "9ad9fb7944dc2a9895054820335e06a9089b17e6e4abbea0e1ae35537719744d587a0ae4"
    ),
}
HASHES = [
    (FIRST, "f18566e12e02e8847afeeede971bec19e0f26f840742a0b44724b2b02bd49127"),
    (LATER, "2b3320897a0259e7fe2c37e05c2cdbbbab4549646ab803b5fba3479d852b375e"),
]
# The L1 attributes deposit of each block: source hash, L1 block number, calldata, transaction hash.
DEPOSITS = [
    (
        "2e138fae623df64b3f58d6bdd0cffc0195a840d2721e13c6b1e0be4fe772b5ca",
        25_396_285,
        "3db6be2b000008dd00101c120000000000000002000000006a3d6c63000000000183843d"
        "000000000000000000000000000000000000000000000000000000002c56b8e9"
        "0000000000000000000000000000000000000000000000000000000002d015f5"
        "6b6f2c1380f4afdc64729792ef97e96e78dbab30e3631b1bf13e21ade9e433b4"
        "0000000000000000000000005050f69a9786f081509234f1a7f4684b5e5b76c9"
        "0000000000000000000000000094",
        "be4be074c62e662a357a8088b8485448ab0351990cb4cac453778888276ed324",
    ),
    (
        "ff54cae4303e432d83b73f7363b3adfa8ded33235abe405f8090b4947ba133b1",
        26_079_381,
        "3db6be2b000008dd00101c120000000000000002000000006abafecb00000000018df095"
        "00000000000000000000000000000000000000000000000000000000316a09d2"
        "0000000000000000000000000000000000000000000000000000000002a2474a"
        "1f5577cd270881877899d7ea38d8ad51eb10950cdd048586129d4f9c75121dc1"
        "0000000000000000000000005050f69a9786f081509234f1a7f4684b5e5b76c9"
        "0000000000000000000000000094",
        "aeeb032c3a253dd10ea9fbdfc13ce892281b3871ba440a748c6d4256e3517260",
    ),
]


@pytest.mark.parametrize(("fields", "expected"), HASHES)
def test_a_header_has_the_hash_of_the_chain(fields: dict[str, Any], expected: str) -> None:
    header = header_from_json(fields)
    assert header.hash.hex() == expected
    fork = chains.find("base").config().activations.at(header.number, header.timestamp)
    assert fork.name == "Beryl"


def test_the_first_block_of_beryl_has_the_time_of_the_schedule() -> None:
    header = header_from_json(FIRST)
    assert (header.number, header.timestamp) == (47_810_527, 1_782_410_401)
    activations = chains.find("base").config().activations
    assert activations.at(header.number - 1, header.timestamp - 2).name == "Azul"


def test_a_header_has_the_fee_parameters_of_base() -> None:
    header = header_from_json(LATER)
    found = FeeParameters.read(header.extra_data)
    assert found is not None
    assert (found.denominator, found.elasticity, found.min_base_fee) == (100, 5, 5_000_000)
    assert header.base_fee_per_gas == found.min_base_fee


@pytest.mark.parametrize(("source", "l1_number", "data", "expected"), DEPOSITS)
def test_the_l1_attributes_have_the_hash_of_the_chain(
    source: str, l1_number: int, data: str, expected: str
) -> None:
    deposit = Transaction.build(
        type=0x7E, source_hash=bytes.fromhex(source), sender=DEPOSITOR,
        to=bytes.fromhex("4200000000000000000000000000000000000015"), mint=0, value=0,
        gas_limit=1_000_000, is_system=False, data=bytes.fromhex(data),
    )  # fmt: skip
    assert deposit.hash.hex() == expected
    attributes = read_l1_attributes(deposit.data)
    assert attributes.number == l1_number
    assert attributes_source_hash(attributes).hex() == source
