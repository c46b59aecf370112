"""Tests that no use of the public objects crashes the process.

Each case runs in a separate process that must exit with code 0.
"""

import os
import subprocess
import sys
import textwrap

import pytest

from tests.max_wait import MAX_WAIT
from tests.shared_data import ROOT

PRELUDE = """
import gc, signal, threading, time
import pytest
from fastevm import EVM, Layer
signal.signal(signal.SIGINT, signal.default_int_handler)  # who started us may ignore it
CONTRACT, OTHER = b"\\xc0" * 20, b"\\xa1" * 20
LOOP = bytes.fromhex("5b600056")
# reads one balance after another, of accounts 0 to 2**18 - 1
READER = bytes.fromhex("5f5b600101806203ffff163150600156")

def accounts(count, first=1):
    return {n.to_bytes(20, "big"): {"balance": n} for n in range(first, first + count)}

def while_running(evm, act, gas):
    began, ended = threading.Event(), []
    def run():
        began.set()
        ended.append(evm.call(CONTRACT, gas=gas))
    thread = threading.Thread(target=run)
    thread.start()
    began.wait()
    time.sleep(0.05)
    assert not ended, "the run ended too soon"
    act()
    thread.join()
    assert ended[0].error == "out of gas"
"""

CASES = {
    "no state": """
        evm = EVM()
        with pytest.raises(TypeError):
            evm.state = None
        with pytest.raises(AttributeError):
            del evm.state
        assert evm.call(CONTRACT).success
    """,
    "a layer without its constructor": """
        layer = Layer.__new__(Layer)
        assert layer.state_root() == Layer.empty().state_root()
        assert layer.account_count == 0 and layer.proof(OTHER, [1]).account is None
        assert layer.with_accounts({OTHER: {"balance": 1}}).balance(OTHER) == 1
    """,
    "an EVM without its constructor": """
        evm = EVM.__new__(EVM)
        evm.set_block(gas_limit=30_000_000)
        evm.set_account(CONTRACT, code=b"\\x5f\\x5f\\xf3")
        assert evm.call(CONTRACT).success and evm.transact(CONTRACT).success
        with pytest.raises(ValueError):
            evm.revert(0)
    """,
    "a foreign snapshot": """
        evm = EVM()
        with pytest.raises(AttributeError):
            evm.snapshots.append(None)
        evm.snapshot()
        evm.revert(0)
        assert evm.call(CONTRACT).success
    """,
    "block hashes that lie about their number": """
        class Liar(list):
            def __len__(self):
                return 1
        evm = EVM()
        with pytest.raises(ValueError):
            evm.set_block(block_hashes=Liar([bytes(32)] * 100_000))
        with pytest.raises(TypeError):
            evm.set_block(block_hashes=[None])
        assert evm.call(CONTRACT).success
    """,
    "another thread that changes a running EVM": """
        evm = EVM(state=Layer.of(accounts(200_000) | {CONTRACT: {"code": READER}}))
        evm.snapshot()
        def act():
            changes = [
                lambda: evm.revert(0), lambda: setattr(evm, "state", Layer.empty()),
                lambda: evm.__init__("frontier"), lambda: evm.set_block(number=9),
                lambda: evm.set_account(OTHER, 1), lambda: evm.call(OTHER), lambda: evm.snapshot(),
                lambda: evm.transact(OTHER),
            ]
            for change in changes:
                with pytest.raises(RuntimeError):
                    change()
            gc.collect()
            for first in range(3):
                Layer.of(accounts(100_000, first))
        while_running(evm, act, gas=1_500_000_000)  # a second, however busy the machine is
        assert evm.schedule.name == "Osaka"
    """,
    "Ctrl-C during a call": """
        evm = EVM()
        evm.set_account(CONTRACT, code=LOOP)
        threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
        began = time.thread_time()
        with pytest.raises(KeyboardInterrupt):
            evm.call(CONTRACT, gas=10**12)
        evm.call(CONTRACT, gas=1_000_000)
        assert time.thread_time() - began < 2
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    """,
    "Ctrl-C during a transaction": """
        evm = EVM(gas_limit=10**13)
        evm = EVM("prague", gas_limit=10**13)
        evm.set_account(CONTRACT, code=LOOP)
        root = evm.state.state_root()
        threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            evm.transact(CONTRACT, gas=10**12)
        assert evm.state.state_root() == root
        assert evm.transact(CONTRACT, gas=1_000_000).error == "out of gas"
    """,
    "an alarm during a call": """
        class Alarm(Exception):
            pass

        def raise_alarm(*_):
            raise Alarm

        evm = EVM()
        evm.set_account(CONTRACT, code=LOOP)
        for number in (signal.SIGALRM, signal.SIGUSR1, signal.SIGHUP):
            signal.signal(number, raise_alarm)
            threading.Timer(0.2, signal.raise_signal, [number]).start()
            with pytest.raises(Alarm):
                evm.call(CONTRACT, gas=10**12)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Alarm):
            evm.call(CONTRACT, gas=10**12)
    """,
    "a signal at any moment around the start of a run": """
        evm = EVM()
        evm.set_account(CONTRACT, code=LOOP)
        for delay in [step / 20_000 for step in range(60)]:
            sender = threading.Thread(
                target=lambda: (time.sleep(delay), signal.raise_signal(signal.SIGINT))
            )
            with pytest.raises(KeyboardInterrupt):
                sender.start()
                assert evm.call(CONTRACT, gas=10**12)
                time.sleep(60)
            sender.join()
    """,
    "a signal whose handler goes on": """
        served = []
        signal.signal(signal.SIGINT, lambda *_: served.append(time.monotonic()))
        evm = EVM()
        evm.set_account(CONTRACT, code=LOOP)
        threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
        result = evm.call(CONTRACT, gas=4_000_000_003)
        assert result.error == "out of gas" and result.gas_used == 4_000_000_003
        assert served and time.monotonic() > served[0]
    """,
    "a handler that runs code": """
        evm, other = EVM(), EVM()
        evm.set_account(CONTRACT, code=LOOP)
        other.set_account(CONTRACT, code=LOOP)
        found = []
        signal.signal(
            signal.SIGINT, lambda *_: found.append(other.call(CONTRACT, gas=100_000_000).error)
        )
        threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
        assert evm.call(CONTRACT, gas=4_000_000_000).error == "out of gas"
        assert found == ["out of gas"]
    """,
    "a transaction without its constructor": """
        import copy, pickle
        from fastevm import Transaction
        from fastevm.core.execution.transaction.transaction import restore, sign_authorization
        made = Transaction.__new__(Transaction)
        for act in (copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t)), repr, hash):
            try:
                act(made)
            except (TypeError, ValueError):
                pass
        with pytest.raises(TypeError):
            restore(None, None)
        with pytest.raises((ValueError, TypeError)):
            restore(Transaction.build().raw, b"short")
        with pytest.raises(TypeError):
            copy.deepcopy(made)
    """,
    "a result without its constructor": """
        from fastevm import ExecutionResult
        made = ExecutionResult.__new__(ExecutionResult)
        assert made.logs == () and not made.success
        assert "error=None" in repr(made)
        evm = EVM()
        evm.set_account(CONTRACT, code=bytes.fromhex("5f5fa0602a5f5260205ff3"))
        import copy, pickle
        for result in (evm.call(CONTRACT), made):
            for again in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
                assert repr(again) == repr(result) and again.logs == result.logs
        restore, values = result.__reduce__()
        for place in range(len(values)):
            for value in (None, 5, "x", (), (None,)):
                try:
                    again = restore(*values[:place], value, *values[place + 1:])
                    repr(again), again.logs
                except (TypeError, ValueError):
                    pass
    """,
    "addresses that lie about their length": """
        from fastevm import Transaction
        from fastevm.core.execution.transaction.transaction import sign_authorization
        class Liar(list):
            def __len__(self):
                return 20
        for address in (Liar(), Liar([1] * 40), b"", b"x" * 21, None, 20):
            if address is not None:
                with pytest.raises((ValueError, TypeError)):
                    Transaction.build(sender=address)
            with pytest.raises((ValueError, TypeError)):
                sign_authorization(b"\\1" * 32, chain_id=1, address=address, nonce=0)
        assert Transaction.build(sender=bytearray(b"x" * 20)).sender == b"x" * 20
    """,
    "a view with parts of another kind": """
        from dataclasses import replace
        import fastevm
        from fastevm.simulate import view_of
        view = view_of(Layer.empty())
        for coinbase in (None, b"", "x" * 20, 5, bytearray(20)):
            with pytest.raises((ValueError, TypeError)):
                hostile = replace(view, header=replace(view.header, coinbase=coinbase))
                fastevm.simulate(hostile, [{"to": CONTRACT}])
        with pytest.raises(TypeError):
            from fastevm.core.primitives.keccak import keccak256_all
            keccak256_all([None])
    """,
    "accounts that cannot be": """
        bad = [{"nonce": -1}, {"nonce": 2**64}, {"balance": -1}, {"code": None},
               {"storage": {-1: 1}}, {"code": b"\\x00" * 1_000_000, "nonce": "x"}]
        for fields in bad:
            with pytest.raises((ValueError, OverflowError, TypeError)):
                Layer.of({OTHER: fields})
        for address in (None, b"", b"x" * 21, "x" * 20):
            with pytest.raises((ValueError, TypeError)):
                Layer.of({address: {}})
    """,
}


