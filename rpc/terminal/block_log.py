"""Creates log records of blocks and transactions as JSON values, with known names.

A transaction that runs code is executed again to get its call tree, because a receipt contains
neither the reason of a failure nor the console output.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

import msgspec

from fastevm import tracing
from fastevm.core.primitives.hex import checksum_address, hex_bytes
from fastevm.core.primitives.safe_text import cut
from fastevm.errors import FastevmError, StateUnavailableError, UnknownBlockError
from fastevm.rpc.contract_files import ContractFiles
from fastevm.rpc.failure import Failure, failure_of_transaction
from fastevm.rpc.terminal.lines import Json
from fastevm.rpc.terminal.options import TerminalOptions
from fastevm.rpc.terminal.rerun_budget import LONGEST, SPENT, TOO_LARGE, TREE_SIZE, RerunBudget
from fastevm.rpc.view import View, base_of
from fastevm.rpc_types import console
from fastevm.rpc_types.contract_abi import Entry
from fastevm.rpc_types.contract_names import Names, common_entries, entries_of, shortened
from fastevm.tracing import TraceRequest

CALLS: Final = TraceRequest(tracer="callTracer", timeout=LONGEST)
CALLS_AND_LOGS: Final = TraceRequest(tracer="callTracer", config={"withLog": True}, timeout=LONGEST)
LOGS_LIMIT: Final = 50  # logs shown per transaction
CONSOLE_LIMIT: Final = 200  # console lines shown per transaction
CALLS_LIMIT: Final = 500  # calls shown per tree
CREATIONS_LIMIT: Final = 50  # created contracts shown per transaction
LAST_PRECOMPILE: Final = 0xFFFF  # addresses up to this may be precompiles, which run without code
LEFT_OUT: Final = "left out: the chain was reverted"
NO_CODE: Final = "no code at this address"
FAILED: Final = 0
SELECTOR: Final = 4


class Recorder:
    """Creates the records of blocks. With ``traces``, records include call trees."""

    def __init__(self, names: Names, contracts: ContractFiles, *, traces: bool = False) -> None:
        self.names, self.contracts, self.traces = names, contracts, traces
        self.budget = RerunBudget()
        # imported here, so that the first block does not wait for the import
        self._trace = tracing.trace_transaction
        # whether a transaction has created or run code that writes to the console
        self.logs_are_there = False

    def block(self, view: View) -> Iterator[Json]:
        """Yields a record per transaction, then the block's record. Skips empty blocks."""
        block = view.block
        try:
            view.receipts  # noqa: B018 the view keeps them
        except FastevmError:
            pass  # the chain has dropped the block
        else:
            for index in range(len(block.transactions)):
                yield self.transaction(view, index)
        if block.transactions:
            yield {
                "event": "block",
                "number": block.number,
                "hash": hex_bytes(block.hash),
                "transactions": len(block.transactions),
                "gasUsed": block.header.gas_used,
            }

    def transaction(self, view: View, index: int) -> Json:
        """Returns the record of a transaction."""
        transaction, receipt = view.block.transactions[index], view.receipts[index]
        record: Json = {
            "event": "transaction",
            "hash": hex_bytes(transaction.hash),
            "block": view.block.number,
            "index": index,
            "from": _address(transaction.sender),
        }
        if transaction.to is None:
            record["contract"] = _address(receipt.contract_address)
        else:
            record["to"] = _address(transaction.to)
            if transaction.data:
                record["function"] = self.called(transaction.data)
        name = self.contract_name(view, transaction.to or receipt.contract_address)
        if name is not None:
            record["contractName"] = name
        if transaction.value:
            record["value"] = str(transaction.value)
        record |= {"gasUsed": receipt.gas_used, "gas": transaction.gas_limit}
        record["status"] = receipt.status
        if receipt.logs:
            record["logs"] = [self.log(log) for log in receipt.logs[:LOGS_LIMIT]]
            record["logsLeftOut"] = max(0, len(receipt.logs) - LOGS_LIMIT)
        to = transaction.to
        try:
            has_code = to is None or bool(view.layer.code(to))
        except FastevmError:  # the chain has dropped the state
            record["trace"] = LEFT_OUT
            return record
        lacks_code = not has_code and bool(transaction.data)
        if to is not None and lacks_code and int.from_bytes(to) > LAST_PRECOMPILE:
            record["note"] = NO_CODE
        if receipt.status == FAILED or has_code:
            self._add_what_ran(record, view, index)
        return record

    def contract_name(self, view: View, address: bytes | None) -> str | None:
        """Returns the name of the contract at an address, if an artifact file has its code."""
        if address is None:
            return None
        try:
            known = self.contracts.find(view.layer.code(address))
        except FastevmError:  # the chain has dropped the state
            return None
        return None if known is None else cut(known.name)

    def called(self, data: bytes) -> str:
        """Returns the function that ``data`` calls, with arguments, or the selector, shortened."""
        return cut(self.names.call(data) or shortened(data[:SELECTOR]))

    def log(self, log: Any) -> Json:
        """Returns the record of a log."""
        address, name = _address(log.address), self.names.event(log.topics, log.data)
        if name is not None:
            return {"address": address, "event": cut(name)}
        topics = " ".join(map(hex_bytes, log.topics))
        return {"address": address, "event": topics or "anonymous", "data": shortened(log.data)}

    def _add_what_ran(self, record: Json, view: View, index: int) -> None:
        if self.budget.is_spent:
            record["trace"] = SPENT
            return
        try:
            wanted = CALLS_AND_LOGS if self.traces else CALLS
            with self.budget.charge():
                text = self._trace(base_of(view), view.block.transactions, index, wanted)
        except (StateUnavailableError, UnknownBlockError):
            record["trace"] = LEFT_OUT
            return
        except (FastevmError, ValueError) as error:
            record["trace"] = f"not available: {error}"
            return
        if len(text) > TREE_SIZE:
            record["trace"] = TOO_LARGE
            return
        self.logs_are_there = self.logs_are_there or CONSOLE_NAME in bytes(text)
        tree = msgspec.json.decode(text)
        lines = list(console_lines(tree))
        if lines:
            record["console"] = lines
        inner = list(self._creations(tree, view))
        if inner:
            record["creations"] = inner
        if record["status"] == FAILED:
            record["reason"] = self.reason(tree)
            self._explain(record, failure_of_transaction(self.contracts, view, index, tree))
        if self.traces:
            record["trace"] = self.tree(tree, [CALLS_LIMIT])

    def _explain(self, record: Json, failure: Failure) -> None:
        """Add the source lines of a failure and, if it has no data, the inferred reason."""
        try:
            with self.budget.charge():
                record["source"] = [
                    f"{line['file']}:{line['line']}  {line['text'].strip()}"
                    for line in failure.source_lines()
                ]
                reason = failure.reason()
        except FastevmError:
            return  # the chain has dropped the state, or the execution takes too long
        if reason is not None:
            record["reason"] = reason

    def _creations(self, tree: Json, view: View) -> Iterator[Json]:
        """Yields the contracts that a transaction's calls created, in call order."""
        waiting, shown = [] if "error" in tree else list(reversed(tree.get("calls", ()))), 0
        while waiting and shown < CREATIONS_LIMIT:
            frame = waiting.pop()
            if "error" in frame:
                continue  # a failed call reverts its creations
            if frame["type"].startswith("CREATE") and "to" in frame:
                shown += 1
                address = _bytes(frame["to"])
                record = {"address": _address(address)}
                name = self.contract_name(view, address)
                yield record if name is None else record | {"contractName": name}
            waiting.extend(reversed(frame.get("calls", ())))

    def reason(self, frame: Json) -> str:
        """Returns why a call failed, shortened."""
        if frame.get("error") == "execution reverted":
            return cut(self.names.revert(_bytes(frame.get("output"))))
        return cut(str(frame.get("error", "failed")))

    def tree(self, frame: Json, left: list[int]) -> Json:
        """Return the record of a call and its subcalls.

        ``left`` counts the calls that may still be shown.
        """
        data, kind = _bytes(frame.get("input")), str(frame["type"])
        record: Json = {"type": kind, "to": frame.get("to"), "gasUsed": int(frame["gasUsed"], 16)}
        if int(frame.get("value", "0x0"), 16):
            record["value"] = str(int(frame["value"], 16))
        creates = kind.startswith("CREATE")
        if frame.get("to") == CONSOLE:
            record["function"] = console.text_of_call(data) or shortened(data)
        elif data and not creates:
            record["function"] = self.called(data)
        if "error" in frame:
            record["reason"] = self.reason(frame)
        elif frame.get("output") and not creates:
            record["output"] = shortened(_bytes(frame["output"]))
        calls = frame.get("calls", ())
        shown = calls[: left[0]]
        left[0] -= len(shown)
        if shown:
            record["calls"] = [self.tree(item, left) for item in shown]
        if frame.get("logs"):
            record["logs"] = [self._tree_log(item) for item in frame["logs"][:LOGS_LIMIT]]
        if len(shown) < len(calls):
            record["callsLeftOut"] = len(calls) - len(shown)
        return record

    def _tree_log(self, log: Json) -> Json:
        """Return the record of a call's log. ``position`` counts the subcalls before the log."""
        topics, data = [_bytes(item) for item in log["topics"]], _bytes(log.get("data"))
        name = self.names.event(topics, data)
        shown = cut(name) if name else " ".join(log["topics"]) or "anonymous"
        return {"event": shown, "position": int(log["position"], 16)}


