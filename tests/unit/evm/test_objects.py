"""Tests Python features of machines, states and results: copies, pickles, reprs, help."""

import copy
import inspect
import os
import pickle
import pydoc
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastevm
from fastevm import EVM, Hooks, Layer, Transaction, blob_base_fee, simulate_many
from fastevm.errors import ExecutionFailed, FastevmError, UnknownForkError
from fastevm.simulate import CallRequest, SimulationError, call, view_of
from tests.max_wait import MAX_WAIT

A = "0x" + "a1" * 20
B = "0x" + "b2" * 20
C = "0x" + "c0" * 20
LOOP = "0x5b5f56"  # JUMPDEST PUSH0 JUMP
COUNTER = "0x5f54600101805f555f5260205ff3"  # SSTORE(0, SLOAD(0) + 1), RETURN of it
ENDLESS = 10**12  # gas for 50 seconds


@pytest.fixture
def evm() -> EVM:
    machine = EVM("cancun", chain_id=1337, number=500, base_fee=0, block_hashes=[b"\1" * 32])
    machine.set_account(A, balance=10**18)
    machine.set_account(C, code=COUNTER, storage={0: 41})
    return machine


# --- numbers and names ---


@pytest.mark.parametrize(
    "use",
    [
        lambda evm: evm.transact(C, sender=A, value=1.9),
        lambda evm: evm.transact(C, sender=A, gas=50_000.5),
        lambda evm: evm.transact(C, sender=A, nonce=0.5),
        lambda evm: evm.transact(C, sender=A, max_fee_per_gas=1.5),
        lambda evm: evm.call(C, value=1.9),
        lambda evm: evm.call(C, gas=1e6),
        lambda evm: evm.call(C, gas_price=1.5),
        lambda evm: evm.set_account(A, balance=1.5e18),
        lambda evm: evm.set_account(A, nonce=1.5),
        lambda evm: evm.set_account(A, storage={0: 1.5}),
        lambda evm: evm.set_balance(A, 1.5),
        lambda evm: evm.set_nonce(A, 1.5),
        lambda evm: evm.set_storage(A, 1, 1.5),
        lambda evm: evm.storage(C, 0.5),
        lambda evm: evm.set_block(number=1.5),
        lambda evm: evm.set_block(base_fee=1.5),
        lambda evm: EVM(timestamp=1e9),
    ],
)
def test_floats_are_refused(evm: EVM, use: Callable[[EVM], Any]) -> None:
    before, block = evm.state, evm.block
    with pytest.raises(TypeError, match="int"):
        use(evm)
    assert evm.state is before
    assert evm.block == block


@pytest.mark.parametrize(
    "use, message",
    [
        (lambda evm: evm.call(C, value=-1), "value cannot be negative"),
        (lambda evm: evm.call(C, value=2**256), "value does not fit 256 bits"),
        (lambda evm: evm.call(C, gas_price=2**100_000), "gas_price does not fit 256 bits"),
        (lambda evm: evm.call(C, gas=2**63), "gas does not fit 63 bits"),
        (lambda evm: evm.create(b"", value=-1), "value cannot be negative"),
        (lambda evm: evm.set_balance(A, -1), "balance cannot be negative"),
        (lambda evm: evm.set_account(A, nonce=2**64), "nonce does not fit 64 bits"),
        (lambda evm: evm.set_storage(A, -1, 1), "slot cannot be negative"),
        (lambda evm: evm.set_storage(A, 1, 2**256), "value does not fit 256 bits"),
        (lambda evm: evm.storage(A, 2**256), "slot does not fit 256 bits"),
        (lambda evm: evm.set_block(number=-1), "number cannot be negative"),
        (lambda evm: evm.set_block(base_fee=2**256), "base_fee does not fit 256 bits"),
        (lambda evm: evm.state.with_accounts({bytes(20): {"nonce": -1}}), "nonce cannot be neg"),
    ],
)
def test_numbers_that_do_not_fit_are_named(
    evm: EVM, use: Callable[[EVM], Any], message: str
) -> None:
    before, block = evm.state, evm.block
    with pytest.raises(OverflowError, match=message):
        use(evm)
    assert evm.state is before
    assert evm.block == block