def run(code: str, seconds: float = MAX_WAIT) -> None:
    """Runs the code in a separate process. Asserts that it exits with code 0."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
        cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"


@pytest.mark.parametrize("name", CASES)
def test_the_process_goes_on(name: str) -> None:
    run(CASES[name])


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="it keeps what was freed")
def test_a_layer_that_fails_keeps_no_code() -> None:
    run(
        """
        from pathlib import Path

        def resident():
            return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

        def fail(times):
            for _ in range(times):
                with pytest.raises(OverflowError):
                    Layer.of({OTHER: {"code": b"\\x5b" * 2**22, "nonce": -1}})

        fail(3)
        before = resident()
        fail(50)
        assert resident() < before + 50_000_000  # one code with its table has 4.5 MB
        """
    )


INTERNAL = """
import importlib, inspect, os, pkgutil
import fastevm

SKIPPED_PACKAGES = ("__main__", ".testing", ".bench", ".rpc", ".payments", ".integrations",
                    ".cli.filler")  # needs the filler of execution-specs

def classes():
    seen = set()
    for found in pkgutil.walk_packages(fastevm.__path__, "fastevm."):
        if any(part in found.name for part in SKIPPED_PACKAGES):
            continue
        module = importlib.import_module(found.name)
        if (getattr(module, "__file__", "") or "").endswith(".so"):
            # some classes give the package that exports them as their module
            made = {c for c in vars(module).values() if inspect.isclass(c)
                    and c.__module__.partition(".")[0] == "fastevm" and c not in seen}
            seen |= made
            yield from made

ARGUMENTS = ((), (None,), (0,), (1,), (OTHER,), (OTHER, 1), (0, 0), (None, None, None), ({},),
             ([],), (b"x" * 100,), ("x",), (2**300,), (-1,))
SKIPPED = ("__class__", "__init_subclass__", "__subclasshook__")

def try_all(kind):
    made = kind.__new__(kind)
    for name in dir(made):
        try:
            member = getattr(made, name)
        except Exception:
            continue
        if name in SKIPPED or not callable(member):
            continue
        for arguments in (*ARGUMENTS, (made,), (made, made, made)):
            try:
                member(*arguments)
            except Exception:
                pass
    for name in dir(made):
        for change in (lambda: setattr(made, name, None), lambda: delattr(made, name)):
            try:
                change()
            except Exception:
                pass

crashed = []
for kind in classes():
    assert not hasattr(kind, "__setstate_cython__"), f"{kind} restores forged bytes unchecked"
    child = os.fork()
    if child == 0:
        os.close(2)
        try:
            try_all(kind)
        except BaseException:
            pass
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        crashed.append((kind, status))
assert not crashed, crashed
"""


def test_no_class_crashes_without_its_constructor() -> None:
    run(INTERNAL, seconds=180)
