"""The JavaScript tracer: records the execution, then calls the functions of the program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.rlp import encode
from fastevm.core.state.layer import Layer
from fastevm.tracing.frames import CREATIONS, DESTRUCTION
from fastevm.tracing.javascript.recorded_state import RecordedState
from fastevm.tracing.javascript.worker_process import Worker, engine_folder, worker
from fastevm.tracing.record_observer import RecordObserver
from fastevm.tracing.step_loggers import NAME_TEXTS
from fastevm.tracing.tracer import Finished
from fastevm.tracing.values import TracingError

MAX_SOURCE: Final = 1024 * 1024  # most characters of a program
BATCH_EVENTS: Final = 512
SSTORE: Final = 0x55
REVERT: Final = 0xFD
DELEGATES: Final = ("DELEGATECALL", "CALLCODE")
STEP, FAULT = 1, 2  # functions that an event calls
# Halts that go-ethereum detects before it calls `step`, which gets the error; others call `fault`.
FOUND_BEFORE: Final = ("out of gas", "stack underflow", "stack limit reached")
INVALID: Final = "invalid opcode"
NAMES: Final = [text.decode() for text in NAME_TEXTS]
GAS_COST: Final = 5  # index in the event of a step
WORD: Final = 32
Record = Mapping[str, Any]


class JavaScriptTracer:
    """Runs a program with the interface of go-ethereum's JavaScript tracers.

    ``seconds``: time limit of the JavaScript engine. Raises TracingError if the package quickjs is
    not installed.
    """

    needs_states = True

    def __init__(self, source: str, config: Any, seconds: float, budget: int) -> None:
        engine_folder()
        if len(source) > MAX_SOURCE:
            raise TracingError(f"a tracer of {len(source)} characters, limit {MAX_SOURCE}")
        self.source, self.config, self.seconds = source, config, seconds
        escapes = "\\" in source
        self.observer: RecordObserver = RecordObserver(
            steps=escapes or "step" in source or "fault" in source,
            memory=escapes or "memory" in source,
            budget=max(budget, 1),
        )

    def result(self, finished: Finished) -> Any:
        """Returns the JSON value that the function ``result`` of the program returns."""
        before, after = finished.before, finished.after
        assert before is not None and after is not None
        with worker(self.seconds) as process:
            known = [address.hex() for address in sorted(finished.precompiles)]
            config = json.dumps({} if self.config is None else dict(self.config))
            process.request(b"N", json.dumps([self.source, config, json.dumps(known)]))
            replay = _Replay(process, before, finished)
            for record in self.observer.records():
                replay.play(record)
            replay.flush()
            replay.state = RecordedState(after)
            text = process.request(b"R", json.dumps(replay.context()))
        return msgspec.Raw(text.encode())


class _Frame(msgspec.Struct):
    """An open frame. ``address`` is the account whose storage the frame uses."""

    kind: str
    address: bytes
    caller: bytes
    value: int
    target: bytes


class _Replay:
    """Sends the records of an execution to a worker, and answers the worker's reads of the
    state.
    """

    def __init__(self, process: Worker, before: Layer, finished: Finished) -> None:
        self.process, self.finished = process, finished
        self.state = RecordedState(before)
        self.frames: list[_Frame] = []
        self.events: list[Any] = []
        self.top: Record = {}
        self.end: Record = {}
        self._memory = b""
        self._destroyed = False
        # the newest error of an invalid opcode, with the opcode's name
        self._invalid: str | None = None
        process.answer = self.answer
        sender = finished.transaction.sender
        if sender is not None:
            self.state.set_nonce(sender, before.nonce(sender) + 1)

    def play(self, record: Record) -> None:
        """Adds a record."""
        kind = record["kind"]
        if kind == "step":
            self._step(record)
        elif kind == "enter":
            self._enter(record)
        elif kind == "leave":
            self._leave(record)

    def flush(self) -> None:
        """Sends the events. The state does not change until the worker has handled them."""
        if self.events:
            events, self.events = self.events, []
            self.process.request(b"B", json.dumps(events))

    def _step(self, record: Record) -> None:
        if len(self.events) >= BATCH_EVENTS:
            self.flush()
        op, error = record["op"], record["error"]
        name = NAMES[op]
        if error == INVALID:
            error = self._invalid = f"{INVALID}: {name}"
        calls = STEP
        if error is not None and not error.startswith(FOUND_BEFORE):
            calls = STEP | FAULT
        elif op == REVERT:
            calls, error = STEP | FAULT, "execution reverted"
        memory = record.get("memory", b"")
        changed = memory is not self._memory and memory != self._memory
        self._memory = memory
        self.events.append(
            [
                "s", record["pc"], op, name, record["gas"], record["gas_cost"],
                record["depth"], record["refund"], error,
                [f"{word:x}" for word in record["stack"]],
                memory.hex() if changed else None, calls,
            ]
        )  # fmt: skip
        if op == SSTORE and record["error"] is None:
            self.flush()
            slot, value = record["stack"][-1], record["stack"][-2]
            self.state.store(self.frames[-1].address, slot, value)

    def _enter(self, record: Record) -> None:
        kind, value = record["type"], record["value"]
        if kind in CREATIONS and self.events and self.events[-1][0] == "s":
            # go-ethereum charges the gas to the new frame
            self.events[-1][GAS_COST] -= record["gas"]
        self.flush()
        caller, target = record["from"], record["to"]
        if kind == DESTRUCTION:
            self._destroy(record)
            return
        address = target
        if kind in DELEGATES and self.frames:
            address = self.frames[-1].address
        frame = _Frame(kind, address, caller, value, target)
        if kind == "DELEGATECALL" and self.frames:
            frame.caller, frame.value = self.frames[-1].caller, self.frames[-1].value
        if kind in CREATIONS and self.frames:
            self.state.set_nonce(caller, self.state.nonce(caller) + 1)
        self.state.enter()
        if value and kind not in DELEGATES:
            self.state.move(caller, address, value)
        if kind in CREATIONS:
            self.state.set_nonce(address, 1)
        if not self.frames:
            self.top = record
        self.frames.append(frame)
        self.events.append(["e", self._entered(record, frame), len(self.frames) > 1])
        self._memory = b""

    def _entered(self, record: Record, frame: _Frame) -> dict[str, Any]:
        # As in go-ethereum: a DELEGATECALL has the value of the frame that makes it.
        sent = None if record["type"] == "STATICCALL" else f"{frame.value:x}"
        caller = record["from"]
        if record["type"] == "DELEGATECALL" and len(self.frames) > 1:
            # the contract that executed the opcode, as in go-ethereum
            caller = self.frames[-2].address
        return {
            "type": record["type"],
            "from": caller.hex(),
            "to": record["to"].hex(),
            "input": record["input"].hex(),
            "gas": record["gas"],
            "sent": sent,
            "caller": frame.caller.hex(),
            "address": frame.address.hex(),
            "value": f"{frame.value:x}",
        }

    def _destroy(self, record: Record) -> None:
        caller, target, value = record["from"], record["to"], record["value"]
        frame = _Frame(DESTRUCTION, caller, caller, value, target)
        self.events.append(["e", self._entered(record, frame), True])
        self.events.append(["x", 0, "", None, True, False])
        self.state.move(caller, target, value)
        self._destroyed = True

    def _leave(self, record: Record) -> None:
        if self._destroyed:  # the end of a frame that `_destroy` has already handled
            self._destroyed = False
            return
        self.flush()
        frame, error, output = self.frames.pop(), record["error"], record["output"]
        if error == INVALID and self._invalid is not None:
            error = self._invalid
        if error is None and frame.kind in CREATIONS:
            self.state.set_code(frame.address, output)
        self.state.leave(success=error is None)
        if not self.frames:
            self.end = {**record, "error": error}
        self.events.append(["x", record["gas_used"], output.hex(), error, bool(self.frames), False])
        self._memory = b""

    # --- reads of the state -----------------------------------------------------------------------

    def answer(self, question: list[Any]) -> Any:
        """Answers a state read of the worker."""
        name, *given = question
        address = bytes.fromhex(given[0])
        state = self.state
        if name == "balance":
            return f"{state.balance(address):x}"
        if name == "nonce":
            return state.nonce(address)
        if name == "code":
            return state.code(address).hex()
        if name == "state":
            return f"{state.slot(address, int(given[1], 16)):064x}"
        if name == "exists":
            return state.exists(address)
        if name == "contract":
            nonce = int(given[1])
            size = (nonce.bit_length() + 7) // 8
            return keccak256(encode([address, nonce.to_bytes(size, "big")]))[12:].hex()
        salt, code = bytes.fromhex(given[1]), bytes.fromhex(given[2])
        return keccak256(b"\xff" + address + salt + keccak256(code))[12:].hex()

    def context(self) -> dict[str, tuple[str, Any]]:
        """Returns the context of the function ``result``: the kind and value of each member by
        name.
        """
        finished, top = self.finished, self.top
        transaction, outcome = finished.transaction, finished.outcome
        error = self.end.get("error")
        found: dict[str, tuple[str, Any]] = {
            "type": ("", top.get("type", "CALL")),
            "from": ("bytes", top.get("from", transaction.sender or b"").hex()),
            "to": ("bytes", top.get("to", transaction.to or b"").hex()),
            "input": ("bytes", transaction.data.hex()),
            "gas": ("", transaction.gas_limit),
            "gasUsed": ("", outcome.gas_used),
            "gasPrice": ("number", f"{transaction.max_fee_per_gas:x}"),
            "value": ("number", f"{transaction.value:x}"),
            "output": ("bytes", outcome.output.hex()),
            "coinbase": ("bytes", finished.coinbase.hex()),
            "block": ("", finished.number),
        }
        if error is not None:
            found["error"] = ("", error)
        position = finished.position
        if position is not None:
            if position.block_hash is not None:
                found["blockHash"] = ("bytes", position.block_hash.hex())
            found["txIndex"] = ("", position.index)
            if position.tx_hash is not None:
                found["txHash"] = ("bytes", position.tx_hash.hex())
        return found
