"""The frames of an execution for titanoboa. Steps are traced on demand."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Final

import msgspec
from boa.contracts.call_trace import TraceFrame
from eth.exceptions import OutOfGas, Revert, VMError

from fastevm.core.primitives.keccak import keccak256
from fastevm.errors import ResourceLimitError
from fastevm.evm.machine import EVM, ExecutionResult
from fastevm.tracing import CallFrame
from fastevm.tracing.access_observer import Erc7562Observer
from fastevm.tracing.call_tree import CallTree
from fastevm.tracing.observer import Observer, PairObserver
from fastevm.tracing.runner import message_traced
from fastevm.tracing.step_loggers import Eip3155Logger

DESTRUCTION: Final = "SELFDESTRUCT"
CALLS: Final = frozenset((0xF0, 0xF1, 0xF2, 0xF4, 0xF5, 0xFA))
CREATIONS: Final = frozenset((0xF0, 0xF5))
SSTORE: Final = 0x55
SAME_STORAGE: Final = frozenset(("CALLCODE", "DELEGATECALL"))
ADDRESS_MASK: Final = (1 << 160) - 1
PREIMAGE: Final = 64  # size of the preimage of a mapping's slot
HASHED_BYTES: Final = 256 * 1024 * 1024  # limit of hashed bytes per run; further hashes are ignored


class Memory:
    """The memory of a frame before its last step."""

    def __init__(self, content: bytes) -> None:
        self._bytes = content

    def __len__(self) -> int:
        return len(self._bytes)

    def extend(self, start: int, size: int) -> None:
        """Does nothing: reads past the end return zeros."""

    def read_bytes(self, start: int, size: int) -> bytes:
        """Returns bytes from a position. Bytes past the end are zero."""
        return self._bytes[start : start + size].ljust(size, b"\0")

    def read(self, start: int, size: int) -> memoryview:
        """Returns bytes from a position as a memoryview. Bytes past the end are zero."""
        return memoryview(self.read_bytes(start, size))


class Run:
    """One message with its result and frames. The message can be repeated with a step trace."""

    root: Computation

    def __init__(
        self, engine: Any, evm: EVM, make: Callable[[EVM], tuple[Any, tuple[Any, ...], Any]]
    ) -> None:
        self.engine, self.before, self._make = engine, copy(evm), make
        tree = CallTree()
        method, values, terms = make(evm)
        self.result: ExecutionResult = message_traced(evm, tree, method, *values, **terms)
        self.frames: list[CallFrame] = tree.frames()
        self.owners: list[tuple[int, int]] = list(tree.log_owners)

    def repeat(self, observer: Observer) -> None:
        """Repeats the message on the state before it, with an observer."""
        machine = copy(self.before)
        method, values, terms = self._make(machine)
        message_traced(machine, observer, method, *values, **terms)

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """Returns every step. Repeats the message to trace the steps."""
        lines = io.StringIO()
        logger = Eip3155Logger(lines, memory=True)
        self.repeat(PairObserver(logger, CallTree()))
        logger.flush()
        found = [msgspec.json.decode(line) for line in lines.getvalue().splitlines()]
        return [step for step in found if "pc" in step]

    def preimages(self) -> dict[bytes, bytes]:
        """Returns the preimages of hashes, by hash: 64 bytes, the key and the slot of a mapping
        element.
        """
        seen = Erc7562Observer(budget=HASHED_BYTES)
        with suppress(ResourceLimitError):
            self.repeat(seen)
        return {keccak256(data): data for data in seen.preimages if len(data) == PREIMAGE}


def error_of(frame: CallFrame) -> Exception | None:
    """Returns py-evm's exception for the outcome of a frame."""
    if frame.error is None:
        return None
    if frame.reverted:
        error: Exception = Revert(frame.output)
    else:
        error = (OutOfGas if "out of gas" in frame.error else VMError)(frame.error)
    return error