def recorder_of(options: TerminalOptions, contracts: ContractFiles) -> Recorder:
    """Returns a recorder with these options. It takes names from the artifact files."""
    version = 0

    def added() -> Iterator[Entry]:
        nonlocal version
        version, abis = contracts.abis_since(version)
        return chain.from_iterable(map(entries_of, abis))

    names = Names(chain(common_entries(), added()), more=added)
    return Recorder(names, contracts, traces=options.traces)


def console_lines(tree: Json) -> Iterator[str]:
    """Yields the console output of the calls in a tree, in call order."""
    waiting, shown = [tree], 0
    while waiting:
        frame = waiting.pop()
        line = None
        if frame.get("to") == CONSOLE:
            line = console.text_of_call(_bytes(frame.get("input")))
        if line is not None:
            if shown == CONSOLE_LIMIT:
                yield f"... more than {CONSOLE_LIMIT} lines"
                return
            shown += 1
            yield line
        waiting.extend(reversed(frame.get("calls", ())))


CONSOLE: Final = hex_bytes(console.ADDRESS)
# the console's address, as it occurs in code that writes to it
CONSOLE_NAME: Final = console.ADDRESS.lstrip(b"\x00").hex().encode()


def _bytes(text: str | None) -> bytes:
    return bytes.fromhex(text[2:]) if text else b""


def _address(address: bytes | None) -> str | None:
    return None if address is None else checksum_address(address)
