"""Tests calls to Arbitrum's precompiles: failures, call opcodes, writes, missing state."""

from __future__ import annotations

from typing import Any

import pytest
from eth_abi import encode

from fastevm import EVM
from fastevm.core.native.arbitrum.storage import STATE_ADDRESS
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction
from tests.unit.core.state.remote_source import LayerSource

from .support import (
    AGGREGATOR,
    ALICE,
    BOB,
    GAS,
    GAS_INFO,
    L1,
    L1_NUMBER,
    L2,
    NUMBER,
    OWNER,
    OWNER_ONLY,
    OWNER_PUBLIC,
    RETRYABLE,
    SYS,
    TABLE,
    TIMESTAMP,
    WASM,
    WASM_CACHE,
    ArbOS,
    call_data,
    precompile,
    word,
)

SENDS = (b"\x05",)
TICKET = b"\x77" * 32
# Forwards its call data to an address by an opcode of the CALL family. Returns a success word, then
# the output.
KINDS = {"call": "f1", "callcode": "f2", "delegatecall": "f4", "staticcall": "fa"}


def forwarder(kind: str, to: bytes, value: int = 0) -> bytes:
    send = f"60{value:02x}" if kind in ("call", "callcode") else ""
    code = "365f5f37" + "5f5f365f" + send + "73" + to.hex() + "5a" + KINDS[kind]
    code += "5f52" + "3d5f60203e" + "3d60200160" + "00f3"
    return bytes.fromhex(code)


def forwarded(arbos: ArbOS, kind: str, to: bytes, data: bytes, value: int = 0) -> Any:
    arbos.evm.set_account(BOB, balance=100, code=forwarder(kind, to, value))
    found = arbos.evm.call(BOB, data, gas=GAS, sender=ALICE)
    assert found.success, found
    return bool(word(found.output[:32])), found.output[32:], found.gas_used


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xa3\xb1\xb3",
        b"\x12\x34\x56\x78",
        call_data("arbBlockHash(uint256)", 1)[:-1],
        call_data("sendTxToL1(address,bytes)", ALICE, b"1")[:60],
        call_data("sendTxToL1(address,bytes)", ALICE, b"1")[:-32],
    ],
)
def test_calls_that_do_not_decode_take_all_gas(data: bytes) -> None:
    found = ArbOS().evm.call(SYS, data, gas=GAS)
    assert (found.success, found.output, found.gas_used) == (False, b"", GAS)


def test_huge_offsets_do_not_decode() -> None:
    selector = call_data("sendTxToL1(address,bytes)", ALICE, b"1")[:4]
    for offset in (2**64 - 1, 2**256 - 1, 65, 2**63):
        data = selector + encode(["uint256", "uint256", "uint256"], [1, offset, 2**255])
        found = ArbOS().evm.call(SYS, data, gas=GAS)
        assert (found.success, found.gas_used) == (False, GAS)


def test_views_take_no_value() -> None:
    arbos = ArbOS()
    arbos.evm.set_balance(ALICE, 10)
    found = arbos.run(SYS, "arbBlockNumber()", sender=ALICE, value=1)
    assert (found.success, found.output, found.gas_used) == (False, b"", GAS)
    assert arbos.evm.balance(ALICE) == 10


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_calls(kind: str) -> None:
    view, pure = call_data("arbBlockNumber()"), call_data(
        "mapL1SenderContractAddressToL2Alias(address,address)", ALICE, BOB
    )  # fmt: skip
    success, output, gas = forwarded(ArbOS(), kind, SYS, view)
    is_direct = kind in ("call", "staticcall")
    assert success == is_direct
    assert output == (NUMBER.to_bytes(32, "big") if is_direct else b"")
    assert (gas > GAS * 0.9) != is_direct
    assert forwarded(ArbOS(), kind, SYS, pure)[0]


def test_writes_fail_in_a_static_call() -> None:
    data = call_data("register(address)", ALICE)
    assert forwarded(ArbOS(), "call", TABLE, data)[0]
    assert forwarded(ArbOS(), "staticcall", TABLE, data)[:2] == (False, b"")


