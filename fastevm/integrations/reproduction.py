"""Reproduction files: a failing example as JSON, which can be replayed without its test program.

``fastevm replay FILE`` prints the steps; ``replay(path)`` returns the machine after them. A file
has the state that the steps read, the block, the steps with their outcomes, and the failure.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from fastevm import __version__
from fastevm.core.execution.transaction.transaction import restore
from fastevm.core.primitives.deep_json import decode_json
from fastevm.core.primitives.safe_text import safe
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.state.layer import Layer
from fastevm.errors import FastevmError
from fastevm.evm.machine import EVM
from fastevm.evm.result import ExecutionResult
from fastevm.integrations.local_node import LocalNode
from fastevm.integrations.recording import (
    Label,
    RecordedEVM,
    Step,
    failure_of,
    json_form,
    outcome_of,
)
from fastevm.rpc_client.large_json import is_too_deep

FORMAT: Final = 1
FILE_LIMIT: Final = 256 * 1024 * 1024  # size limit of a file in bytes
DEEPEST: Final = 4_096  # most levels of nested JSON; a trace of 1,024 nested calls has 2,048
FIELDS: Final = ("balance", "nonce", "code")
SHOWN: Final = 96  # most characters of a value or an error in a line
METHODS: Final = {
    name: getattr(EVM, name)
    for name in (
        "call", "create", "transact", "deploy", "execute", "set_account", "set_balance",
        "set_nonce", "set_code", "set_storage", "set_block",
    )
}  # fmt: skip


class ReproductionError(FastevmError):
    """A reproduction file is unreadable, or the outcome of a step differs from the recorded one."""


class Exchange(msgspec.Struct):
    """A JSON-RPC request or batch, and its answer."""

    request: Any
    answer: Any


class ChainPart(msgspec.Struct, kw_only=True):
    """The requests to a development node: the shared prelude, then the requests of the example.

    ``withheld``: names of node options that the caller of a replay must pass.
    """

    options: dict[str, Any] = {}
    withheld: list[str] = []
    prelude: list[Exchange] = []
    example: list[Exchange] = []


class Reproduction(msgspec.Struct, kw_only=True):
    """The content of a file: steps of a machine, or requests to a chain.

    ``state``: the accounts and slots that the steps read, as a genesis allocation.
    """

    format: int = FORMAT
    fastevm: str = __version__
    test: str = ""
    failure: str = ""
    warning: str = ""  # why a replay may differ; empty if a trial replay did not
    fork: str = ""
    unchecked: list[str] = []
    code_size_limit: int | None = None
    block: dict[str, Any] = {}
    state: dict[str, dict[str, Any]] = {}
    labels: dict[str, Label] = {}
    steps: list[Step] = []
    chain: ChainPart | None = None

    def write(self, path: Path) -> None:
        """Writes the file. Creates its folder if it is missing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")

    def machine(self) -> EVM:
        """Returns a new machine with the state before the first step."""
        evm = EVM(self.fork, state=Layer.of(accounts_of(self.state)), **self.block)
        evm.unchecked = self.unchecked
        evm.code_size_limit = self.code_size_limit
        return evm


def read(path: str | Path) -> Reproduction:
    """Reads a file. Raises ReproductionError if the file is not a reproduction file."""
    path = Path(path)
    if path.stat().st_size > FILE_LIMIT:
        raise ReproductionError(f"{path}: over {FILE_LIMIT} bytes")
    text = path.read_bytes()
    if is_too_deep(text, DEEPEST):
        raise ReproductionError(f"{path} is not a reproduction: more than {DEEPEST} levels of JSON")
    try:
        found = msgspec.convert(decode_json(text), Reproduction)
    except (ValueError, RecursionError) as error:
        raise ReproductionError(f"{path} is not a reproduction: {error}") from None
    if found.format != FORMAT:
        raise ReproductionError(f"{path} has format {found.format}, this version reads {FORMAT}")
    if not found.fork and found.chain is None:
        raise ReproductionError(f"{path} is not a reproduction: neither 'fork' nor 'chain'")
    return found


