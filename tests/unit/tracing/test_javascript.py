"""Tests JavaScript tracers: go-ethereum's interface, limits, and a bundler's collector."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from fastevm.core.primitives.keccak import keccak256
from fastevm.core.simulation.values import CallRequest
from fastevm.tracing import TraceRequest, TracingError, trace_call
from fastevm.tracing.javascript import worker_process
from tests.max_wait import MAX_WAIT
from tests.unit.core.interpreter.programs import asm

from .support import MAIN, OTHER, SENDER, traced

pytest.importorskip("quickjs", reason="needs the extra fastevm[javascript]")

NOTHING = "fault: function() {}, result: function() { return null }"


def ran(program: str, code: bytes = b"", **more: Any) -> Any:
    """Returns the result of a tracer for a call to MAIN. ``program``: the tracer's members."""
    accounts = {MAIN: {"code": code or asm("STOP"), "balance": 10**6}, **more.pop("accounts", {})}
    return traced(accounts, tracer="{" + program + "}", **more)


def test_steps_have_the_values_of_the_machine() -> None:
    found = ran(
        """data: [], fault: function() {}, result: function() { return this.data },
        step: function(log, db) {
          this.data.push([log.getPC(), log.op.toString(), log.op.toNumber(), log.op.isPush(),
            log.getGas(), log.getCost(), log.getDepth(), log.getRefund(), log.stack.length(),
            log.stack.length() ? log.stack.peek(0).toString(16) : null, log.memory.length(),
            toHex(log.contract.getAddress()), toHex(log.contract.getCaller()),
            log.contract.getValue(), toHex(log.contract.getInput()), log.getError()]) }""",
        asm(0xAB, 0, "MSTORE", "STOP"),
        data=b"\x01\x02",
    )
    assert [step[1] for step in found] == ["PUSH1", "PUSH1", "MSTORE", "STOP"]
    assert [step[0] for step in found] == [0, 2, 4, 5]
    assert [step[3] for step in found] == [True, True, False, False]
    assert [step[8:11] for step in found] == [
        [0, None, 0],
        [1, "ab", 0],
        [2, "0", 0],
        [0, None, 32],
    ]
    assert found[0][4] - found[1][4] == found[0][5] == 3
    assert found[2][5] == 6
    assert found[0][6:8] == [1, 0]
    assert found[0][11] == "0x" + MAIN.hex()
    assert found[0][13:15] == ["0", "0x0102"]
    assert len(found[0]) == 16 and found[0][15] is None


def test_opcodes_have_the_names_of_go_ethereum() -> None:
    """Bundlers compare the names with a list of forbidden opcodes (ERC-7562)."""
    found = ran(
        """data: [], fault: function() {}, result: function() { return this.data },
        step: function(log) { this.data.push(log.op.toString()) }""",
        asm("PREVRANDAO", 0, "KECCAK256") + b"\x0c",
    )
    assert found == ["DIFFICULTY", "PUSH1", "KECCAK256", "opcode 0xc not defined"]


def test_memory_is_that_before_the_step() -> None:
    found = ran(
        """data: [], fault: function() {}, result: function() { return this.data },
        step: function(log) {
          if (log.op.toString() !== 'STOP') return;
          this.data.push(toHex(log.memory.slice(30, 34)), log.memory.getUint(0).toString(16));
          this.data.push(toHex(log.memory.slice(32, 40)));
          try { log.memory.getUint(1) } catch (e) { this.data.push(e.message) }
          try { log.stack.peek(0) } catch (e) { this.data.push(e.message) } }""",
        asm(0xABCD, 0, "MSTORE", "STOP"),
    )
    assert found[:3] == ["0xabcd0000", "abcd", "0x" + "00" * 8]
    assert found[3] == "tracer accessed out of bound memory: available 32, offset 1, size 32"
    assert found[4] == "tracer accessed out of bound stack: size 0, index 0"


def test_the_state_is_that_of_the_step() -> None:
    code = asm(5, 1, "SSTORE", 0, 0, 0, 0, 7, OTHER, 50_000, "CALL", "STOP")
    found = ran(
        f"""data: [], me: '0x{MAIN.hex()}', other: '0x{OTHER.hex()}', fault: function() {{}},
        read: function(log, db) {{
          var key = toWord('0x1');
          this.data.push([log ? log.op.toString() + log.getDepth() : 'end',
            toHex(db.getState(toAddress(this.me), key)).slice(-2),
            db.getBalance(toAddress(this.other)).toString(), db.getNonce(toAddress(this.other)),
            toHex(db.getCode(toAddress(this.other))), db.exists(toAddress('0xdead'))]) }},
        step: function(log, db) {{
          if (['SSTORE', 'CALL', 'STOP', 'REVERT'].indexOf(log.op.toString()) >= 0)
            this.read(log, db) }},
        result: function(ctx, db) {{ this.read(null, db); return this.data }}""",
        code,
        accounts={OTHER: {"code": asm(0, 0, "REVERT"), "balance": 3, "nonce": 4}},
    )
    code_text = "0x" + asm(0, 0, "REVERT").hex()
    expected = {
        "SSTORE1": ("00", "3"),
        "CALL1": ("05", "3"),
        "REVERT2": ("05", "10"),
        "STOP1": ("05", "3"),
        "end": ("05", "3"),
    }
    assert [row[0] for row in found] == list(expected)
    for name, slot, balance, nonce, text, exists in found:
        assert (slot, balance) == expected[name]
        assert (nonce, text, exists) == (4, code_text, False)