def test_callers() -> None:
    arbos = ArbOS()
    data = call_data("myCallersAddressWithoutAliasing()")
    assert forwarded(arbos, "call", SYS, data)[1] == ALICE.rjust(32, b"\0")
    top = call_data("isTopLevelCall()")
    assert word(forwarded(arbos, "call", SYS, top)[1]) == 1
    inner = b"\x1b" * 20
    arbos.evm.set_code(inner, forwarder("call", SYS))
    _, output, _ = forwarded(arbos, "call", inner, top)
    assert word(output[32:]) == 0


def test_precompiles_are_warm() -> None:
    _, _, gas = forwarded(ArbOS(), "call", SYS, call_data("arbBlockNumber()"))
    _, _, other = forwarded(ArbOS(), "call", b"\x99" * 20, call_data("arbBlockNumber()"))
    assert gas < other


@pytest.mark.parametrize(
    ("to", "signature", "first"),
    [
        (GAS_INFO, "getL1FeesAvailable()", 10),
        (GAS_INFO, "getL1RewardRate()", 11),
        (GAS_INFO, "getLastL1PricingUpdateTime()", 20),
        (GAS_INFO, "getMaxTxGasLimit()", 50),
        (GAS_INFO, "getMultiGasBaseFee()", 60),
        (OWNER_PUBLIC, "getScheduledUpgrade()", 20),
        (OWNER_PUBLIC, "isCalldataPriceIncreaseEnabled()", 40),
        (OWNER_PUBLIC, "getAllNativeTokenOwners()", 41),
        (OWNER_PUBLIC, "getParentGasFloorPerToken()", 50),
        (OWNER_PUBLIC, "getAllTransactionFilterers()", 60),
    ],
)
def test_methods_come_with_a_version(to: bytes, signature: str, first: int) -> None:
    versions = (6, 10, 11, 20, 30, 31, 40, 41, 50, 51, 60, 61)
    for version in versions:
        found = ArbOS(version).run(to, signature)
        assert found.success == (version >= first), version
        assert found.success or found.gas_used == GAS


@pytest.mark.parametrize(("number", "first"), [(0x71, 30), (0x72, 30), (0x73, 41), (0x74, 60)])
def test_before_its_version_a_precompile_is_an_empty_account(number: int, first: int) -> None:
    before = max(v for v in (20, 40, 51) if v < first)
    found = ArbOS(before).evm.call(precompile(number), b"1234", gas=GAS)
    assert (found.success, found.output, found.gas_used) == (True, b"", 0)
    assert not ArbOS(60).evm.call(precompile(number), b"1234", gas=GAS).success


def test_a_precompile_runs_in_place_of_its_code() -> None:
    arbos = ArbOS()
    arbos.evm.set_code(SYS, b"\xfe")
    assert arbos.ask(SYS, "arbBlockNumber()", "uint256")[0] == NUMBER


def test_only_owners_call_arb_owner() -> None:
    arbos = ArbOS()
    arbos.put_member((b"\x04",), 1, OWNER)
    found = arbos.run(OWNER_ONLY, "getAllChainOwners()", sender=ALICE)
    assert (found.success, found.gas_used) == (False, GAS)
    found, gas = arbos.ask(OWNER_ONLY, "getAllChainOwners()", "address[]", sender=OWNER)
    assert (found, gas) == (("0x" + OWNER.hex(),), 0)


REFUSED = (
    (OWNER_ONLY, "setL2BaseFee(uint256)", (1,), OWNER, "ArbOwner.setL2BaseFee(uint256)"),
    (OWNER_PUBLIC, "rectifyChainOwner(address)", (BOB,), ALICE, "rectifyChainOwner"),
    (RETRYABLE, "redeem(bytes32)", (TICKET,), ALICE, "ArbRetryableTx.redeem"),
    (RETRYABLE, "keepalive(bytes32)", (TICKET,), ALICE, "ArbRetryableTx.keepalive"),
    (RETRYABLE, "cancel(bytes32)", (TICKET,), ALICE, "ArbRetryableTx.cancel"),
    (WASM, "activateProgram(address)", (BOB,), ALICE, "ArbWasm.activateProgram"),
    (WASM_CACHE, "cacheProgram(address)", (BOB,), OWNER, "ArbWasmCache"),
    (AGGREGATOR, "addBatchPoster(address)", (BOB,), OWNER, "ArbAggregator"),
    (SYS, "sendMerkleTreeState()", (), ALICE, "ArbSys.sendMerkleTreeState"),
    (precompile(0x73), "mintNativeToken(uint256)", (1,), OWNER, "ArbNativeTokenManager"),
    (precompile(0x74), "isTransactionFiltered(bytes32)", (TICKET,), ALICE, "isTransactionFiltered"),
)