@contextmanager
def content_of(path: str | Path) -> Iterator[None]:
    """Raises ReproductionError in place of the errors that values of wrong types cause."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
        raise ReproductionError(f"{path} is not a reproduction: {str(error)[:SHOWN]}") from None


def accounts_of(allocation: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Converts a genesis allocation to accounts for ``Layer.of``."""
    return {
        address: {
            "balance": int(account.get("balance", "0x0"), 16),
            "nonce": account.get("nonce", 0),
            "code": account.get("code", "0x"),
            "storage": {
                int(slot, 16): int(value, 16)
                for slot, value in account.get("storage", {}).items()
            },
        }
        for address, account in allocation.items()
    }  # fmt: skip


def reproduction_of(evm: RecordedEVM, test: str, failure: str) -> Reproduction:
    """Returns the content of the reproduction file for a machine's recorded steps.

    Replays the steps to find the state that they read, and to verify that their outcomes repeat.
    """
    found = Reproduction(
        test=test,
        failure=failure,
        fork=evm.schedule.name,
        unchecked=sorted(evm.unchecked),
        code_size_limit=evm.code_size_limit,
        block=json_form(evm.start.block),
        labels=dict(evm.__dict__.get("labels", {})),
        steps=list(evm.steps),
    )
    warnings = []
    if evm.precompiles:
        names = ", ".join(json_form(address) for address in evm.precompiles)
        warnings.append(f"pass the precompiles in Python to replay: {names}")
    try:
        known = schedule_for(evm.schedule.name).packed() == evm.schedule.packed()
    except FastevmError:
        known = False
    if not known and evm.code_size_limit is None and "code_size" not in evm.unchecked:
        warnings.append("the rules of the machine have no name")
    trial = EVM(evm.schedule, state=evm.start.state, **evm.start.block)
    trial.unchecked, trial.code_size_limit = evm.unchecked, evm.code_size_limit
    trial.precompiles.update(evm.precompiles)
    difference = play(trial, found.steps, found.state)
    found.warning = "; ".join([*warnings, *([difference] if difference else [])])
    return found


def play(
    evm: EVM,
    steps: list[Step],
    state: dict[str, dict[str, Any]] | None = None,
    show: Callable[[int, Step, dict[str, Any] | None], object] | None = None,
) -> str:
    """Runs steps. Returns the first difference from the recorded outcomes, or an empty text.

    ``state`` receives the accounts and slots that the steps read, with the values before the first
    step.
    """
    for number, step in enumerate(steps, 1):
        outcome = run_step(evm, step, state)
        if show is not None:
            show(number, step, outcome)
        if outcome != step.outcome:
            return f"step {number} ({step.method}): expected {step.outcome}, found {outcome}"[:1000]
    return ""


def run_step(
    evm: EVM, step: Step, state: dict[str, dict[str, Any]] | None
) -> dict[str, Any] | None:
    """Runs a step and returns its outcome; see `play`."""
    method = METHODS.get(step.method)
    if method is None:
        raise ReproductionError(f"unknown method {step.method[:SHOWN]!r} of a step")
    args, options = list(step.args), dict(step.options)
    if step.method == "execute":
        (made,) = args
        sender = made["sender"]
        raw = bytes.fromhex(made["raw"][2:])
        args = [restore(raw, None if sender is None else bytes.fromhex(sender[2:]))]
    if state is not None and step.outcome is not None:
        options["trace"] = "prestate"
    try:
        result = method(evm, *args, **options)
    except Exception as error:
        return failure_of(error)
    if not isinstance(result, ExecutionResult):
        return None
    if state is not None:
        merge(state, result.trace)
    return outcome_of(result)


def merge(state: dict[str, dict[str, Any]], prestate: Mapping[str, Mapping[str, Any]]) -> None:
    """Adds the accounts and slots that no earlier run has read."""
    for address, account in prestate.items():
        fields = {name: account[name] for name in FIELDS if name in account}
        known = state.setdefault(address, {**fields, "storage": {}})
        known["storage"] = account.get("storage", {}) | known["storage"]


