"""``RecordedEVM``: a machine that records its runs, so that they can be replayed from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.state.layer import Layer
from fastevm.errors import ResourceLimitError
from fastevm.evm.machine import EVM
from fastevm.evm.result import ExecutionResult
from fastevm.integrations.chain_control import selectors
from fastevm.integrations.traced_runs import RUNS, with_trace

CHANGES: Final = (
    "set_account", "set_balance", "set_nonce", "set_code", "set_storage", "set_block",
)  # fmt: skip
UNRECORDED: Final = ("trace", "timeout")  # arguments that do not affect results
STEPS_LIMIT: Final = 100_000
EDGES: Final = "edges"
STATE: Final[Any] = EVM.state  # the property of the base class, which the subclass overrides


class Step(Struct, omit_defaults=True):
    """A recorded call of a method of a machine.

    ``args`` are JSON values. ``outcome`` is None for state changes, because they have no result.
    """

    method: str
    args: list[Any] = []
    options: dict[str, Any] = {}
    outcome: dict[str, Any] | None = None


class Start(Struct):
    """The state of the machine before the first step."""

    state: Layer
    block: dict[str, Any]


class Label(Struct):
    """The name of a contract, and its functions by selector."""

    name: str
    functions: dict[str, str]


def json_form(value: Any) -> Any:
    """Returns a value in JSON form: bytes as hex, sequences as lists."""
    if isinstance(value, bytes | bytearray | memoryview):
        return "0x" + bytes(value).hex()
    if isinstance(value, Transaction):
        return {"raw": json_form(value.raw), "sender": json_form(value.sender)}
    if isinstance(value, Mapping):
        return {json_form(name) if isinstance(name, bytes) else name: json_form(value[name])
                for name in value}  # fmt: skip
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Iterable):
        return [json_form(each) for each in value]
    raise TypeError(f"cannot record a {type(value).__name__}")


def outcome_of(result: ExecutionResult) -> dict[str, Any]:
    """Returns the parts of a result that a replay must reproduce."""
    return {
        "success": result.success,
        "output": json_form(result.output),
        "gasUsed": result.gas_used,
        "error": result.error,
        "logs": len(result.logs),
    }


def failure_of(error: Exception) -> dict[str, Any]:
    """Returns the outcome of a method that raised an exception."""
    return {"exception": type(error).__name__, "message": str(error)}


def environment_of(evm: EVM) -> dict[str, Any]:
    """Returns the arguments of ``set_block`` that restore the block of a machine."""
    block = evm.block
    found = {name: getattr(block, name) for name in block.__struct_fields__}
    return found | {"block_hashes": evm.block_hashes}


class RecordedEVM(EVM):
    """A machine that records its runs and changes, and the branches that its code takes.

    Setting ``state``, and ``revert``, start a new recording. ``simulate`` and changes of ``hooks``
    or ``precompiles`` are not recorded.
    """

    _depth = 0  # nesting of running methods of this class
    _start: Start | None = None

    def begin_recording(self) -> None:
        """Drops all steps and branches. The recording starts from the current state."""
        self.steps: list[Step] = []
        self.edges: set[tuple[str, int, int]] = set()
        self._restart()

    def _restart(self) -> None:
        self._start = Start(STATE.__get__(self), environment_of(self))
        self.steps.clear()

    @property
    def start(self) -> Start:
        """The machine before the first step. Raises RuntimeError if nothing is recorded."""
        if self._start is None:
            raise RuntimeError("nothing is recorded: call begin_recording first")
        return self._start

    def on_contract(self, contract: Any) -> None:
        """Records the name and the functions of a `Contract` that is created on this machine."""
        labels = self.__dict__.setdefault("labels", {})
        found = Label(contract.contract_name, selectors(contract.abi))
        labels["0x" + contract.raw_address.hex()] = found

    def revert(self, snapshot: int) -> None:
        """Restores a snapshot and starts a new recording."""
        self._depth += 1
        try:
            super().revert(snapshot)
        finally:
            self._depth -= 1
        if self._start is not None and not self._depth:
            self._restart()

    def _set_state(self, layer: Layer) -> None:
        STATE.__set__(self, layer)
        if self._start is not None and not self._depth:
            self._restart()

    state = property(STATE.__get__, _set_state)

    def _record(self, step: Step) -> None:
        if len(self.steps) >= STEPS_LIMIT:
            raise ResourceLimitError("recorded_steps", f"more than {STEPS_LIMIT} recorded steps")
        self.steps.append(step)


def note_edges(machine: RecordedEVM, trace: Mapping[str, Any]) -> None:
    """Adds the branches that a run took to the recording."""
    for address, edges in trace["code"].items():
        machine.edges.update((address, source, target) for source, target in edges)


def recorded(name: str) -> Callable[..., Any]:
    """Returns the method ``name`` of ``EVM``, wrapped so that its calls are recorded."""
    method = getattr(EVM, name)
    runs = with_trace(method, EDGES, note_edges) if name in RUNS else method

    def use(self: RecordedEVM, *args: Any, **options: Any) -> Any:
        if self._start is None or self._depth:
            return method(self, *args, **options)
        kept = {key: json_form(options[key]) for key in options if key not in UNRECORDED}
        step = Step(name, json_form(args), kept)
        self._record(step)
        self._depth += 1
        try:
            result = runs(self, *args, **options)
        except Exception as error:
            step.outcome = failure_of(error)
            raise
        finally:
            self._depth -= 1
        if isinstance(result, ExecutionResult):
            step.outcome = outcome_of(result)
        return result

    return use


for _name in (*RUNS, *CHANGES):
    setattr(RecordedEVM, _name, recorded(_name))