def owned() -> ArbOS:
    arbos = ArbOS(61)
    arbos.put_member((b"\x04",), 1, OWNER)
    arbos.put_member((b"\x0a",), 1, OWNER)
    arbos.put((b"\x02", TICKET), 5, TIMESTAMP)
    return arbos


@pytest.mark.parametrize(("to", "signature", "values", "sender", "name"), REFUSED)
def test_what_is_not_supported_is_refused_by_name(
    to: bytes, signature: str, values: tuple[Any, ...], sender: bytes, name: str
) -> None:
    arbos = owned()
    with pytest.raises(InvalidTransaction, match="not supported") as caught:
        arbos.run(to, signature, *values, sender=sender)
    assert caught.value.code == "unsupported"
    assert name in caught.value.message
    assert to.hex()[-4:] in caught.value.message.lower()


def test_a_refusal_ends_the_whole_transaction() -> None:
    arbos = owned()
    arbos.evm.set_account(BOB, balance=1, code=forwarder("call", WASM))
    arbos.evm.set_balance(ALICE, 10**18)
    before = arbos.evm.state
    with pytest.raises(InvalidTransaction, match=r"ArbWasm\.activateProgram"):
        arbos.evm.transact(
            BOB, call_data("activateProgram(address)", BOB), sender=ALICE, gas=200_000,
            max_fee_per_gas=10**9,
        )  # fmt: skip
    assert arbos.evm.state is before
    assert arbos.evm.nonce(ALICE) == 0
    assert arbos.ask(SYS, "arbBlockNumber()", "uint256")[0] == NUMBER


def test_callers_without_rights_get_failures() -> None:
    arbos = owned()
    for to, signature, values, sender, _ in REFUSED:
        if sender == OWNER:
            found = arbos.run(to, signature, *values, sender=BOB)
            assert (found.success, found.output) == (False, b"")


@pytest.mark.parametrize("prefix", ["eff000", "eff002"])
def test_stylus_contracts_are_refused(prefix: str) -> None:
    arbos = ArbOS()
    arbos.evm.set_code(BOB, bytes.fromhex(prefix) + b"\x00" * 8)
    with pytest.raises(InvalidTransaction, match="Stylus") as caught:
        arbos.evm.call(BOB)
    assert "0xb0b0b0" in caught.value.message.lower()
    arbos.evm.set_code(ALICE, forwarder("call", BOB))
    with pytest.raises(InvalidTransaction, match="Stylus"):
        arbos.evm.call(ALICE)
    arbos.evm.set_code(BOB, b"\xef\x01" + b"\x00" * 8)
    assert arbos.evm.call(BOB).error == "invalid opcode"
    early = ArbOS(20)
    early.evm.set_code(BOB, bytes.fromhex(prefix) + b"\x00" * 8)
    assert early.evm.call(BOB).error == "invalid opcode"


def creation(code: bytes) -> bytes:
    return bytes.fromhex("67") + code.ljust(8, b"\0") + bytes.fromhex("60c01b5f5260085ff3")


@pytest.mark.parametrize(
    ("version", "code", "works"),
    [(51, "eff00000", True), (51, "ef000000", False), (20, "eff00000", False)],
)
def test_stylus_code_may_be_created(version: int, code: str, works: bool) -> None:
    arbos = ArbOS(version)
    arbos.evm.set_balance(ALICE, 10**18)
    result = arbos.evm.transact(
        None, creation(bytes.fromhex(code)), sender=ALICE, gas=500_000, max_fee_per_gas=10**9
    )
    assert result.success == works, result