@pytest.mark.parametrize(
    "use, message",
    [
        (lambda evm: EVM(None), "a fork is a name or a ForkSchedule, not NoneType"),
        (lambda evm: EVM(basefee=3), "no 'basefee': did you mean 'base_fee'"),
        (lambda evm: evm.set_block(numbr=3), "no 'numbr': did you mean 'number'"),
        (lambda evm: evm.transact(C, max_fee_per_gass=1), "did you mean 'max_fee_per_gas'"),
    ],
)
def test_mistakes_are_named(evm: EVM, use: Callable[[EVM], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        use(evm)


def test_an_unknown_fork_is_no_other_one() -> None:
    with pytest.raises(UnknownForkError, match="known are") as found:
        EVM("prexyzq")
    assert "did you mean" not in str(found.value)


def test_names_of_forks_and_hex_addresses_are_understood() -> None:
    assert blob_base_fee(0, "cancun") == 1
    assert Transaction.build(to=A, data="0x1234").to == b"\xa1" * 20


# --- single fields ---


def test_one_field_changes_and_the_others_stay(evm: EVM) -> None:
    evm.set_balance(C, 7)
    evm.set_nonce(C, 8)
    evm.set_storage(C, 5, 6)
    assert (evm.balance(C), evm.nonce(C), evm.storage(C, 0), evm.storage(C, 5)) == (7, 8, 41, 6)
    evm.set_code(C, "0x00")
    assert (evm.code(C), evm.balance(C), evm.storage(C, 0)) == (b"\0", 7, 41)
    assert (evm.block.number, evm.block.chain_id) == (500, 1337)
    assert evm.block_hashes == (b"\1" * 32,)


# --- calls that keep their changes, static, with an origin and blob hashes ---


def test_a_call_keeps_its_changes_when_asked_to(evm: EVM) -> None:
    assert int.from_bytes(evm.call(C, commit=True).output, "big") == 42
    assert evm.storage(C, 0) == 42
    assert evm.nonce(A) == 0
    evm.call(C, commit=True, gas=3000)  # runs out of gas
    assert evm.storage(C, 0) == 42


def test_a_kept_call_that_changes_nothing_keeps_the_state_itself(evm: EVM) -> None:
    before = evm.state
    evm.set_account(B, code="0x5f5400")
    kept = evm.state
    assert evm.call(B, commit=True).success and evm.state is kept
    assert kept is not before


def test_an_access_list_makes_a_call_warm(evm: EVM) -> None:
    evm.set_account(B, code="0x60055400")  # SLOAD of slot 5
    cold = evm.call(B).gas_used
    for slots in ([5], [(5).to_bytes(32, "big")]):
        assert evm.call(B, access_list=[(B, slots)]).gas_used == cold - 2_000
    assert evm.call(B, access_list=[(B, [6])]).gas_used == cold == evm.call(B).gas_used
    traced = evm.call(B, access_list=[(B, [5])], trace="calls", timeout=5)
    assert traced.gas_used == cold - 2_000 and traced.trace["type"] == "CALL"
    for wrong in ([(b"", [])], [(B, [-1])], [(B, ["x"])], 5):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            evm.call(B, access_list=wrong)  # type: ignore[arg-type]


def test_a_state_takes_hex_text() -> None:
    layer = Layer.of({A: {"balance": 3, "code": "0x6000"}})
    assert layer.code(b"\xa1" * 20) == b"\x60\0" and layer.balance(b"\xa1" * 20) == 3
    assert layer.without_accounts([A]).account_count == 0
    for wrong in ("a1" * 20, "0x12", "0xzz"):
        with pytest.raises(ValueError):
            Layer.of({wrong: {}})


def test_a_static_call_writes_nothing(evm: EVM) -> None:
    result = evm.call(C, static=True)
    assert not result.success
    assert evm.call(A, static=True).success


def test_origin_and_blob_hashes_are_what_code_sees(evm: EVM) -> None:
    evm.set_account(C, code="0x325f525f496020526001496040525f60605260805ff3")
    output = evm.call(C, sender=A, origin="0x" + "0f" * 20, blob_hashes=[b"\2" * 32]).output
    assert output[12:32] == b"\x0f" * 20
    assert output[32:64] == b"\2" * 32
    assert output[64:96] == bytes(32)
    assert evm.call(C, sender=A).output[12:64] == b"\xa1" * 20 + bytes(32)
    with pytest.raises(ValueError, match="32 bytes"):
        evm.call(C, blob_hashes=[b"\2"])


# --- snapshots ---


def test_the_number_of_a_snapshot_is_never_used_again(evm: EVM) -> None:
    old = evm.snapshot()
    evm.revert(old)
    new = evm.snapshot()
    assert new != old
    with pytest.raises(ValueError, match="no snapshot"):
        evm.revert(old)
    assert evm.snapshot_numbers == (new,)


def test_a_snapshot_brings_the_block_back(evm: EVM) -> None:
    before = evm.block
    with evm.snapshot():
        evm.set_block(number=900, base_fee=5, block_hashes=[])
        evm.set_balance(A, 0)
    assert evm.block == before
    assert evm.block_hashes == (b"\1" * 32,)
    assert evm.balance(A) == 10**18


# --- copies and pickles ---


def test_layers_are_copied_and_pickled(evm: EVM) -> None:
    assert copy.copy(evm.state) is evm.state
    assert copy.deepcopy(evm.state) is evm.state
    again = pickle.loads(pickle.dumps(evm.state))
    assert again.state_root() == evm.state.state_root()


class Named(EVM):
    """A subclass of EVM with an attribute."""

    name = ""


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_machines_are_copied_and_pickled(again: Callable[[Any], Any]) -> None:
    evm = Named("cancun", chain_id=1337, number=500, block_hashes=[b"\1" * 32])
    evm.set_account(C, code=COUNTER)
    evm.name = "first"
    snapshot = evm.snapshot()
    evm.set_balance(C, 3)
    other = again(evm)
    assert type(other) is Named
    assert (other.name, other.block, other.block_hashes) == ("first", evm.block, evm.block_hashes)
    assert other.schedule.name == "Cancun"
    assert other.state.state_root() == evm.state.state_root()
    other.set_balance(C, 4)
    assert evm.balance(C) == 3
    other.revert(snapshot)
    assert other.balance(C) == 0


def test_a_pickle_of_something_else_is_refused() -> None:
    for state in ((), (1, 2, 3), (1, 2, 3, 4, 5, 6, 7, 8)):
        with pytest.raises(TypeError):
            EVM.__new__(EVM).__setstate__(state)  # type: ignore[attr-defined]


def test_results_are_equal_by_their_values(evm: EVM) -> None:
    first, second = evm.call(C), evm.call(C)
    assert first == second
    assert hash(first) == hash(second)
    assert first == pickle.loads(pickle.dumps(first))
    evm.call(C, commit=True)
    assert first != evm.call(C)


# --- words ---


def test_reprs_are_short_and_say_what_there_is(evm: EVM) -> None:
    assert repr(evm) == "<EVM Cancun, chain 1337, block 500, 2 accounts>"
    assert repr(evm.state) == "<Layer: 2 accounts>"
    size = 2000
    deployed = evm.deploy(f"0x61{size:04x}5ff3", sender=A)
    assert deployed.success, deployed.error
    assert len(repr(deployed)) < 300
    assert f"({size} bytes)" in repr(deployed)
    assert deployed.created_address is not None
    assert deployed.created_address.hex() in repr(deployed)


def test_notebooks_show_tables(evm: EVM) -> None:
    evm.set_account(A, balance=10**18)
    evm.set_code(C, "0x602a5f5260205fa060205ff3")  # a log without topics, and its data
    shown = evm.call(C)._repr_html_()
    assert "<caption>ExecutionResult</caption>" in shown and "<caption>logs</caption>" in shown
    assert "<td>success</td>" in shown and f"{42:064x}" in shown
    assert "<td>invalid opcode</td>" in EVM().create("0xfe")._repr_html_()
    assert "<td>chain_id</td><td>1,337</td>" in evm._repr_html_()
    bundles = [[{"from": A, "to": C}] * 30]
    (part,) = simulate_many(evm, bundles, columns=True, threads=1)
    shown = part._repr_html_()
    assert "<caption>1 bundles of 30 calls</caption>" in shown and "... 10 more" in shown


def test_the_newest_rules_of_mainnet_have_a_name() -> None:
    assert EVM("latest").schedule.name == EVM("bpo2").schedule.name


def test_help_shows_how_a_machine_is_made() -> None:
    names = ["fork", "state", "unchecked", "code_size_limit", "chain_id", "number"]
    assert list(inspect.signature(EVM).parameters)[:6] == names
    text = re.sub(r".\x08", "", pydoc.render_doc(EVM))
    assert "EVM(fork='osaka', *, state=None, unchecked=(), code_size_limit=None, chain_id=1" in text
    assert EVM.__doc__ is not None
    assert EVM.__doc__.startswith("An EVM over a state in memory")


# --- time ---


def interrupted_soon(run: Callable[[], Any], seconds: float = 0.1) -> float:
    """Interrupts a run with a signal. Returns the seconds from the signal to the exception."""
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run()
    timer.join()
    return time.monotonic() - started - seconds


@pytest.fixture
def endless() -> Iterator[EVM]:
    # the process may have started with SIGINT ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    machine = EVM("osaka", gas_limit=ENDLESS * 2)
    machine.set_account(A, balance=10**18)
    machine.set_account(C, code=LOOP)
    yield machine
    signal.signal(signal.SIGINT, before)


CALL = {"from": A, "to": C, "gas": ENDLESS}
UNBOUNDED: dict[str, Any] = {"gas_cap": 0, "timeout": 60}


@pytest.mark.parametrize(
    "run",
    [
        lambda evm: evm.call(C, gas=ENDLESS),
        lambda evm: fastevm.simulate(evm, [CALL], **UNBOUNDED),
        lambda evm: list(simulate_many(evm, [[CALL]], threads=1, **UNBOUNDED)),
        lambda evm: list(simulate_many(evm, [[CALL]], threads=2, **UNBOUNDED)),
        lambda evm: call(view_of(evm), CallRequest(to=b"\xc0" * 20, gas=ENDLESS), **UNBOUNDED),
    ],
)
def test_ctrl_c_ends_what_runs(endless: EVM, run: Callable[[EVM], Any]) -> None:
    assert interrupted_soon(lambda: run(endless)) < 5
    assert fastevm.simulate(endless, [{"from": A, "to": A}])[0].calls[0].success


def test_ctrl_c_ends_what_runs_after_its_handler_was_set_anew(endless: EVM) -> None:
    endless.call(C, gas=ENDLESS // 10**4)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert interrupted_soon(lambda: endless.call(C, gas=ENDLESS)) < 5
    fastevm.simulate(endless, [{"from": A, "to": A}])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert interrupted_soon(lambda: fastevm.simulate(endless, [CALL], **UNBOUNDED)) < 5


def test_ctrl_c_ends_calls_without_loops_after_its_handler_was_set_anew(endless: EVM) -> None:
    endless.set_account(C, code="0x" + "5f5f5f5f5f305af1" * 3)  # calls itself three times
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert interrupted_soon(lambda: endless.call(C, gas=ENDLESS)) < 5


def test_a_signal_that_raises_nothing_changes_no_result(endless: EVM) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        calls = [{"from": A, "to": C, "gas": 3 * 10**8}]
        (block,) = fastevm.simulate(endless, calls, **UNBOUNDED)
        assert block.calls[0].gas_used == 3 * 10**8
        (bundle,) = simulate_many(endless, [calls], threads=1, **UNBOUNDED)
        assert bundle.gas_used == 3 * 10**8
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


@pytest.mark.parametrize("on_main_thread", [True, False])
def test_a_run_ends_with_its_time(endless: EVM, on_main_thread: bool) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        for use in (
            lambda: endless.call(C, gas=ENDLESS, timeout=0.1),
            lambda: endless.deploy("0x5b5f56", gas=2**24, sender=A, timeout=1e-9, nonce=0),
        ):
            try:
                use()
            except FastevmError as error:
                errors.append(error)

    started = time.monotonic()
    if on_main_thread:
        run()
    else:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert time.monotonic() - started < MAX_WAIT
    assert isinstance(errors[0], SimulationError)
    assert "timeout = 0.1s" in str(errors[0])
    assert endless.nonce(A) in (0, 1)  # a short execution may end before the time limit is checked
    assert endless.call(A, timeout=10).success


def test_states_without_accounts_have_words_too() -> None:
    assert repr(Layer.empty()) == "<Layer: 0 accounts>"


def test_a_result_is_checked_and_has_the_truth_of_its_success(evm: EVM) -> None:
    evm.set_code(C, "0x5f5ffd")
    failed, done = evm.call(C), evm.call(b"\x0d" * 20)
    assert done and done.check() is done and not failed
    with pytest.raises(ExecutionFailed, match="execution reverted") as found:
        failed.check()
    assert pickle.loads(pickle.dumps(found.value)).result == failed


def test_an_unknown_opcode_is_suggested() -> None:
    with pytest.raises(ValueError, match="'SLOADD': did you mean 'SLOAD'"):
        Hooks(opcodes=("SLOADD",))
