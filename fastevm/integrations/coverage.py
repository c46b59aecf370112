"""Coverage of contracts by a test run: functions, lines and instructions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from fastevm.core.primitives.keccak import keccak256
from fastevm.evm.contracts.artifacts import Artifact
from fastevm.evm.contracts.source_map import instructions
from fastevm.evm.machine import EVM
from fastevm.integrations.chain_control import Chain, selectors
from fastevm.integrations.local_node import NodeError
from fastevm.integrations.traced_runs import RUNS, with_trace
from fastevm.simulate import SimulatePayload, view_of
from fastevm.tracing import TracedCall, TraceRequest, TracingError, trace_calls

TRACER: Final = {"tracer": "gasTracer"}
GAS_ONLY: Final = TraceRequest(tracer="gasTracer")
GAS: Final = "gas"
CALLS: Final = frozenset(("eth_call", "eth_estimateGas"))
COLUMNS: Final = ("contract", "functions", "lines", "not reached")
OVERRIDES: Final = ("stateOverrides", "blockOverrides")
NAMES_SHOWN: Final = 8  # number of uncalled functions to list
Trace = Mapping[str, Any]


class Reached(NamedTuple):
    """The coverage of one contract, added up over all its addresses."""

    name: str
    artifact: Artifact | None
    code: bytes
    pcs: set[int]
    called: set[str]  # selectors of functions that were called


class Coverage:
    """Collects coverage from gas traces. ``label`` sets names and source maps of contracts."""

    def __init__(self) -> None:
        self.reached: dict[object, Reached] = {}
        self.labels: dict[str, Artifact] = {}

    def label(self, address: str, artifact: Artifact) -> None:
        """Sets the compiler artifact of the contract at an address."""
        self.labels[address.lower()] = artifact

    def read(self, trace: Trace, code_of: Callable[[str], bytes]) -> None:
        """Counts a trace of the gas tracer. ``code_of`` returns the code of a hex address."""
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
        """Returns the table, with one line for each contract. Empty if nothing was executed."""
        if not self.reached:
            return []
        rows = [COLUMNS, *sorted(row_of(each) for each in self.reached.values())]
        widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
        return [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]

    def lcov(self) -> str:
        """Returns the lines in LCOV's format: 1 for each line that was executed, else 0.

        Contracts without a source map are left out, because their lines are unknown.
        """
        files: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for item in self.reached.values():
            locations = {} if item.artifact is None else item.artifact.locations
            for pc, (file, line) in locations.items():
                hits = files[file]
                hits[line] = max(hits.get(line, 0), int(pc in item.pcs))
        return "".join(record(file, hits) for file, hits in sorted(files.items()))


def record(file: str, hits: Mapping[int, int]) -> str:
    """Formats the hits of a file's lines as an LCOV record."""
    lines = [f"DA:{line},{count}" for line, count in sorted(hits.items())]
    total = [f"LF:{len(hits)}", f"LH:{sum(hits.values())}", "end_of_record"]
    return "\n".join(["TN:", f"SF:{file}", *lines, *total, ""])


def row_of(item: Reached) -> tuple[str, str, str, str]:
    """Returns the cells of a contract: functions (ABI), lines (source map) or instructions."""
    functions, missed = "", []
    if item.artifact is not None:
        known = selectors(item.artifact.abi)
        unused = [name for selector, name in known.items() if selector not in item.called]
        functions = f"{len(known) - len(unused)} of {len(known)}"
        missed = [", ".join(unused[:NAMES_SHOWN])] if unused else []
    locations = {} if item.artifact is None else item.artifact.locations
    if locations:
        whole = set(locations.values())
        reached = {locations[pc] for pc in item.pcs if pc in locations}
        missed += spans(location.line for location in whole - reached)
        return item.name, functions, share(len(reached), len(whole)), "; ".join(missed)
    starts = set(instructions(item.code))  # execution may also end after the last instruction
    count = share(len(item.pcs & starts), len(starts)) if starts else str(len(item.pcs))
    return item.name, functions, f"{count} instructions", "; ".join(missed)


def share(part: int, whole: int) -> str:
    """Formats two counts and their ratio in percent."""
    return f"{part} of {whole} ({100 * part // whole} %)"


def spans(lines: Iterable[int]) -> list[str]:
    """Formats line numbers and ranges: ``lines 4, 7-9``."""
    runs: list[list[int]] = []
    for line in sorted(set(lines)):
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    shown = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)
    return [f"lines {shown}"] if shown else []


class CoveredEVM(EVM):
    """A machine that reports all executed code to a `Coverage`."""

    coverage: Coverage

    def on_contract(self, contract: Any) -> None:
        """Gives the coverage report the artifact of a `Contract` that this machine creates."""
        self.coverage.label(contract.address, contract.artifact)

    def on_simulation(self, payload: SimulatePayload) -> None:
        """Counts the calls of a simulation. Ignores rejected payloads."""
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


def count(machine: CoveredEVM, trace: Trace) -> None:
    """Counts a run."""
    machine.coverage.read(trace, machine.code)


for _name in RUNS:
    setattr(CoveredEVM, _name, with_trace(getattr(EVM, _name), GAS, count))


class ChainCoverage:
    """The coverage of a node's chain: its transactions and the calls that clients requested."""

    def __init__(self, chain: Chain, coverage: Coverage) -> None:
        self.chain, self.coverage = chain, coverage
        chain.node.observer = self.see

    def read(self, chain: Chain, first: int) -> None:
        """Counts the blocks from number ``first`` on."""
        for number in range(first, chain.height + 1):
            block = chain.node.request("eth_getBlockByNumber", [hex(number), False])
            for name in block["transactions"]:
                self._count(chain.node.request("debug_traceTransaction", [name, TRACER]))

    def see(self, body: bytes) -> None:
        """Counts the calls in a request body. Ignores rejected calls."""
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