# --- messages to L1 -------------------------------------------------------------------------------


class Tree:
    """The Merkle accumulator of messages to L1: the hash of a full subtree or None, per level."""

    def __init__(self) -> None:
        self.size, self.partials = 0, []

    def append(self, item: bytes) -> list[tuple[int, bytes]]:
        """Adds a message. Returns level and hash of each new inner node."""
        node, level, nodes = keccak256(item), 0, []
        while level < len(self.partials) and self.partials[level] is not None:
            node = keccak256(self.partials[level] + node)
            self.partials[level] = None
            level += 1
            nodes.append((level, node))
        if level == len(self.partials):
            self.partials.append(None)
        self.partials[level] = node
        self.size += 1
        return nodes


def number(value: int) -> bytes:
    return value.to_bytes(32, "big")


def test_messages_to_l1() -> None:
    arbos, tree = ArbOS(), Tree()
    arbos.evm.set_balance(ALICE, 10**18)
    update = keccak256(b"SendMerkleUpdate(uint256,bytes32,uint256)")
    sent = bytes.fromhex("3e7aafa77dbf186b7fd488006beff893744caa3c4f6f299e8a709fa2087374fc")
    for index in range(9):
        data, value = b"\x5a" * (index * 13), index
        found = arbos.run(
            SYS, "sendTxToL1(address,bytes)", BOB, data, sender=ALICE, value=value, commit=True
        )
        assert found.success
        assert word(found.output) == index
        fields = number(NUMBER) + number(L1_NUMBER) + number(TIMESTAMP) + number(value)
        digest = keccak256(ALICE + BOB + fields + data)
        nodes = tree.append(digest)
        logs = [(log.address, log.topics, log.data) for log in found.logs]
        expected = [
            (SYS, (update, number(0), node, number(level << 192 | index)), b"")
            for level, node in nodes
        ]
        content = encode(
            ["address", *["uint256"] * 4, "bytes"],
            [ALICE, NUMBER, L1_NUMBER, TIMESTAMP, value, data],
        )
        topics = (sent, BOB.rjust(32, b"\0"), digest, number(index))
        assert logs == [*expected, (SYS, topics, content)]
        assert arbos.stored(SENDS, 0) == tree.size
        for level, partial in enumerate(tree.partials):
            assert arbos.stored(SENDS, 2 + level) == word(partial or b"")
    assert arbos.evm.balance(SYS) == 0
    assert arbos.evm.balance(ALICE) == 10**18 - sum(range(9))


def test_gas_of_a_message() -> None:
    arbos = ArbOS()
    found = arbos.run(SYS, "withdrawEth(address)", BOB, sender=ALICE)
    hashing = 30 + 6 * 6
    storage = 800 + 20_000 + 20_000 + 800
    log = 375 + 4 * 375 + 8 * 7 * 32
    assert found.gas_used == 800 + 3 + hashing + storage + log + 3


def test_value_is_not_sent_where_tokens_have_owners() -> None:
    arbos = owned()
    arbos.evm.set_balance(ALICE, 10)
    found = arbos.run(SYS, "withdrawEth(address)", BOB, sender=ALICE, value=1)
    assert (found.success, found.output) == (False, b"")
    assert found.gas_used == 800 + 3 + 800
    assert arbos.run(SYS, "withdrawEth(address)", BOB, sender=ALICE).success


# --- the table of addresses -----------------------------------------------------------------------


