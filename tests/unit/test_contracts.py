"""Tests that the shipped ABIs of Base's native contracts match the implementation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from eth_abi import encode

from fastevm.contracts import (
    ACTIVATION_REGISTRY,
    ACTIVATION_REGISTRY_ADDRESS,
    B20_ASSET,
    B20_FACTORY,
    B20_FACTORY_ADDRESS,
    B20_STABLECOIN,
    POLICY_REGISTRY,
    POLICY_REGISTRY_ADDRESS,
)
from fastevm.evm.contracts import ContractType
from fastevm.testing.native_calls import NativeState
from tests.shared_data import SHARED
from tests.unit.core.native.base.support import ALICE, BOB, MEMO, Tokens, role, split_types

ADMIN = b"\xad" * 20
ABIS = {
    "IB20Asset.v2": B20_ASSET,
    "IB20Stablecoin.v2": B20_STABLECOIN,
    "IB20Factory.v1": B20_FACTORY,
    "IPolicyRegistry.v3": POLICY_REGISTRY,
    "IActivationRegistry.v2": ACTIVATION_REGISTRY,
}


def test_a_stablecoin_is_created_minted_and_paid_with_a_memo() -> None:
    evm = NativeState("denim").evm
    factory = B20_FACTORY.at(evm, B20_FACTORY_ADDRESS, sender=ADMIN)
    types = ["(uint8,string,string,address,string)"]
    params = encode(types, [(1, "Laptop Dollar", "LUSD", ADMIN, "USD")])
    made = factory.createB20.call(1, b"\x51" * 32, params, [], commit=True)
    assert factory.getB20Address(1, ADMIN, b"\x51" * 32) == made.value
    token = B20_STABLECOIN.at(evm, made.value, sender=ADMIN)
    assert (token.name(), token.currency(), token.decimals()) == ("Laptop Dollar", "USD", 6)
    token.grantRole.call(role("MINT_ROLE"), ADMIN, commit=True)
    token.mint.call(ALICE, 100, commit=True)
    paid = token.transferWithMemo.call(BOB, 40, MEMO, sender=ALICE, commit=True)
    assert [event.name for event in paid.events] == ["Transfer", "Memo"]
    assert token.balanceOf(BOB) == 40
    with pytest.raises(Exception, match="InsufficientBalance"):
        token.transfer.call(BOB, 1_000, sender=ALICE)


def addresses() -> list[tuple[ContractType, bytes, Any]]:
    asset, stablecoin = Tokens("denim", 0), Tokens("denim", 1)
    registry = stablecoin.evm
    return [
        (B20_ASSET, asset.token, asset.evm),
        (B20_STABLECOIN, stablecoin.token, stablecoin.evm),
        (B20_FACTORY, B20_FACTORY_ADDRESS, registry),
        (POLICY_REGISTRY, POLICY_REGISTRY_ADDRESS, registry),
        (ACTIVATION_REGISTRY, ACTIVATION_REGISTRY_ADDRESS, registry),
    ]


def encode_zeros(signature: str) -> bytes:
    """Encodes zeros and empty values as arguments of these types."""
    types = split_types(signature[signature.index("(") + 1 : -1])
    empty = {"string": "", "bytes": b"", "bool": False, "address": bytes(20), "bytes4": bytes(4)}
    values = [
        [] if kind.endswith("]") else empty.get(kind, bytes(32) if kind == "bytes32" else 0)
        for kind in types
    ]
    return encode(types, values)


def test_the_chain_knows_every_function() -> None:
    """A call to an unknown function reverts with the function's selector."""
    for kind, address, evm in addresses():
        functions = [each for found in kind.interface.functions.values() for each in found]
        assert functions
        for function in functions:
            if function.signature.startswith("createB20("):
                continue  # without token parameters the call reverts in the same way
            data = function.selector + encode_zeros(function.signature)
            result = evm.call(address, data, sender=ALICE, gas=5_000_000)
            assert result.output != function.selector, function.signature
        unknown = evm.call(address, b"\x12\x34\x56\x78", sender=ALICE)
        assert unknown.output == b"\x12\x34\x56\x78"


@pytest.mark.parametrize("name", ABIS)
def test_the_interfaces_are_those_of_the_specification(name: str) -> None:
    items = json.loads((SHARED / "base/abi" / f"{name}.json").read_text())
    names: dict[str, set[str]] = {"function": set(), "event": set(), "error": set()}
    for item in items:
        names[item["type"]].add(f"{item['name']}({','.join(i['type'] for i in item['inputs'])})")
    interface = ABIS[name].interface
    functions = (each for found in interface.functions.values() for each in found)
    assert {each.signature for each in functions} == names["function"]
    assert {each.signature for each in interface.errors.values()} == names["error"]
    assert len(interface.events) == len(names["event"])
