"""``fastevm debug``: steps through a transaction or a call by source lines."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from fastevm.cli.line_steps import LineStep, Sources, Trace, line_steps, storage_of
from fastevm.core.primitives.safe_text import safe
from fastevm.errors import FastevmError, error_text
from fastevm.rpc.contract_files import ContractFiles, default_directories
from fastevm.rpc.terminal.options import directory
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.large_json import is_too_deep

URL: Final = "http://127.0.0.1:8545"
SECONDS: Final = 120.0  # timeout of the request for the trace
# Size limit of the answer with the trace, which is about a million steps. The trace stays in
# memory, with 100 bytes per step.
MAX_TRACE_BYTES: Final = 256 * 1024 * 1024
CONFIG: Final = {"disableStorage": True, "enableMemory": False}
HELP: Final = (
    "n: next line of this function or its caller; s: step into the next line; u: up to the caller;"
    " b: back; c: to the end; stack; storage; q: quit"
)

Json = dict[str, Any]


class TraceResult(Struct):
    """The result of a ``debug_trace*`` method."""

    struct_logs: list[msgspec.Raw] = msgspec.field(name="structLogs")
    gas: int = 0
    failed: bool = False


class TraceAnswer(Struct):
    """A response with a trace or an error."""

    result: TraceResult | None = None
    error: Any = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``fastevm debug``."""
    parser.description = (
        "Print the source lines that a transaction or a call executes, with the gas of each. Source"
        " lines come from the artifacts of Foundry and Hardhat."
    )
    parser.add_argument("transaction", nargs="?", metavar="HASH", help="hash of the transaction")
    parser.add_argument("--url", default=URL, help="URL of the node (%(default)s)")
    call = parser.add_argument_group("call, instead of a transaction")
    call.add_argument("--to", metavar="ADDRESS", help="contract to call")
    call.add_argument("--data", default="0x", metavar="HEX", help="calldata (none)")
    call.add_argument("--from", dest="sender", metavar="ADDRESS", help="sender")
    call.add_argument("--value", type=int, default=0, metavar="WEI", help="value (%(default)s)")
    call.add_argument("--block", default="latest", help="block of the state (%(default)s)")
    parser.add_argument(
        "--abi", type=directory, action="append", default=[], metavar="DIR",
        help="artifacts below this directory, too (out and artifacts are read); may be repeated",
    )  # fmt: skip
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print a JSON object per line")
    shown.add_argument("-i", "--interactive", action="store_true", help="step with commands")
    parser.set_defaults(usage_error=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Prints the source lines. Returns 1 if the node has no trace."""
    if (arguments.transaction is None) == (arguments.to is None):
        arguments.usage_error("pass either the hash of a transaction or --to ADDRESS")
    try:
        with JsonRpcClient(arguments.url, timeout=SECONDS, max_answer=MAX_TRACE_BYTES) as client:
            to, block, found = traced(client, arguments)
            trace = Trace(found.struct_logs)
            contracts = ContractFiles([*arguments.abi, *default_directories()])
            sources = Sources(contracts, lambda address: code_at(client, address, block))
            lines = line_steps(trace, to, sources)
            if arguments.interactive:
                Stepper(trace, list(lines)).run()
            else:
                show(lines, as_json=arguments.json)
    except (FastevmError, ValueError, OSError) as error:
        print(f"fastevm debug: {safe(error_text(error))}", file=sys.stderr)
        return 1
    if not arguments.json:
        print(f"{'failed' if found.failed else 'ok'}, {found.gas:,} gas")
    return 0


def traced(
    client: JsonRpcClient, arguments: argparse.Namespace
) -> tuple[str | None, str, TraceResult]:
    """Returns the account called, the block whose state has the code, and the trace."""
    if arguments.transaction is None:
        call: Json = {"to": arguments.to, "data": arguments.data, "value": hex(arguments.value)}
        if arguments.sender is not None:
            call["from"] = arguments.sender
        params = [call, arguments.block, CONFIG]
        return arguments.to.lower(), arguments.block, trace_of(client, "debug_traceCall", params)
    sent: Json | None = client.call("eth_getTransactionByHash", arguments.transaction)
    if sent is None:
        raise ValueError(f"transaction {arguments.transaction} not found")
    result = trace_of(client, "debug_traceTransaction", [arguments.transaction, CONFIG])
    return sent.get("to"), sent.get("blockNumber") or "pending", result


def trace_of(client: JsonRpcClient, method: str, params: Sequence[Any]) -> TraceResult:
    """Returns a trace. Raises ValueError if the node answers with an error."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    text = client.send(msgspec.json.encode(body))
    if is_too_deep(text):
        raise ValueError(f"{method}: the node's answer is nested too deep")
    answer = msgspec.json.decode(text, type=TraceAnswer)
    if answer.result is None:
        error = answer.error
        message = error.get("message") if isinstance(error, dict) else error
        raise ValueError(f"{method}: {message}")
    return answer.result


def code_at(client: JsonRpcClient, address: str, block: str) -> bytes:
    """Returns the code of an account."""
    return bytes.fromhex(str(client.call("eth_getCode", address, block))[2:])


def show(lines: Iterator[LineStep], *, as_json: bool) -> None:
    """Prints the source lines."""
    for line in lines:
        if as_json:
            print(msgspec.json.encode(line).decode())
        else:
            print(f"{line.gas:>10,}  {'  ' * (line.depth - 1)}{described(line)}")


def described(line: LineStep) -> str:
    """Returns file, line, function and text of a line, or the address if there is no source."""
    if line.file is None:
        name = "" if line.contract is None else f"{line.contract} "
        code = "init code" if line.address is None else line.address
        return safe(f"{name}{code}: {line.count} instructions without source")
    place = line.contract if line.function is None else f"{line.contract}.{line.function}"
    return safe(f"{line.file}:{line.line} {place}  {line.text}")


class Stepper:
    """An interactive walk through the lines."""

    def __init__(self, trace: Trace, lines: Sequence[LineStep]) -> None:
        self.trace, self.lines, self.at = trace, lines, 0
        self.moves = {
            "n": self.over, "s": self.step, "u": self.up, "b": self.back, "c": self.end,
        }  # fmt: skip

    def run(self) -> None:
        """Reads commands until the end of the input or ``q``.

        An empty command repeats the last one.
        """
        if not self.lines:
            print("no code was executed")
            return
        print(HELP)
        self.show()
        last = "s"
        while (word := self.read() or last) != "q":
            move = self.moves.get(word)
            if move is not None:
                last = word
                move()
                self.show()
            elif word == "stack":
                for position, item in enumerate(reversed(self.trace[self.line.first].stack or [])):
                    print(f"  {position:>3}  {item}")
            elif word == "storage":
                for text in storage_of(self.trace, self.line):
                    print(f"  {text}")
            else:
                print(HELP)

    @property
    def line(self) -> LineStep:
        """The current line."""
        return self.lines[self.at]

    def read(self) -> str:
        """Returns a command; ``q`` at the end of the input."""
        try:
            return input("> ").strip().lower()
        except EOFError:
            print()
            return "q"

    def show(self) -> None:
        """Prints the current line."""
        end = " (the last line)" if self.at == len(self.lines) - 1 else ""
        print(f"{'  ' * (self.line.depth - 1)}{described(self.line)}  [{self.line.gas:,} gas]{end}")

    def step(self) -> None:
        """Moves to the next line."""
        self.at = min(self.at + 1, len(self.lines) - 1)

    def back(self) -> None:
        """Moves to the previous line."""
        self.at = max(self.at - 1, 0)

    def end(self) -> None:
        """Moves to the last line, at which a failure happened."""
        self.at = len(self.lines) - 1

    def over(self) -> None:
        """Moves to the next line that is not in a deeper frame."""
        self._until(self.line.depth)

    def up(self) -> None:
        """Moves to the next line of the calling frame."""
        self._until(self.line.depth - 1)

    def _until(self, depth: int) -> None:
        after = range(self.at + 1, len(self.lines))
        self.at = next((at for at in after if self.lines[at].depth <= depth), len(self.lines) - 1)
