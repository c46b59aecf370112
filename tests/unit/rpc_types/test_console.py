"""Tests the console: Solidity's overloads and formats, and Vyper's print."""

import pytest
from eth_abi import encode

from fastevm.core.primitives.keccak import keccak256
from fastevm.rpc_types.console import SHOWN, overloads, text_of_call

WHO = "0xB0B0b0B0B0B0B0b0B0B0B0b0b0b0b0B0b0b0B0B0"


def call(signature: str, *values: object) -> bytes:
    types = [item for item in signature.partition("(")[2][:-1].split(",") if item]
    return keccak256(signature.encode())[:4] + encode(types, values)


@pytest.mark.parametrize(
    ("signature", "values", "line"),
    [
        ("log()", (), ""),
        ("log(string)", ("100 %",), "100 %"),
        ("log(uint256)", (7,), "7"),
        ("log(uint)", (7,), "7"),
        ("log(int256)", (-7,), "-7"),
        ("logInt(int256)", (-7,), "-7"),
        ("logBytes3(bytes3)", (b"abc",), "0x616263"),
        ("log(bytes)", (b"ab",), "0x6162"),
        ("log(bool,address)", (True, WHO), f"true {WHO}"),
        ("log(string,uint256)", ("value:", 7), "value: 7"),
        ("log(string,uint256)", ("value %d!", 7), "value 7!"),
        ("log(string,string,bool,address)", ("%s-%s %% %s", "a", False, WHO), f"a-false % {WHO}"),
        ("log(string,uint256)", ("%x %s", 255), "0xff %s"),
        ("log(string,uint256)", ("%18e", 15 * 10**17), "1.5"),
        ("log(string,int256)", ("%2e", -5), "-0.05"),
    ],
)
def test_a_line_is_what_the_contract_wrote(signature: str, values: tuple, line: str) -> None:
    assert text_of_call(call(signature, *values)) == line


def test_every_combination_of_four_types_is_known() -> None:
    any_of = {"uint256", "string", "bool", "address"}
    found = {types for types in overloads().values() if set(types) <= any_of}
    assert len(found) == 1 + 4 + 16 + 64 + 256


def test_print_of_vyper_brings_its_types() -> None:
    values = encode(["string", "uint256[2]"], ["balance", [1, 2]])
    data = call("log(string,bytes)", "(string,uint256[2])", values)
    assert text_of_call(data) == "balance [1, 2]"


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x01\x02\x03\x04", call("log(string)", "x")[:40],
        call("log(string,bytes)", "(what)", b""), call("log(string,bytes)", "(uint256)", b""),
    ],
)  # fmt: skip
def test_other_data_is_no_line(data: bytes) -> None:
    assert text_of_call(data) is None


def test_a_line_is_bounded() -> None:
    assert len(text_of_call(call("log(string)", "x" * 2 * SHOWN)) or "") == SHOWN
