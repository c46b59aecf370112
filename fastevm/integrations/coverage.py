"""Which functions, lines and instructions of contracts a test run has reached."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from fastevm.core.primitives.keccak import keccak256
from fastevm.evm.contracts.artifacts import Artifact
from fastevm.evm.contracts.source_map import instructions
from fastevm.evm.machine import EVM, ExecutionResult
from fastevm.evm.result import restore_result
from fastevm.integrations.chain_control import Chain, selectors
from fastevm.integrations.local_node import NodeError
from fastevm.simulate import SimulatePayload, view_of
from fastevm.tracing import TracedCall, TraceRequest, TracingError, trace_calls

TRACER: Final = {"tracer": "gasTracer"}
GAS_ONLY: Final = TraceRequest(tracer="gasTracer")
GAS: Final = "gas"
CALLS: Final = frozenset(("eth_call", "eth_estimateGas"))
COLUMNS: Final = ("contract", "functions", "lines", "not reached")
OVERRIDES: Final = ("stateOverrides", "blockOverrides")
NAMES_SHOWN: Final = 8  # of functions that nobody called
Trace = Mapping[str, Any]


class Reached(NamedTuple):
    """What was reached of one contract, at any address."""

    name: str
    artifact: Artifact | None
    code: bytes
    pcs: set[int]
    called: set[str]  # selectors


class Coverage:
    """Collects what gas traces tell; ``label`` names contracts and gives their source maps."""

    def __init__(self) -> None:
        self.reached: dict[object, Reached] = {}
        self.labels: dict[str, Artifact] = {}

    def label(self, address: str, artifact: Artifact) -> None:
        """What the contract at an address was compiled from."""
        self.labels[address.lower()] = artifact

    def read(self, trace: Trace, code_of: Callable[[str], bytes]) -> None:
        """Count a trace of the tracer for gas; ``code_of`` an address in hex."""
        for address, pcs in trace["code"].items():
            self._of(address, code_of).pcs.update(map(int, pcs))
        for function in trace["functions"]:
            if function["selector"] is not None and function["address"] in trace["code"]:
                self._of(function["address"], code_of).called.add(function["selector"])

    def _of(self, address: str, code_of: Callable[[str], bytes]) -> Reached:
        artifact = self.labels.get(address)
        code = b"" if artifact else code_of(address)
        key = (artifact.name, artifact.bytecode) if artifact else keccak256(code)
        found = self.reached.get(key)
        if found is None:
            name = artifact.name if artifact else address
            found = self.reached[key] = Reached(name, artifact, code, set(), set())
        return found

    def lines(self) -> list[str]:
        """The table, a line for each contract; nothing where nothing ran."""
        if not self.reached:
            return []
        rows = [COLUMNS, *sorted(row_of(each) for each in self.reached.values())]
        widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
        return [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]


def row_of(one: Reached) -> tuple[str, str, str, str]:
    """The cells of a contract: functions by its ABI, lines by its source map, else instructions."""
    functions, missed = "", []
    if one.artifact is not None:
        known = selectors(one.artifact.abi)
        unused = [name for selector, name in known.items() if selector not in one.called]
        functions = f"{len(known) - len(unused)} of {len(known)}"
        missed = [", ".join(unused[:NAMES_SHOWN])] if unused else []
    places = {} if one.artifact is None else one.artifact.places
    if places:
        whole = set(places.values())
        reached = {places[pc] for pc in one.pcs if pc in places}
        missed += spans(place.line for place in whole - reached)
        return one.name, functions, share(len(reached), len(whole)), "; ".join(missed)
    starts = set(instructions(one.code))  # a run may also end behind the last one
    count = share(len(one.pcs & starts), len(starts)) if starts else str(len(one.pcs))
    return one.name, functions, f"{count} instructions", "; ".join(missed)


def share(part: int, whole: int) -> str:
    """Two counts, and the percentage."""
    return f"{part} of {whole} ({100 * part // whole} %)"


def spans(lines: Iterable[int]) -> list[str]:
    """Lines as text, with runs of them as one: ``lines 4, 7-9``."""
    runs: list[list[int]] = []
    for line in sorted(set(lines)):
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    told = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)
    return [f"lines {told}"] if told else []


class CoveredEVM(EVM):
    """A machine that tells a `Coverage` of everything that it runs."""

    coverage: Coverage

    def on_contract(self, contract: Any) -> None:
        """A `Contract` of this machine was made."""
        self.coverage.label(contract.address, contract.artifact)

    def on_simulation(self, payload: SimulatePayload) -> None:
        """A payload ran on this state: its calls count; what is refused counts nothing."""
        calls = [
            TracedCall(
                call, GAS_ONLY, block.block_overrides, {} if later else block.state_overrides
            )
            for block in payload.blocks
            for later, call in enumerate(block.calls)
        ]
        with suppress(TracingError):
            for trace in trace_calls(view_of(self), calls):
                self.coverage.read(trace, self.code)


def covered(method: Callable[..., ExecutionResult]) -> Callable[..., ExecutionResult]:
    """A method of ``EVM`` that asks for one trace more, and keeps it from the caller."""

    def run(self: CoveredEVM, *args: Any, trace: Any = None, **terms: Any) -> ExecutionResult:
        wanted = wishes(trace)
        result = method(self, *args, trace=wanted | {GAS: None}, **terms)
        found = dict(result.trace)
        self.coverage.read(found[GAS], self.code)
        if GAS not in wanted:
            del found[GAS]
        given = found[trace] if isinstance(trace, str) else None if trace is None else found
        return restore_result(
            result.success, result.output, result.gas_used, result.gas_refunded, result.logs,
            result.error, result.created_address, given,
        )  # fmt: skip

    return run


def wishes(trace: Any) -> dict[str, Any]:
    """What ``trace`` asks for, with the options of each."""
    if trace is None:
        return {}
    if isinstance(trace, str):
        return {trace: None}
    return dict(trace) if isinstance(trace, Mapping) else dict.fromkeys(trace)


for _name in ("call", "create", "transact", "deploy"):
    setattr(CoveredEVM, _name, covered(getattr(EVM, _name)))


class ChainCoverage:
    """Coverage of a node's chain: its transactions, and the calls that are asked of it."""

    def __init__(self, chain: Chain, coverage: Coverage) -> None:
        self.chain, self.coverage = chain, coverage
        chain.node.observer = self.see

    def read(self, chain: Chain, first: int) -> None:
        """Count the blocks from this number on."""
        for number in range(first, chain.height + 1):
            block = chain.node.request("eth_getBlockByNumber", [hex(number), False])
            for name in block["transactions"]:
                self._count(chain.node.request("debug_traceTransaction", [name, TRACER]))

    def see(self, body: bytes) -> None:
        """Count the calls among requests that were asked for; what is refused counts nothing."""
        asked = json.loads(body)
        for request in asked if isinstance(asked, list) else [asked]:
            if request.get("method") not in CALLS:
                continue
            call, block, *overrides = [*request.get("params", []), None, None][:4]
            options = dict(TRACER) | dict(zip(OVERRIDES, overrides, strict=False))
            asked_for = [call, block or "latest", options]
            try:
                self._count(self.chain.node.unobserved("debug_traceCall", asked_for))
            except NodeError:
                continue

    def _count(self, trace: Trace) -> None:
        for address, artifact in self.chain.artifacts.items():
            self.coverage.label(address, artifact)
        self.coverage.read(trace, self._code)

    def _code(self, address: str) -> bytes:
        found: str = self.chain.node.unobserved("eth_getCode", [address, "latest"])
        return bytes.fromhex(found[2:])
