"""Compares the recorded traces of real transactions with the traces of fastevm, as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

import msgspec

from fastevm.chain.config import ChainConfig
from fastevm.chain.stateless.verification import schedule_of
from fastevm.conformance.fields import accounts_of, address_of, bytes_of, number_of
from fastevm.conformance.real_blocks import RealBlock, differing
from fastevm.conformance.runner import Apart, Case, Mismatch, Outcome
from fastevm.core.execution.block.header_draft import later_fields
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import ZERO_HASH, Header
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.simulate import StateView
from fastevm.tracing import TraceRequest, trace_block, trace_transaction
from fastevm.tracing.tracers import TRACER_NAMES

FLAT: Final = "flatCallTracer"
FLAT_MEMBERS: Final = ("type", "subtraces", "traceAddress", "action", "result", "error")
# go-ethereum parses flat recordings: zero and empty members may be missing.
NOTHING: Final = (None, "0x", "0x0", "0x" + "00" * 20)
# Detailed error of go-ethereum -> error without details.
ERROR_KINDS: Final = {
    "out of gas: not enough gas for reentrancy sentry": "out of gas",
    "invalid input length": "invalid input to a precompiled contract",
}
# Forks in order; each includes the rules of the preceding forks.
ORDERED: Final = (
    "homesteadBlock", "eip150Block", "eip155Block", "eip158Block", "byzantiumBlock",
)  # fmt: skip
ABSENT: Final = "of {}, an unsupported tracer"
RULES: Final = "under unknown rules: {}"
EMPTY: Final = {"balance": "0x0"}
OLDER: Final = frozenset(f"prestatetrace {index}" for index in (24, 25, 26))
RECORDED: Final = {
    "calltrace": TraceRequest(tracer="callTracer"),
    "prestatetrace": TraceRequest(tracer="prestateTracer", config={"includeEmpty": True}),
    "difftrace": TraceRequest(tracer="prestateTracer", config={"diffMode": True}),
}


def recorded_transaction(fields: Mapping[str, Any]) -> Outcome:
    """Traces a recorded transaction, with the accounts and the genesis rules of its file."""
    if fields["tracer"] not in TRACER_NAMES:
        return Apart(ABSENT.format(fields["tracer"]))
    try:
        chain = ChainConfig.from_genesis({"config": {"chainId": 1} | in_order(fields["config"])})
    except ValueError as error:
        return Apart(RULES.format(error))
    header, schedule = header_and_rules(fields["block"], chain)
    view = StateView(
        header=header,
        block_hash=ZERO_HASH,
        layer=Layer.of(accounts_of(fields["accounts"])),
        ancestors=(),
        schedule=schedule,
        config=chain,
    )
    transaction = Transaction.decode(bytes_of(fields["transaction"]))
    request = TraceRequest(tracer=fields["tracer"], config=fields["tracerConfig"])
    found = as_json(trace_transaction(view, [transaction], 0, request))
    if fields["tracer"] == FLAT:
        return same(list(map(flat_values, fields["expect"])), list(map(flat_values, found)))
    return same(with_indices(fields["expect"]), found)


def in_order(config: Mapping[str, Any]) -> dict[str, Any]:
    """Normalises the names of a configuration and removes forks that a later fork includes."""
    config = {name[:1].lower() + name[1:]: value for name, value in config.items()}
    known = [fork for fork in ORDERED if fork in config]
    return config | {
        fork: min(config[later] for later in known[at:]) for at, fork in enumerate(known)
    }


def header_and_rules(block: Mapping[str, Any], chain: ChainConfig) -> tuple[Header, ForkSchedule]:
    """Returns the header fields that a transaction can read, and the rules."""
    merged = "prevRandao" in block
    schedule = chain.activations.at(
        block["number"], block["timestamp"], after_merge=True if merged else None
    )
    return (
        Header(
            coinbase=address_of(block["coinbase"]),
            number=block["number"],
            timestamp=block["timestamp"],
            gas_limit=block["gasLimit"],
            difficulty=block["difficulty"],
            mix_hash=bytes_of(block.get("prevRandao") or "0x").rjust(32, b"\0"),
            **later_fields(schedule, {"base_fee_per_gas": block.get("baseFeePerGas")}),
        ),
        schedule,
    )


class TracedBlock:
    """A real block with its receipts and the traces of all transactions."""

    def __init__(self, name: str, fields: Mapping[str, Any]) -> None:
        self.fields, self.real = fields, RealBlock.read(name, fields)

    def cases(self) -> Iterator[Case]:
        """Yields a case for each receipt and each trace."""
        for index in range(len(self.real.block.transactions)):
            yield f"receipt {index}", None, partial(self.receipt, index)
        for kind in RECORDED:
            for index in range(len(self.real.block.transactions)):
                yield f"{kind} {index}", None, partial(self.trace, kind, index)

    @cached_property
    def receipts(self) -> Sequence[Any]:
        return self.real.on_accounts().receipts

    @cached_property
    def traces(self) -> dict[str, list[Any]]:
        return {kind: self.traced(request) for kind, request in RECORDED.items()}

    def traced(self, request: TraceRequest) -> list[Any]:
        """Returns the traces of all transactions."""
        real = self.real
        view = StateView(
            header=real.block.header,
            block_hash=real.block.hash,
            layer=Layer.of(accounts_of(self.fields["pre"]["accounts"])),
            ancestors=real.ancestors,
            schedule=schedule_of(real.block.header, real.chain),
            config=real.chain,
        )
        return trace_block(view, real.block.transactions, request)

    def trace(self, kind: str, index: int) -> Outcome:
        """Compares one trace with the recorded trace."""
        if f"{kind} {index}" in OLDER:
            return Apart("of a tracer that records a slot which ours omits")
        wanted, found = self.fields["extra"][kind][index]["result"], self.traces[kind][index]
        if kind != "calltrace":  # these traces were recorded before the tracer included code hashes
            found = without_code_hashes(found)
        if kind == "difftrace":  # and before the tracer omitted accounts that did not exist
            wanted["pre"] = {name: item for name, item in wanted["pre"].items() if item != EMPTY}
        return same(wanted, found)

    def receipt(self, index: int) -> Outcome:
        """Compares one receipt with the recorded receipt."""
        receipt, wanted = self.receipts[index], self.fields["extra"]["receipts"][index]
        logs = [
            {"address": log["address"], "topics": log["topics"], "data": log["data"]}
            for log in wanted["logs"]
        ]
        found = [
            {
                "address": "0x" + log.address.hex(),
                "topics": ["0x" + topic.hex() for topic in log.topics],
                "data": "0x" + log.data.hex(),
            }
            for log in receipt.logs
        ]
        return differing(
            {
                "status": number_of(wanted["status"]),
                "gas": number_of(wanted["cumulativeGasUsed"]),
                "bloom": wanted["logsBloom"],
                "logs": logs,
            },
            {
                "status": int(receipt.status),
                "gas": receipt.cumulative_gas_used,
                "bloom": receipt.bloom,
                "logs": found,
            },
        )


def with_indices(call: Any) -> Any:
    """Returns a recorded call in which every log has an index; a missing index is zero."""
    if not isinstance(call, dict):
        return call
    calls = {"calls": list(map(with_indices, call["calls"]))} if "calls" in call else {}
    logs = {"logs": [{"index": "0x0"} | log for log in call["logs"]]} if "logs" in call else {}
    return call | calls | logs


def flat_values(frame: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the members of a flat frame that are compared: no position and no empty members."""
    values = {name: frame[name] for name in FLAT_MEMBERS if name in frame}
    for part in ("action", "result"):
        members = frame.get(part) or {}
        values[part] = {key: value for key, value in members.items() if value not in NOTHING}
    if "error" in values:
        values["error"] = ERROR_KINDS.get(values["error"], values["error"])
    return values


def without_code_hashes(found: Any) -> Any:
    """Returns a trace without code hashes, which the recording does not contain."""
    if not isinstance(found, dict):
        return found
    return {key: without_code_hashes(item) for key, item in found.items() if key != "codeHash"}


def same(wanted: Any, found: Any) -> Outcome:
    """Returns None if two values are equal as JSON, otherwise their first difference."""
    return first_difference(wanted, as_json(found), "")


def as_json(value: Any) -> Any:
    """Returns the value as a client decodes it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def first_difference(wanted: Any, found: Any, path: str) -> Mismatch | None:
    """Returns the position and values of the first difference."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name in sorted(wanted.keys() | found.keys()):
            difference = first_difference(wanted.get(name), found.get(name), f"{path}.{name}")
            if difference:
                return difference
        return None
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        differences = (first_difference(*pair, f"{path}[{at}]") for at, pair in pairs)
        return next((difference for difference in differences if difference), None)
    if wanted == found:
        return None
    return Mismatch(f"{path}: {json.dumps(wanted)[:200]}", json.dumps(found)[:200])