def test_frames_enter_and_exit_below_the_first() -> None:
    inner = asm(1, 0, "MSTORE8", 1, 0, "RETURN")
    code = (
        asm(0, 0, 4, 0, 7, OTHER, 50_000, "CALL", "POP")
        + asm(0, 0, 0, 0, OTHER, 50_000, "DELEGATECALL", "POP")
        + asm(0, 0, 0, 0, OTHER, 50_000, "STATICCALL", "POP")
        + asm(0, 0, 0, 0, 0, "CREATE", "STOP")
    )
    found = ran(
        """data: [], fault: function() {}, result: function() { return this.data },
        enter: function(f) { this.data.push(['enter', f.getType(), toHex(f.getFrom()),
          toHex(f.getTo()), toHex(f.getInput()), f.getGas() > 0,
          f.getValue() === undefined ? null : f.getValue().toString()]) },
        exit: function(r) { this.data.push(['exit', r.getGasUsed() >= 0, toHex(r.getOutput()),
          r.getError() === undefined]) }""",
        code,
        accounts={OTHER: {"code": inner}, SENDER: {"balance": 5}},
        value=5,
    )
    main, other = "0x" + MAIN.hex(), "0x" + OTHER.hex()
    assert found[0] == ["enter", "CALL", main, other, "0x00000000", True, "7"]
    assert found[1] == ["exit", True, "0x01", True]
    assert found[2] == ["enter", "DELEGATECALL", main, other, "0x", True, "5"]
    assert found[4] == ["enter", "STATICCALL", main, other, "0x", True, None]
    assert found[6][:3] == ["enter", "CREATE", main]
    assert len(found) == 8


def test_a_failing_step_calls_fault() -> None:
    program = """data: [], step: function(log) { this.data.push('s' + log.op.toString()) },
        fault: function(log) { this.data.push('f' + log.op.toString(), log.getError()) },
        result: function(ctx) { return [this.data, ctx.error] }"""
    steps, error = ran(program, asm(0, 0, "REVERT"))
    assert steps[2:] == ["sREVERT", "fREVERT", "execution reverted"] == [*steps[2:4], error]
    steps, error = ran(program, bytes.fromhex("fe"))
    assert steps[-2].startswith("f") and "invalid opcode" in steps[-1] and error == steps[-1]


def test_only_fault_gets_an_error_of_the_operation_itself() -> None:
    program = """data: [], step: function(log) { this.data.push(log.getError() === undefined) },
        fault: function(log) { this.data.push(log.getError()) },
        result: function(ctx) { return this.data }"""
    assert ran(program, asm(0, 0, "REVERT")) == [True, True, True, "execution reverted"]
    *before, error = ran(program, bytes.fromhex("fe"))
    assert before == [True] and error == "invalid opcode: INVALID"
    assert ran(program, asm("POP"))[-1] is False  # the halt is detected before the step


def test_a_destruction_is_a_frame_that_is_left_at_once() -> None:
    program = """data: [], enter: function(frame) { this.data.push(frame.getType()) },
        exit: function(frame) { this.data.push(frame.getGasUsed()) },
        step: function(log, db) {}, fault: function() {},
        result: function(ctx, db) {
          return [this.data, db.getBalance(ctx.to).toString()] }"""
    code = asm(int.from_bytes(OTHER, "big"), "SELFDESTRUCT")
    assert ran(program, code) == [["SELFDESTRUCT", 0], "0"]


def test_the_cost_of_a_creation_is_without_the_gas_of_its_frame() -> None:
    program = """data: [], fault: function() {}, result: function() { return this.data },
        step: function(log) { this.data.push([log.op.toString(), log.getCost()]) }"""
    assert ["CREATE", 32_000] in ran(program, asm(0, 0, 0, "CREATE"))