def replay(
    path: str | Path,
    *,
    precompiles: Mapping[bytes, Any] | Mapping[str, Any] | None = None,
    show: Callable[[str], object] | None = None,
) -> EVM:
    """Runs the steps of a file and returns the machine after them.

    ``precompiles``: the Python precompiles of the recorded machine. ``show`` receives a line for
    each step. Raises ReproductionError if an outcome differs from the recorded one, and if the file
    has requests to a chain, which need `replay_chain`.
    """
    found = read(path)
    if found.chain is not None:
        raise ReproductionError(f"{path} is of a chain: use replay_chain")
    with content_of(path):
        evm = found.machine()
    for address, precompile in (precompiles or {}).items():
        evm.precompiles[address] = precompile
    shown = None
    if show is not None:

        def shown(number: int, step: Step, outcome: dict[str, Any] | None) -> None:
            show(safe(f"{number:>3}. {described(step, found.labels)}{ending(outcome)}"))

    with content_of(path):
        difference = play(evm, found.steps, show=shown)
    if difference:
        raise ReproductionError(difference)
    return evm


def replay_chain(
    path: str | Path, *, show: Callable[[str], object] | None = None, **options: Any
) -> LocalNode:
    """Sends the requests of a file to a new development node. Returns the node.

    ``options``: the node options that the file does not contain. Raises ReproductionError if an
    answer differs from the recorded one.
    """
    recording = import_module("fastevm.integrations.chain_recording")
    found = read(path)
    if found.chain is None:
        raise ReproductionError(f"{path} is of a machine: use replay")
    missing = [name for name in found.chain.withheld if name not in options]
    if missing:
        raise ReproductionError(f"{path} needs these options of the node: {', '.join(missing)}")
    shown = None
    if show is not None:

        def shown(number: int, exchange: Exchange, answer: Any) -> None:
            name = recording.method_of(exchange.request)
            text = msgspec.json.encode(answer.get("result", answer.get("error"))).decode()
            show(safe(f"{number:>3}. {name} -> {text[:SHOWN]}"))

    with content_of(path):
        node: LocalNode = recording.RecordedNode(**{**found.chain.options, **options})
    try:
        with content_of(path):
            difference = recording.exchange_all(node, found.chain, shown)
        if difference:
            raise ReproductionError(difference)
    except ReproductionError:
        node.stop()
        raise
    return node


def described(step: Step, labels: Mapping[str, Label]) -> str:
    """Returns a step as text: contracts and functions by name, then the other arguments."""
    words = [step.method]
    args = list(step.args)
    if step.method in ("call", "transact") and args and isinstance(args[0], str):
        label = labels.get(args[0].lower())
        data = args[1] if len(args) > 1 else step.options.get("data", "0x")
        if label is not None:
            function = label.functions.get(data[:10], data[:10])
            args[:2] = [f"{label.name}.{function}", *([data[10:]] if data[10:] else [])]
    words += [str(each)[:SHOWN] for each in args]
    words += [f"{name}={str(value)[:SHOWN]}" for name, value in step.options.items()]
    return " ".join(words)


def ending(outcome: Mapping[str, Any] | None) -> str:
    """Returns the outcome of a step as text."""
    if outcome is None:
        return ""
    if "exception" in outcome:
        return f" -> {outcome['exception']}: {outcome['message'][:SHOWN]}"
    if not outcome["success"]:
        return f" -> failed: {str(outcome['error'])[:SHOWN]}"
    return f" -> {outcome['output'][:SHOWN]}"


# --- fastevm replay ---


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``fastevm replay``."""
    parser.add_argument("file", type=Path, help="a reproduction file of a failing example")
    parser.add_argument("--fork-url", metavar="URL", help="the node that the chain forks")


def run(arguments: argparse.Namespace) -> int:
    """Replays a file and prints its steps. Returns 1 if an outcome differs."""
    found = read(arguments.file)
    steps = found.steps if found.chain is None else found.chain.example
    print(safe(f"{found.test}: {len(steps)} steps"))
    if found.warning:
        print(safe(f"warning: {found.warning}"))
    try:
        if found.chain is None:
            replay(arguments.file, show=print)
        else:
            options = {} if arguments.fork_url is None else {"fork_url": arguments.fork_url}
            replay_chain(arguments.file, show=print, **options).stop()
    except ReproductionError as error:
        print(safe(f"differs: {error}"))
        return 1
    print(safe(f"reproduced: {found.failure}"))
    return 0
