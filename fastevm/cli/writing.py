"""Writes the output of the state-transition tool: accounts, result and body."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from fastevm.cli.options import IO_FAULT, STDERR, STDOUT, Options, ToolError
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.block.roots import ordered_root
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import ZERO_ADDRESS, Header, Log, Receipt, Withdrawal
from fastevm.core.primitives import rlp
from fastevm.core.primitives.hex import hex_bytes, hex_word, quantity
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer

Json = dict[str, Any]
# Block hash in receipts. The hash of the block is not known, so this is the value that
# go-ethereum's tool writes. Like that tool, this one writes no gas price.
BLOCK_HASH = bytes.fromhex("1337").ljust(32, b"\0")


class Transition(Struct, frozen=True):
    """An executed block: included and rejected transactions, and the outcome.

    ``fault``: why the whole block is invalid, or None. ``base_fee``: the block's base fee, or the
    given value before London. ``knows_excess_blob_gas``: whether the input determines the excess
    blob gas. ``opcodes``: number of executions by mnemonic, if they were counted.
    """

    schedule: ForkSchedule
    header: Header
    transactions: tuple[Transaction, ...]
    result: BlockResult
    rejected: list[tuple[int, str]]
    withdrawals: tuple[Withdrawal, ...] | None
    fault: str | None
    base_fee: int | None
    knows_excess_blob_gas: bool
    opcodes: dict[str, int] | None = None


class Outputs:
    """Writes values to files, or collects them for standard output and standard error."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.folder = Path(options["output.basedir"] or ".")
        self._streams: dict[str, Json] = {STDOUT: {}, STDERR: {}}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ToolError(IO_FAULT, f"failed creating output basedir: {error}") from None

    def put(self, name: str, value: Any) -> None:
        """Writes a value to the destination that the option ``name`` selects, if not empty."""
        destination = self.options[name]
        if destination in self._streams:
            self._streams[destination][name.removeprefix("output.")] = value
        elif destination:
            try:
                (self.folder / destination).write_text(json.dumps(value, indent=2) + "\n")
            except OSError as error:
                raise ToolError(IO_FAULT, f"failed writing output: {error}") from None

    def close(self) -> None:
        """Writes the collected values to standard output and standard error."""
        for destination, stream in ((STDOUT, sys.stdout), (STDERR, sys.stderr)):
            if self._streams[destination]:
                print(json.dumps(self._streams[destination], indent=2), file=stream, flush=True)


def alloc_json(layer: Layer) -> Json:
    """Returns all accounts of a state, without empty members."""
    return {
        hex_bytes(address): _account_json(layer, address) for address in sorted(layer.addresses())
    }


def _account_json(layer: Layer, address: bytes) -> Json:
    answer: Json = {}
    code, slots, nonce = layer.code(address), layer.storage_items(address), layer.nonce(address)
    if code:
        answer["code"] = hex_bytes(code)
    if slots:
        answer["storage"] = {hex_word(slot): hex_word(slots[slot]) for slot in sorted(slots)}
    answer["balance"] = quantity(layer.balance(address))
    if nonce:
        answer["nonce"] = quantity(nonce)
    return answer


def body_hex(transactions: Iterable[Transaction]) -> str:
    """Returns the RLP of the transactions, as in a block body."""
    items = [rlp.decode(t.raw) if t.type == 0 else t.raw for t in transactions]
    return hex_bytes(rlp.encode(items))


def result_json(transition: Transition) -> Json:
    """Returns the result with the names used by state-transition tools."""
    result, header, rules = transition.result, transition.header, transition.schedule.parameters
    logs = [log for receipt in result.receipts for log in receipt.logs]
    answer: Json = {
        "stateRoot": hex_bytes(result.state_root),
        "txRoot": hex_bytes(ordered_root([t.raw for t in transition.transactions])),
        "receiptsRoot": hex_bytes(result.receipts_root),
        "logsHash": hex_bytes(_logs_hash(logs)),
        "logsBloom": hex_bytes(result.logs_bloom),
        "receipts": _receipts_json(transition),
        "currentDifficulty": None if rules["proof_of_stake"] else quantity(header.difficulty),
        "gasUsed": quantity(result.gas_used),
        "requests": None,
    }
    if transition.rejected:
        answer["rejected"] = [{"index": i, "error": error} for i, error in transition.rejected]
    if transition.base_fee is not None:
        answer["currentBaseFee"] = quantity(transition.base_fee)
    if transition.withdrawals is not None:
        paid = ordered_root([withdrawal.rlp() for withdrawal in transition.withdrawals])
        answer["withdrawalsRoot"] = hex_bytes(paid)
    if header.excess_blob_gas is not None and transition.knows_excess_blob_gas:
        answer["currentExcessBlobGas"] = quantity(header.excess_blob_gas)
        answer["blobGasUsed"] = quantity(result.blob_gas_used or 0)
    if result.requests_hash is not None:
        answer["requestsHash"] = hex_bytes(result.requests_hash)
        answer["requests"] = [hex_bytes(request) for request in result.requests]
    if transition.fault is not None:
        answer["blockException"] = transition.fault
    return answer


def _logs_hash(logs: Iterable[Log]) -> bytes:
    return keccak256(rlp.encode([[log.address, list(log.topics), log.data] for log in logs]))


def _receipts_json(transition: Transition) -> list[Json]:
    answers, log_index = [], 0
    pairs = zip(transition.transactions, transition.result.receipts, strict=True)
    for index, (transaction, receipt) in enumerate(pairs):
        destination = {
            "blockNumber": quantity(transition.header.number),
            "transactionHash": hex_bytes(transaction.hash),
            "transactionIndex": quantity(index),
            "blockHash": hex_bytes(BLOCK_HASH),
        }
        answers.append(_receipt_json(receipt, destination, log_index))
        log_index += len(receipt.logs)
    return answers


def _receipt_json(receipt: Receipt, destination: Json, first_log: int) -> Json:
    succeeded = receipt.status is None or receipt.status == 1
    answer: Json = {
        "root": hex_bytes(receipt.post_state or b""),
        "status": quantity(int(succeeded)),
        "cumulativeGasUsed": quantity(receipt.cumulative_gas_used),
        "logsBloom": hex_bytes(receipt.bloom),
        "logs": [
            {
                "address": hex_bytes(log.address),
                "topics": [hex_bytes(topic) for topic in log.topics],
                "data": hex_bytes(log.data),
                **destination,
                "logIndex": quantity(first_log + offset),
                "removed": False,
            }
            for offset, log in enumerate(receipt.logs)
        ],
        "contractAddress": hex_bytes(receipt.contract_address or ZERO_ADDRESS),
        "gasUsed": quantity(receipt.gas_used),
        "effectiveGasPrice": None,
        **destination,
    }
    if receipt.tx_type:
        answer["type"] = quantity(receipt.tx_type)
    if receipt.blob_gas_used is not None:
        answer["blobGasUsed"] = quantity(receipt.blob_gas_used)
        answer["blobGasPrice"] = quantity(receipt.blob_gas_price or 0)
    return answer
