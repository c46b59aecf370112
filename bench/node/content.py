"""Deploys the contracts and mines the block of transfers on both nodes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastevm.bench.node.compared import CHAIN_ID
from fastevm.bench.node.load import LoadError
from fastevm.bench.options import DEFAULT_CASES
from fastevm.bench.programs.assembler import assemble, push
from fastevm.bench.programs.cases import named
from fastevm.bench.programs.loops import balance_slot, transfer, word
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node.dev_accounts import dev_accounts
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import RpcRefusal

TOKEN_CASE: Final = "erc20/balanceOf"
FUNDS: Final = 10**24  # token units for each account
TRANSFERS: Final = 20  # in the block that read requests ask for
WAIT_SECONDS: Final = 10.0
LOOK_EVERY: Final = 0.02
ANSWER: Final = assemble("42 0 MSTORE 32 0 RETURN")

# Emits as many logs as the first calldata word says. Each log has one topic, and its number as
# data.
EMITTER: Final = assemble(
    """
    0 CALLDATALOAD
    again:
    DUP1 0 MSTORE 32 CALLDATALOAD 32 0 LOG1
    1 SWAP1 SUB DUP1 @again JUMPI
    STOP
    """
)


def deployment(code: bytes, storage: dict[int, int]) -> bytes:
    """Returns initcode that writes slots and deploys ``code``."""
    writes = b"".join(
        push(value) + push(slot) + assemble("SSTORE") for slot, value in storage.items()
    )
    head_size = len(writes) + 15
    copy = b"\x61" + len(code).to_bytes(2, "big")  # PUSH2
    return (
        writes
        + copy + b"\x61" + head_size.to_bytes(2, "big") + assemble("0 CODECOPY")
        + copy + assemble("0 RETURN")
        + code
    )  # fmt: skip


def signed(key: bytes, nonce: int, **fields: Any) -> Transaction:
    """Returns a transaction with fees that both nodes accept."""
    defaults = {"gas_limit": 21_000, "max_fee_per_gas": 10**11, "max_priority_fee_per_gas": 10**9}
    chosen = defaults | fields
    return Transaction.build(chain_id=CHAIN_ID, nonce=nonce, **chosen).sign(key)


def shown(data: bytes) -> str:
    return "0x" + data.hex()


@dataclass(frozen=True, slots=True)
class Content:
    """Addresses as hex. ``block`` and ``transactions`` contain the transfers."""

    token: str
    answer: str
    emitter: str
    block: str
    block_hash: str
    transactions: tuple[str, ...]


def submit(client: JsonRpcClient, transactions: Sequence[Transaction]) -> None:
    """Sends transactions in one batch. Raises LoadError if the node rejects a transaction."""
    calls = [("eth_sendRawTransaction", [shown(t.raw)]) for t in transactions]
    for answer in client.batch(calls):
        if isinstance(answer, RpcRefusal):
            raise LoadError(f"a transaction was refused: {answer}")


def receipt_of(client: JsonRpcClient, tx_hash: str) -> dict[str, Any]:
    """Returns the receipt of a transaction once it is mined."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        found = client.call("eth_getTransactionReceipt", tx_hash)
        if found is not None and int(found["blockHash"], 16):
            if int(found["status"], 16) != 1:
                raise LoadError(f"a transaction failed: {found}")
            return dict(found)
        time.sleep(LOOK_EVERY)
    raise LoadError(f"{tx_hash} was not mined in {WAIT_SECONDS:g} s")


def token_code() -> bytes:
    """Returns the compiled ERC-20 of the case file: balances in the mapping at slot 0."""
    case = named(DEFAULT_CASES)[TOKEN_CASE]
    return bytes.fromhex(case["pre"][case["to"]]["code"][2:])


def prepare(client: JsonRpcClient) -> Content:
    """Deploys the contracts from the first account and mines the transfers in one block."""
    accounts = dev_accounts(10)
    key = accounts[0].private_key
    balances = {balance_slot(account.address): FUNDS for account in accounts}
    codes: tuple[tuple[bytes, dict[int, int]], ...] = (
        (token_code(), balances),
        (ANSWER, {}),
        (EMITTER, {}),
    )
    deployed = [
        signed(key, nonce, data=deployment(code, storage), gas_limit=5_000_000)
        for nonce, (code, storage) in enumerate(codes)
    ]
    submit(client, deployed)
    token, answer, emitter = (
        str(receipt_of(client, shown(t.hash))["contractAddress"]) for t in deployed
    )
    head = client.call("eth_blockNumber")
    # wait for an empty block, which has room for all transactions
    while client.call("eth_blockNumber") == head:
        time.sleep(LOOK_EVERY)
    to = bytes.fromhex(token[2:])
    sent = [
        signed(key, len(codes) + i, to=to, data=transfer(word(i + 1)[12:], 5), gas_limit=100_000)
        for i in range(TRANSFERS)
    ]
    submit(client, sent)
    receipts = [receipt_of(client, shown(t.hash)) for t in sent]
    last = receipts[-1]
    if any(receipt["blockHash"] != last["blockHash"] for receipt in receipts):
        raise LoadError("the transfers are not in one block")
    return Content(
        token, answer, emitter, last["blockNumber"], last["blockHash"],
        tuple(shown(t.hash) for t in sent),
    )  # fmt: skip


def token_slot(address: bytes) -> str:
    """Returns the storage position of a balance."""
    return hex(balance_slot(address))