def test_the_context_describes_the_call() -> None:
    found = ran(
        """fault: function() {}, result: function(ctx) {
        return [ctx.type, toHex(ctx.from).length, toHex(ctx.to), toHex(ctx.input), ctx.gasUsed > 0,
          ctx.gas >= ctx.gasUsed, ctx.value, ctx.gasPrice.toString(), toHex(ctx.output), ctx.block,
          ctx.error === undefined] }""",
        asm(7, 0, "MSTORE8", 1, 0, "RETURN"),
        data=b"\x05",
    )
    assert found[:4] == ["CALL", 42, "0x" + MAIN.hex(), "0x05"]
    assert found[4:9] == [True, True, "0", "0", "0x07"] and found[10] is True


def test_the_functions_of_go_ethereum_are_there() -> None:
    sender, salt, code = "0x" + "ab" * 20, "0x" + "11" * 32, b"\x60\x01"
    second = keccak256(b"\xff" + b"\xab" * 20 + b"\x11" * 32 + keccak256(code))[12:]
    found = ran(
        f"""fault: function() {{}}, result: function() {{ return [
        toHex(toWord('0x12')), toHex(toAddress('0x' + 'ff'.repeat(32))), toHex('0xabc'),
        toHex(toContract('{sender}', 1)), toHex(toContract2('{sender}', '{salt}', '0x6001')),
        isPrecompiled(toAddress('0x1')), isPrecompiled(toAddress('0x99')),
        toHex(slice([1, 2, 3, 4], 1, 3)), bigInt('ff', 16).toString(), bigInt(5).add(7).times(2),
        bigInt(2).pow(200).toString(16), bigInt(7).mod(4).eq(3),
        bigInt(1).shiftLeft(9).toJSNumber(), bigInt(3).lt(bigInt(4)), bigInt(0).isZero()] }}""",
    )
    assert found[0] == "0x" + "00" * 31 + "12"
    assert found[1] == "0x" + "ff" * 20
    assert found[2] == "0x0abc"
    assert found[4] == "0x" + second.hex()
    assert found[5:] == [True, False, "0x0203", "255", "24", hex(2**200)[2:], True, 512, True, True]
    assert len(found[3]) == 42


def test_setup_gets_the_configuration_as_text() -> None:
    program = """setup: function(text) { this.config = JSON.parse(text) }, fault: function() {},
        result: function() { return this.config }"""
    assert ran(program) == {}
    assert ran(program, config={"x": [1]}) == {"x": [1]}


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("{}", "trace object must expose a function result()"),
        ("{result: function() {}}", "trace object must expose a function fault()"),
        (
            "{result: function() {}, fault: function() {}, enter: function() {}}",
            "either both or none of enter() and exit()",
        ),
        ("{result: function( {}", "SyntaxError"),
        (
            "{result: function() {}, fault: function() {}, step: function() { x.y }}",
            "'x' is not defined    in server-side tracer function 'step'",
        ),
        (
            "{result: function() { throw new Error('no ' + 'luck') }, fault: function() {}}",
            "no luck    in server-side tracer function 'result'",
        ),
    ],
)
def test_errors_of_a_program_name_the_function(program: str, text: str) -> None:
    with pytest.raises(TracingError) as caught:
        traced({MAIN: {"code": asm("STOP")}}, tracer=program)
    assert text in str(caught.value)


def test_time_and_memory_are_limited() -> None:
    forever = "{result: function() { for (;;); }, fault: function() {}}"
    call = CallRequest(to=MAIN, gas=100_000)
    started = time.monotonic()
    with pytest.raises(TracingError, match="execution timeout"):
        trace_call(_machine(), call, TraceRequest(tracer=forever, timeout=0.5))
    assert time.monotonic() - started < MAX_WAIT
    for hungry in (
        "var a = []; for (;;) a.push([1, 2, 3])",
        "var a = 'x'; for (;;) a += a",
        "function f() { f() } f()",
    ):
        program = f"{{result: function() {{ {hungry} }}, fault: function() {{}}}}"
        with pytest.raises(TracingError, match=r"memory|stack|too long|string"):
            trace_call(_machine(), call, TraceRequest(tracer=program, timeout=20.0))
    assert ran(NOTHING) is None  # the next tracer is not affected


def _machine() -> Any:
    from fastevm import EVM

    machine = EVM()
    machine.set_code(MAIN, asm("STOP"))
    return machine


def test_a_program_sees_no_files_and_no_other_trace() -> None:
    program = """fault: function() {}, result: function() { globalThis.left = 1;
        return [typeof std, typeof os, typeof require, typeof fetch, typeof __request,
          typeof left] }"""
    found = ran(program)
    assert found == ["undefined"] * 5 + ["number"]
    assert ran("fault: function() {}, result: function() { return typeof left }") == "undefined"