class Computation:
    """One frame, with the interface of py-evm's computation."""

    def __init__(self, run: Run, at: int, engine: Any) -> None:
        self._run, self._at, self._engine = run, at, engine
        self.frame = frame = run.frames[at]
        self.children: list[Computation] = []
        self.beneficiaries: list[bytes] = []
        self.error = error_of(frame)
        self.output = frame.output
        self.env = engine.env
        self._gas_meter_class = engine.get_gas_meter_class()
        target = frame.target
        creates = frame.creates
        self.msg = SimpleNamespace(
            sender=frame.caller,
            to=b"" if creates else target,
            code_address=b"" if creates else target,
            storage_address=target,
            create_address=target if creates else None,
            is_create=creates,
            value=frame.value,
            gas=frame.gas,
            data=b"" if creates else frame.input,
            data_as_bytes=b"" if creates else frame.input,
            code=frame.input if creates else b"",
            depth=frame.depth,
            _contract=None,
        )

    @property
    def is_error(self) -> bool:
        return self.error is not None

    @property
    def is_success(self) -> bool:
        return self.error is None

    def get_gas_used(self) -> int:
        return self.frame.gas_used

    def get_gas_refund(self) -> int:
        return self._run.result.gas_refunded if self._at == 0 else 0

    @property
    def net_gas_used(self) -> int:
        return max(0, self.get_gas_used() - self.get_gas_refund())

    def _logs_of(self, frames: set[int]) -> list[tuple[int, bytes, tuple[int, ...], bytes]]:
        logs = zip(self._run.result.logs, self._run.owners, strict=False)
        return [
            (index, log.address, tuple(int.from_bytes(t, "big") for t in log.topics), log.data)
            for index, (log, (owner, _)) in enumerate(logs)
            if owner in frames
        ]

    def _below(self) -> set[int]:
        return {self._at}.union(*(child._below() for child in self.children))

    @property
    def _log_entries(self) -> list[tuple[int, bytes, tuple[int, ...], bytes]]:
        return self._logs_of({self._at})

    def get_raw_log_entries(self) -> tuple[tuple[int, bytes, tuple[int, ...], bytes], ...]:
        return tuple(self._logs_of(self._below()))

    # --- steps ---

    @cached_property
    def _details(self) -> SimpleNamespace:
        """The pcs of the frame, their gas, and the final memory."""
        attach_steps(self._run.root, self._run.steps)
        return self.__dict__["_details"]  # type: ignore[no-any-return]

    @property
    def code(self) -> SimpleNamespace:
        """The code. Its ``_trace`` contains the executed pcs."""
        return SimpleNamespace(_trace=self._details.pcs)

    @property
    def _child_pcs(self) -> list[int]:
        return self._details.child_pcs  # type: ignore[no-any-return]

    @property
    def _gas_meter(self) -> SimpleNamespace:
        return SimpleNamespace(_gas_used_of=self._details.gas, _gas_refunded_of={})

    @property
    def _memory(self) -> Memory:
        return Memory(bytes.fromhex(self._details.memory[2:]))

    @cached_property
    def _contract_repr_before_revert(self) -> str | None:
        """Returns the contract, with the storage that it had when the frame failed."""
        if not self.is_error:
            return None
        contract = self.env._lookup_contract_fast(self.msg.code_address)
        if contract is None:
            return "None"
        with self._engine.written(self._run.before.state, self.writes()):
            return repr(contract)

    def writes(self) -> list[tuple[bytes, int, int]]:
        """Account, slot and value of each write of this frame and of its successful callees."""
        found = [(self.msg.storage_address, slot, value) for slot, value in self._details.writes]
        below = [child.writes() for child in self.children if not child.is_error]
        return [write for each in below for write in each] + found

    @cached_property
    def call_trace(self) -> TraceFrame:
        """The call tree in titanoboa's form."""
        return self._get_call_trace()

    def _get_call_trace(self, depth: int = 0) -> TraceFrame:
        contract = self.env._lookup_contract_fast(self.msg.code_address)
        source = None if contract is None else contract.trace_source(self)
        children = [child._get_call_trace(depth + 1) for child in self.children]
        return TraceFrame(self, source, depth, children)


def computation_of(run: Run, engine: Any) -> Computation:
    """Creates the computations of a run. Returns the outermost computation."""
    path: list[Computation] = []
    for at, frame in enumerate(run.frames):
        if frame.kind == DESTRUCTION:
            path[frame.depth - 1].beneficiaries.append(frame.target)
            continue
        found = Computation(run, at, engine)
        del path[frame.depth :]
        if path:
            path[-1].children.append(found)
            if frame.kind in SAME_STORAGE:
                found.msg.to = found.msg.storage_address = path[-1].msg.storage_address
        path.append(found)
    run.root = path[0]
    return run.root


def attach_steps(root: Computation, steps: list[dict[str, Any]]) -> None:
    """Assigns every step to its frame."""
    prepare(root)
    path = [root]
    for at, step in enumerate(steps):
        del path[step["depth"] :]
        current = path[-1]
        details = current.__dict__["_details"]
        gas = int(step["gas"], 16)
        if details.open is not None:
            pc, before = details.open
            details.gas[pc] = details.gas.get(pc, 0) + before - gas
        pc = step["pc"]
        details.pcs.append(pc)
        details.open = pc, gas
        details.last = int(step["gasCost"], 16)
        details.memory = step.get("memory", "0x")
        if step["op"] == SSTORE:
            details.writes.append((int(step["stack"][-1], 16), int(step["stack"][-2], 16)))
        if step["op"] in CALLS and is_entered(current, step):
            child = current.children[len(details.child_pcs)]
            details.child_pcs.append(pc + 1)
            if at + 1 < len(steps) and steps[at + 1]["depth"] > step["depth"]:
                path.append(child)
    finish(root)


def is_entered(current: Computation, step: dict[str, Any]) -> bool:
    """Returns whether a call or creation entered the next frame."""
    at = len(current.__dict__["_details"].child_pcs)
    if at >= len(current.children):
        return False
    message = current.children[at].msg
    if step["op"] in CREATIONS:
        return bool(message.is_create)
    target = int(step["stack"][-2], 16) & ADDRESS_MASK
    return not message.is_create and target == int.from_bytes(message.code_address, "big")


def prepare(computation: Computation) -> None:
    """Initialises the details of a frame and its callees."""
    computation.__dict__["_details"] = SimpleNamespace(
        pcs=[], child_pcs=[], writes=[], gas={}, memory="0x", open=None, last=0
    )
    for child in computation.children:
        prepare(child)


def finish(computation: Computation) -> None:
    """Computes the gas of the last step of each frame."""
    details = computation.__dict__["_details"]
    if details.open is not None:
        pc, _ = details.open
        details.gas[pc] = details.gas.get(pc, 0) + details.last
    for child in computation.children:
        finish(child)