def test_addresses_are_registered_and_compressed() -> None:
    arbos = ArbOS()
    accounts = [bytes([index + 1]) * 20 for index in range(130)]
    long_form = b"\x94" + ALICE
    found = arbos.ask(TABLE, "compress(address)", "bytes", ALICE)
    assert found == (long_form, 800 + 3 + 800 + 3 * 3)
    for index, account in enumerate(accounts):
        result = arbos.run(TABLE, "register(address)", account, commit=True)
        assert word(result.output) == index
        assert result.gas_used == 800 + 3 + 800 + 800 + 3 * 20_000 + 3
    again = arbos.ask(TABLE, "register(address)", "uint256", accounts[5])
    assert again == (5, 800 + 3 + 800 + 3)
    assert arbos.ask(TABLE, "size()", "uint256") == (130, 1603)
    assert arbos.ask(TABLE, "addressExists(address)", "bool", accounts[7]) == (True, 1606)
    assert arbos.ask(TABLE, "addressExists(address)", "bool", ALICE)[0] is False
    assert arbos.ask(TABLE, "lookup(address)", "uint256", accounts[7]) == (7, 1606)
    assert not arbos.run(TABLE, "lookup(address)", ALICE).success
    found = arbos.ask(TABLE, "lookupIndex(uint256)", "address", 129)
    assert found == ("0x" + accounts[129].hex(), 2406)
    assert not arbos.run(TABLE, "lookupIndex(uint256)", 130).success
    for index, form in ((0, b"\x80"), (1, b"\x01"), (127, b"\x7f"), (128, b"\x81\x80")):
        assert arbos.ask(TABLE, "compress(address)", "bytes", accounts[index])[0] == form
        found = arbos.ask(
            TABLE, "decompress(bytes,uint256)", "address,uint256", b"\xaa" + form + b"\xbb", 1
        )
        assert found[0] == ("0x" + accounts[index].hex(), len(form))
    found = arbos.ask(TABLE, "decompress(bytes,uint256)", "address,uint256", long_form, 0)
    assert found[0] == ("0x" + ALICE.hex(), 21)


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"", 0), (b"\x01", 2), (b"\x01", 2**256 - 1), (b"\x00", 0), (b"\x81\x01", 0), (b"\xc0", 0),
        (b"\x95" + bytes(21), 0), (b"\x94" + bytes(19), 0), (b"\x82\x00\x01", 0), (b"\x05", 0),
    ],
)  # fmt: skip
def test_what_does_not_decompress(data: bytes, offset: int) -> None:
    found = ArbOS().run(TABLE, "decompress(bytes,uint256)", data, offset)
    assert (found.success, found.output) == (False, b"")
    assert found.gas_used < GAS
    assert ArbOS(10).run(TABLE, "decompress(bytes,uint256)", data, offset).gas_used == GAS


# --- state that is fetched ------------------------------------------------------------------------


def test_a_remote_state_gives_the_results_of_one_in_memory() -> None:
    here, remote = owned(), owned()
    for item in (here, remote):
        item.put((L1,), 7, 5)
        item.put((L2,), 3, 6)
        item.put((b"\x06",), 1 + (L1_NUMBER - 1) % 256, 99)
        item.evm.set_account(BOB, balance=9, code=b"\x60\x01")
        item.evm.set_code(ALICE, bytes.fromhex("60014303405f5260205ff3"))
    source = LayerSource(here.evm.state)
    remote.evm.state = Layer.remote(source)
    calls = (
        (GAS_INFO, call_data("getPricesInWei()")),
        (OWNER_PUBLIC, call_data("getAllChainOwners()")),
        (precompile(0x65), call_data("getCode(address)", BOB)),
        (SYS, call_data("withdrawEth(address)", BOB)),
        (SYS, call_data("withdrawEth(address)", BOB)),
        (TABLE, call_data("register(address)", BOB)),
        (RETRYABLE, call_data("getTimeout(bytes32)", TICKET)),
        (ALICE, b""),
    )
    for to, data in calls:
        expected = here.evm.call(to, data, gas=GAS, sender=BOB, commit=True)
        found = remote.evm.call(to, data, gas=GAS, sender=BOB, commit=True)
        assert expected.success, (to, data)
        assert (found.output, found.gas_used) == (expected.output, expected.gas_used)
    for slot_, value in here.evm.state.storage_items(STATE_ADDRESS).items():
        assert remote.evm.storage(STATE_ADDRESS, slot_) == value
    with pytest.raises(InvalidTransaction, match="ArbRetryableTx"):
        remote.run(RETRYABLE, "redeem(bytes32)", TICKET)


def test_other_chains_have_empty_accounts_there() -> None:
    for fork in ("osaka", "denim"):
        found = EVM(fork).call(SYS, call_data("arbBlockNumber()"), gas=GAS)
        assert (found.success, found.output, found.gas_used) == (True, b"", 0)