def test_workers_are_used_again_and_end_with_the_process() -> None:
    worker_process.end_idle_workers()
    assert ran(NOTHING) is None
    (first,) = worker_process._idle
    assert ran(NOTHING) is None
    assert worker_process._idle == [first]
    worker_process.end_idle_workers()
    assert first._process.returncode is not None


def test_without_the_engine_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "find_spec", lambda name: None)
    with pytest.raises(TracingError, match=r"install fastevm\[javascript\]"):
        ran(NOTHING)


COLLECTOR = """{
  frames: [], calls: [], logs: [], keccak: [], current: null, stopped: false, depth: 0,
  fault: function(log, db) { this.stopped = true; },
  result: function(ctx, db) {
    return { frames: this.frames, calls: this.calls, logs: this.logs, keccak: this.keccak };
  },
  enter: function(frame) {
    this.calls.push({ type: frame.getType(), from: toHex(frame.getFrom()), to: toHex(frame.getTo()),
      method: toHex(frame.getInput()).slice(0, 10), gas: frame.getGas(), value: frame.getValue() });
  },
  exit: function(frame) {
    this.calls.push({ type: frame.getError() !== undefined ? 'REVERT' : 'RETURN',
      gasUsed: frame.getGasUsed(), data: toHex(frame.getOutput()).slice(0, 4000) });
  },
  step: function(log, db) {
    if (this.stopped) return;
    var op = log.op.toString(), depth = log.getDepth();
    if (depth === 1 && (op === 'CALL' || op === 'STATICCALL')) {
      this.current = { target: toHex(toAddress(log.stack.peek(1).toString(16))), opcodes: {},
        access: {}, sizes: {} };
      this.frames.push(this.current);
      return;
    }
    if (this.current === null) return;
    if (/^(EXT.*|CALL|CALLCODE|DELEGATECALL|STATICCALL)$/.test(op)) {
      var address = toAddress(log.stack.peek(op.indexOf('EXT') === 0 ? 0 : 1).toString(16));
      if (!isPrecompiled(address))
        this.current.sizes[toHex(address)] = db.getCode(address).length;
    }
    if (op === 'SLOAD' || op === 'SSTORE') {
      var owner = toHex(log.contract.getAddress()), slot = toWord(log.stack.peek(0).toString(16));
      var access = this.current.access[owner] || (this.current.access[owner] =
        { reads: {}, writes: {} });
      var name = toHex(slot);
      if (op === 'SLOAD') {
        if (!(name in access.reads) && !(name in access.writes))
          access.reads[name] = toHex(db.getState(toAddress(owner), slot));
      } else access.writes[name] = (access.writes[name] || 0) + 1;
    }
    if (op === 'KECCAK256') {
      var start = parseInt(log.stack.peek(0).toString()), size = parseInt(log.stack.peek(1));
      this.keccak.push(toHex(log.memory.slice(start, start + size)));
    }
    if (/^LOG[0-4]$/.test(op)) this.logs.push(op);
    this.current.opcodes[op] = (this.current.opcodes[op] || 0) + 1;
  }
}"""


def test_a_collector_of_a_bundler_sees_what_validation_accesses() -> None:
    """Checks the opcodes, storage, code sizes and hashes of each validation phase (ERC-7562)."""
    wallet = (
        asm(3, "SLOAD", 1, "ADD", 3, "SSTORE")
        + asm(0x1234, 0, "MSTORE", 32, 0, "KECCAK256", "POP")
        + asm(OTHER, "EXTCODESIZE", "POP", 0, 0, "LOG0", "STOP")
    )
    third = b"\xdd" * 20
    entry_point = asm(0, 0, 4, 0, 0, third, 200_000, "CALL", "POP", "STOP")
    found = traced(
        {
            MAIN: {"code": entry_point},
            third: {"code": wallet, "storage": {3: 41}},
            OTHER: {"code": b"\x00\x00\x00"},
        },
        tracer=COLLECTOR,
    )
    (frame,) = found["frames"]
    owner, slot = "0x" + third.hex(), "0x" + "00" * 31 + "03"
    assert frame["target"] == owner
    assert frame["access"] == {
        owner: {"reads": {slot: "0x" + "00" * 31 + "29"}, "writes": {slot: 1}}
    }
    assert frame["sizes"] == {"0x" + OTHER.hex(): 3}
    assert frame["opcodes"]["SSTORE"] == frame["opcodes"]["KECCAK256"] == 1
    assert found["keccak"] == ["0x" + "00" * 30 + "1234"]
    assert found["logs"] == ["LOG0"]
    assert [call["type"] for call in found["calls"]] == ["CALL", "RETURN"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_leaves_the_workers_to_its_parent() -> None:
    assert ran(NOTHING) is None
    child = os.fork()
    if child == 0:
        os._exit(len(worker_process._idle))
    assert os.waitpid(child, 0)[1] == 0
    assert ran(NOTHING) is None
