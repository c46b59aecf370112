"""Tests further debug_* methods: blocks given as RLP, accounts within a block, and raw data."""

from fastevm import Transaction, keccak256
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.types import Block
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.primitives.replace import replace

from .scenario import SENDER, Side

UNKNOWN = "0x" + "12" * 32


def test_a_block_that_is_given_whole(ours: Side) -> None:
    raw = ours.result("debug_getRawBlock", ours.block("calls"))
    for config in ({}, {"tracer": "callTracer"}, {"tracer": "flatCallTracer"}):
        assert ours.result("debug_traceBlock", raw, config) == (
            ours.result("debug_traceBlockByNumber", ours.block("calls"), config)
        )
    for wrong in ("0x", "0xc0", raw + "00", 5):
        assert ours.ask("debug_traceBlock", wrong)["error"]["code"] == -32602
    parent = ours.result("eth_getBlockByNumber", ours.block("calls"), False)["parentHash"]
    orphan = raw.replace(parent[2:], UNKNOWN[2:])
    error = ours.ask("debug_traceBlock", orphan)["error"]
    assert error == {"code": -32000, "message": f"parent {UNKNOWN} not found"}


def test_a_given_block_may_not_use_more_gas_than_a_request(ours: Side) -> None:
    block = decode_block(bytes.fromhex(ours.result("debug_getRawBlock", ours.block("calls"))[2:]))
    greedy = Transaction.build(
        sender=bytes.fromhex(SENDER[2:]), nonce=0, to=bytes(20), gas_limit=2 * 10**9, gas_price=1
    )
    signed = greedy.sign(b"\x01" * 32)
    for limit, refused in ((4 * 10**9, True), (30_000_000, False)):
        header = replace(block.header, gas_limit=limit)
        answer = ours.ask("debug_traceBlock", hex_bytes(Block(header, (signed,)).rlp()))
        message = answer["error"]["message"]
        assert ("gas, more than" in message) is refused, message


def test_raw_transactions_of_a_block(ours: Side) -> None:
    raws = ours.result("debug_getRawTransactions", ours.block("calls"))
    assert raws == [ours.result("debug_getRawTransaction", ours.hash("calls"))]
    assert ours.result("debug_getRawTransactions", "0x0") == []


def test_an_account_after_a_transaction(ours: Side) -> None:
    for name in ("calls", "transfer", "short life"):
        block = ours.block(name)
        for address in (SENDER, ours.contract("caller"), ours.contract("echo")):
            found = ours.result("debug_accountInfoAt", block, "0x0", address)
            assert found == ours.result("eth_getAccountInfo", address, block)
    error = ours.ask("debug_accountInfoAt", ours.block("calls"), "0x1", SENDER)["error"]
    text = "tx_index 1 out of bounds for block with 1 transactions"
    assert error == {"code": -32602, "message": text}


def test_code_by_its_hash(ours: Side, anvil: Side) -> None:
    code = ours.result("eth_getCode", ours.contract("caller"), "latest")
    code_hash = "0x" + keccak256(bytes.fromhex(code[2:])).hex()
    for side in (ours, anvil):
        assert side.result("debug_codeByHash", code_hash) == code
        assert side.result("debug_codeByHash", UNKNOWN) == "0x"
    assert ours.result("debug_codeByHash", code_hash, "0x0") == "0x"
