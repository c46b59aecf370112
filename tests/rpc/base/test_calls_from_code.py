"""Tests Base's native contracts over JSON-RPC: with unusual calldata, and called by contracts."""

from collections.abc import Callable

import pytest

from fastevm.bench.programs.assembler import Assembly
from tests.rpc.base.chain import (
    ALLOWLIST,
    FACTORY,
    POLICIES,
    STABLECOIN,
    WAD,
    Base,
    call_data,
    error_of,
    word_of,
)

PROBE = "0x" + "9c" * 20
ZERO = "0x" + "00" * 20
CREATE = "createPolicy(address,uint8)"


def probe(target: str, operation: str, *, gas: int | None = None, value: int = 0) -> bytes:
    """Returns code that forwards its input to ``target``. It returns success and output."""
    code = Assembly()
    code.op("CALLDATASIZE", "PUSH0", "PUSH0", "CALLDATACOPY")
    code.op("PUSH0", "PUSH0", "CALLDATASIZE", "PUSH0")
    if operation == "CALL":
        code.push(value)
    code.push(int(target, 16))
    code.op("GAS") if gas is None else code.push(gas)
    code.op(operation, "PUSH0", "MSTORE", "RETURNDATASIZE", "PUSH0")
    code.push(32)
    code.op("RETURNDATACOPY", "RETURNDATASIZE")
    code.push(32)
    code.op("ADD", "PUSH0", "RETURN")
    return code.assemble()


def probed(base: Base, code: bytes, data: bytes, balance: int = 0) -> tuple[bool, bytes]:
    """Calls code of `probe`. Returns whether its inner call succeeded, and the inner output."""
    override = {PROBE: {"code": "0x" + code.hex(), "balance": hex(balance)}}
    call = {"from": base.owner, "to": PROBE, "input": "0x" + data.hex()}
    answer = bytes.fromhex(base.client.call("eth_call", call, "pending", override)[2:])
    return answer[31] == 1, answer[32:]


@pytest.fixture
def creation(base: Base) -> bytes:
    return call_data(CREATE, base.owner, ALLOWLIST)


def test_value_is_refused(base: Base, creation: bytes) -> None:
    paid = base.revert(POLICIES, creation, **{"from": base.owner, "value": "0x1"})
    assert paid == ("NonPayable",)
    done, output = probed(base, probe(POLICIES, "CALL", value=1), creation, balance=1)
    assert (done, error_of(output)) == (False, ("NonPayable",))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"\xde\xad\xbe\xef" + data[4:],
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data[:4],
        lambda data: data[:-1] + b"\x05",
        lambda data: data[:4] + b"\x01" + data[5:],
    ],
    ids=["unknown selector", "no data", "truncated", "no arguments", "unknown type", "padding"],
)
def test_data_that_is_no_call_reverts(
    base: Base, creation: bytes, spoil: Callable[[bytes], bytes]
) -> None:
    assert base.rejects(POLICIES, spoil(creation))


def test_a_static_call_cannot_change_anything(base: Base, creation: bytes) -> None:
    done, _ = probed(base, probe(POLICIES, "STATICCALL"), creation)
    assert not done
    reading = call_data("isAuthorized(uint64,address)", 0, base.alice)
    assert probed(base, probe(POLICIES, "STATICCALL"), reading) == (True, b"\0" * 31 + b"\1")


def test_revert_data_reaches_the_caller(base: Base) -> None:
    done, output = probed(base, probe(POLICIES, "CALL"), call_data(CREATE, ZERO, ALLOWLIST))
    assert (done, error_of(output)) == (False, ("ZeroAddress",))


def test_a_call_without_enough_gas_fails_alone(base: Base, creation: bytes) -> None:
    done, output = probed(base, probe(POLICIES, "CALL", gas=100), creation)
    assert (done, output) == (False, b"")


def test_a_reverted_mint_leaves_nothing(base: Base) -> None:
    token = base.token(STABLECOIN)
    code = Assembly()
    code.op("CALLDATASIZE", "PUSH0", "PUSH0", "CALLDATACOPY")
    code.op("PUSH0", "PUSH0", "CALLDATASIZE", "PUSH0", "PUSH0")
    code.push(int(token, 16))
    code.op("GAS", "CALL", "PUSH0", "MSTORE")
    code.push(32)
    code.op("PUSH0", "REVERT")
    runtime = code.assemble()
    init = Assembly()
    init.push(len(runtime))
    init.op("DUP1")
    init.push_label(init.data(runtime))
    init.op("PUSH0", "CODECOPY", "PUSH0", "RETURN")
    reverter = base.submit(base.owner, None, init.assemble()).fields["contractAddress"]
    role = word_of("MINT_ROLE")
    base.send(base.owner, token, "grantRole(bytes32,address)", role, reverter)
    receipt = base.submit(base.owner, reverter, call_data("mint(address,uint256)", base.alice, WAD))
    assert (receipt.fields["status"], receipt.events) == ("0x0", [])
    assert base.balance(token, base.alice) == 0
    assert base.number(token, "totalSupply()") == 0


def test_a_prefunded_address_changes_no_price(base: Base) -> None:
    salts = bytes(31) + b"\1", bytes(31) + b"\2"
    used = []
    for salt, balance in zip(salts, (0, 1), strict=True):
        data = base.creation(STABLECOIN, salt)
        token = base.read(
            FACTORY, "getB20Address(uint8,address,bytes32)", "address", 1, base.owner, salt
        )
        if balance:
            base.submit(base.user, token, b"", value=balance)
        used.append(int(base.submit(base.owner, FACTORY, data).fields["gasUsed"], 16))
    assert used[0] == used[1]
