"""Steps through an execution by source lines: groups the struct logs of a trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from fastevm.rpc.contract_files import LINE_LIMIT, ContractFiles, KnownContract, Location

CALLS: Final = ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")
WORD: Final = "0x{:064x}"
ADDRESS_MASK: Final = 2**160 - 1
FUNCTION: Final = re.compile(
    r"\s*(?:function\s+(\w+)|(constructor|fallback|receive)\s*\(|modifier\s+(\w+)|def\s+(\w+))"
)
FUNCTION_LINES: Final = 500  # lines above an instruction that are searched for its function


class Step(Struct, frozen=True, rename={"gas_cost": "gasCost"}):
    """A struct log: the state before an opcode."""

    pc: int
    op: str
    gas: int
    depth: int
    gas_cost: int = 0
    stack: list[str] | None = None

    def word(self, index: int) -> int:
        """Returns a stack word, 0 for the top. Raises ValueError if it is not there."""
        if self.stack is None or index >= len(self.stack):
            raise ValueError("the trace has no stack")
        return int(self.stack[-1 - index], 16)


class Trace(Sequence[Step]):
    """The steps of a trace. Each step is decoded when it is read."""

    def __init__(self, steps: Sequence[msgspec.Raw]) -> None:
        self._steps = steps
        self._decode = msgspec.json.Decoder(Step).decode

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, index: Any) -> Any:
        return self._decode(self._steps[index])


class LineStep(Struct, frozen=True):
    """Consecutive instructions of one source line in one frame.

    ``gas`` excludes the gas of calls into other frames. ``first`` and ``count`` select the steps in
    the trace. ``depth``: 1 for the top frame. ``address``: the account whose code runs; None for
    init code. ``contract``, ``file``, ``line``, ``text`` and ``function`` are None if the code has
    no artifact or no source map.
    """

    first: int
    count: int
    depth: int
    gas: int
    address: str | None
    contract: str | None = None
    file: str | None = None
    line: int | None = None
    text: str | None = None
    function: str | None = None


class Sources:
    """The contracts and source lines of addresses. ``code_of`` returns the code of an address."""

    def __init__(self, contracts: ContractFiles, code_of: Callable[[str], bytes]) -> None:
        self._contracts, self._code_of = contracts, code_of
        self._known: dict[str, KnownContract | None] = {}
        self._files: dict[Path, list[str]] = {}
        self._functions: dict[tuple[Path, int], str | None] = {}

    def contract(self, address: str | None) -> KnownContract | None:
        """Returns the contract at an address, if an artifact file has its code."""
        if address is None:
            return None
        if address not in self._known:
            self._known[address] = self._contracts.find(self._code_of(address))
        return self._known[address]

    def location(self, address: str | None, pc: int) -> Location | None:
        """Returns the source file and line of an instruction, if it has one."""
        contract = self.contract(address)
        return None if contract is None else self._contracts.location(contract, pc)

    def lines(self, contract: KnownContract, file: str) -> list[str]:
        """Returns the lines of a source file."""
        path = contract.root / file
        if path not in self._files:
            self._files[path] = self._contracts.source(contract, file)
        return self._files[path]

    def function(self, contract: KnownContract, location: Location) -> str | None:
        """Returns the name of the function that contains a line.

        This is the last function that starts above the line.
        """
        file, number = location
        key = contract.root / file, number
        if key not in self._functions:
            lines = self.lines(contract, file)[max(0, number - FUNCTION_LINES) : number]
            starts = (found for line in reversed(lines) if (found := FUNCTION.match(line)))
            found = next(starts, None)
            names = () if found is None else found.groups()
            self._functions[key] = next((name for name in names if name is not None), None)
        return self._functions[key]


class _Frame:
    """A frame: the address of its code, its depth, and the last location that it executed."""

    def __init__(self, address: str | None, depth: int) -> None:
        self.address, self.depth = address, depth
        self.location: Location | None = None


def line_steps(trace: Sequence[Step], to: str | None, sources: Sources) -> Iterator[LineStep]:
    """Yields the source lines in the order of execution. ``to``: the account called, or None.

    Instructions without a line, such as those that the compiler adds, count for the line before.
    Raises ValueError if the trace has no stacks.
    """
    frames = [_Frame(to, 1)]
    begun: tuple[int, _Frame, Location | None] | None = None
    gas = 0
    before: Step | None = None
    for index, step in enumerate(trace):
        if before is not None:
            gas += _used(before, step)
            if step.depth > before.depth:
                frames.append(_Frame(_called(before), step.depth))
            del frames[step.depth :]
        frame = frames[-1]
        frame.location = sources.location(frame.address, step.pc) or frame.location
        if begun is None or begun[1] is not frame or begun[2] != frame.location:
            if begun is not None:
                yield _line_step(begun, index, gas, sources)
            begun, gas = (index, frame, frame.location), 0
        before = step
    if begun is not None and before is not None:
        gas += min(before.gas, before.gas_cost)
        yield _line_step(begun, len(trace), gas, sources)


def _line_step(
    begun: tuple[int, _Frame, Location | None], end: int, gas: int, sources: Sources
) -> LineStep:
    first, frame, location = begun
    step = LineStep(first, end - first, frame.depth, gas, frame.address)
    contract = sources.contract(frame.address)
    if contract is None:
        return step
    if location is None:
        return msgspec.structs.replace(step, contract=contract.name)
    lines, (file, number) = sources.lines(contract, location[0]), location
    return msgspec.structs.replace(
        step,
        contract=contract.name,
        file=file,
        line=number,
        text=lines[number - 1].strip()[:LINE_LIMIT] if number <= len(lines) else "",
        function=sources.function(contract, location),
    )


def _called(step: Step) -> str | None:
    """Returns the address whose code the opcode runs, or None for a creation."""
    if step.op not in CALLS:
        return None
    return f"0x{step.word(1) & ADDRESS_MASK:040x}"


def _used(step: Step, after: Step) -> int:
    """Returns the gas of an opcode, without the gas that the opcode gives to a new frame."""
    if after.depth == step.depth:
        return max(0, step.gas - after.gas)
    if after.depth > step.depth:
        return max(0, step.gas_cost - after.gas)
    return min(step.gas, step.gas_cost)


def storage_of(trace: Sequence[Step], line: LineStep) -> Iterator[str]:
    """Yields a text for each slot that a line reads or writes."""
    for index in range(line.first, line.first + line.count):
        step = trace[index]
        if step.op == "SSTORE":
            yield f"write {WORD.format(step.word(0))} = {WORD.format(step.word(1))}"
        elif step.op == "SLOAD" and index + 1 < len(trace) and trace[index + 1].depth == step.depth:
            value = trace[index + 1].word(0)
            yield f"read  {WORD.format(step.word(0))} = {WORD.format(value)}"
