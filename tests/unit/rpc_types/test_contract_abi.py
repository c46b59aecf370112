"""Tests the reading of signatures, and of values that eth-abi has encoded."""

import pytest
from eth_abi import encode

from fastevm.core.primitives.keccak import keccak256
from fastevm.rpc_types.contract_abi import (
    TEXT_LIMIT,
    VALUES_LIMIT,
    AbiError,
    Parameter,
    decode,
    entry_of_json,
    parse_entry,
    parse_types,
    texts_of,
)

B0 = "0x" + "b0" * 20


@pytest.mark.parametrize(
    ("text", "signature"),
    [
        ("function transfer(address to, uint256 value)", "transfer(address,uint256)"),
        ("function f()", "f()"),
        ("function f(uint a, int[] b) view returns (bool)", "f(uint256,int256[])"),
        ("event E(address indexed who, bytes32[2] memory x)", "E(address,bytes32[2])"),
        ("error Bad((uint8 a, (bool, string)[] b)[3] c, bytes)",
         "Bad((uint8,(bool,string)[])[3],bytes)"),
        ("function f(tuple(uint256 a) x)", "f((uint256))"),
    ],
)  # fmt: skip
def test_a_signature_is_read_as_it_is_hashed(text: str, signature: str) -> None:
    entry = parse_entry(text)
    assert entry.signature == signature
    assert entry.hash == keccak256(signature.encode())


@pytest.mark.parametrize(
    "text",
    [
        "", "function", "function f", "function f(", "function f(uint7)", "function f(bytes33)",
        "function f(x)", "function f(uint256", "function 1f()", "struct S(uint256)", "event (bool)",
        "function f(uint256,)", "function f(" + "(" * 30, "function f(uint256" + "[]" * 30 + ")",
        "function f(" + "bool," * TEXT_LIMIT + "bool)",
    ],
)  # fmt: skip
def test_what_is_no_signature_is_refused(text: str) -> None:
    with pytest.raises(AbiError):
        parse_entry(text)


def test_an_abi_file_says_the_same() -> None:
    members = [{"name": "a", "type": "uint8"}, {"name": "b", "type": "string"}]
    inputs = [
        {"name": "who", "type": "address", "indexed": True},
        {"name": "what", "type": "tuple[]", "components": members},
    ]
    entry = entry_of_json({"type": "event", "name": "E", "inputs": inputs})
    assert entry == parse_entry("event E(address indexed who, (uint8 a, string b)[] what)")
    assert entry_of_json({"type": "constructor", "inputs": []}) is None
    for bad in ({"type": "error"}, {"name": "f"}, {"name": "f", "inputs": [{"type": 1}]}):
        with pytest.raises(AbiError):
            entry_of_json(bad)


@pytest.mark.parametrize(
    ("types", "values", "shown"),
    [
        (["uint256", "int8", "bool"], [2**256 - 1, -5, True], f"{2**256 - 1}, -5, true"),
        (["address", "bytes4"], [B0, b"abcd"],
         "0xB0B0b0B0B0B0B0b0B0B0B0b0b0b0b0B0b0b0B0B0, 0x61626364"),
        (["string", "bytes"], ['say "hi"', b"\x01\x02"], '"say \\"hi\\"", 0x0102'),
        (["uint256[]", "string[2]"], [[1, 2, 3], ["a", "b"]], '[1, 2, 3], ["a", "b"]'),
        (["(uint8,(bool,string)[])", "bytes"], [(7, [(True, "x"), (False, "y")]), b""],
         '(7, [(true, "x"), (false, "y")]), 0x'),
        (["(uint8,bool)[2][]"], [[[(1, True), (2, False)]]], "[[(1, true), (2, false)]]"),
    ],
)  # fmt: skip
def test_values_are_those_that_were_encoded(types: list[str], values: list, shown: str) -> None:
    inputs = parse_types(f"({','.join(types)})")
    assert texts_of(inputs, decode(inputs, encode(types, values))) == shown


@pytest.mark.parametrize("types", ["(string)", "(uint256[])", "(uint256)", "((string,uint256)[3])"])
def test_data_that_ends_early_is_refused(types: str) -> None:
    inputs = parse_types(types)
    for data in (b"", bytes(31), b"\xff" * 32, b"\xff" * 96, bytes(31) + b"\x20" + b"\xff" * 32):
        if types == "(uint256)" and len(data) >= 32:
            continue
        with pytest.raises(AbiError):
            decode(inputs, data)


@pytest.mark.parametrize("kind", ["uint256[][][][][]", "()[]", "uint256[0][]", "uint256[999999]"])
def test_a_few_bytes_never_mean_many_values(kind: str) -> None:
    """All offsets refer to one array, so the data would decode to more values than they have."""
    word = (32).to_bytes(32)
    data = word + VALUES_LIMIT.to_bytes(32) + bytes(32) * VALUES_LIMIT
    with pytest.raises(AbiError):
        decode([Parameter(kind)], data.replace(bytes(32), word))


def test_offsets_to_the_same_bytes_never_mean_many_bytes() -> None:
    blob = (2_000).to_bytes(32) + bytes(2_016)
    count = 500
    heads = (32 * count).to_bytes(32) * count  # every offset points to the same blob
    data = (32).to_bytes(32) + count.to_bytes(32) + heads + blob
    with pytest.raises(AbiError, match="refers to itself too often"):
        decode(parse_types("(bytes[])"), data)
    assert decode(parse_types("(bytes[])"), encode(["bytes[]"], [[bytes(2_000)] * count]))
