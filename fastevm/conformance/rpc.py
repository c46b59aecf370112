"""Sends recorded JSON-RPC requests to a running node: `fastevm conformance rpc DIR --url URL`.

A case is a ``.io`` file: ``//`` comments, then pairs of ``>>`` request and ``<<`` response. Cases
run in path order against the same node and share its state. Responses must be equal as JSON values.
Only the ``message`` of an error may differ, which is reported separately. If the header of a case
contains ``speconly:``, only the shape of the result is compared.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

from msgspec import Struct, field

from fastevm.conformance.runner import Mismatch, Tally, print_failure
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import RpcUnreachable

DEFAULT_URL: Final = "http://127.0.0.1:8545"
TIMEOUT: Final = 5.0  # seconds per request
SHOWN: Final = 300  # maximum length of a value in a report
SUFFIX: Final = ".io"
SPEC_ONLY: Final = "speconly:"


class CaseError(ValueError):
    """An invalid case file."""


class Exchange(Struct, frozen=True):
    """A request and its expected response."""

    request: str
    expected: Any


class Case(Struct, frozen=True):
    """A recorded sequence of exchanges."""

    name: str
    spec_only: bool
    exchanges: tuple[Exchange, ...]


class RpcReport(Struct):
    """The counts of cases, and the error messages that differ: (case, expected, found)."""

    tally: Tally = field(default_factory=Tally)
    messages: list[tuple[str, str, str]] = field(default_factory=list)


Progress = Callable[[Tally], None]
Send = Callable[[bytes], bytes]


def read_case(name: str, text: str) -> Case:
    """Parses the text of a case. Raises CaseError, which names the invalid line."""
    spec_only = False
    request: str | None = None
    exchanges: list[Exchange] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line.startswith("//"):
            in_header = request is None and not exchanges
            spec_only |= in_header and line[2:].strip().startswith(SPEC_ONLY)
        elif line.startswith(">>") and request is None:
            request = line[2:].strip()
        elif line.startswith("<<") and request is not None:
            exchanges.append(Exchange(request, _parsed(line[2:], number)))
            request = None
        elif line:
            raise CaseError(f"line {number}: neither comment, request nor its response")
    if request is not None or not exchanges:
        raise CaseError("a request without response" if request else "no request")
    return Case(name, spec_only, tuple(exchanges))


def find_cases(directory: Path, *, methods: Sequence[str], filter: str) -> Iterator[Path]:
    """Yields the case files below ``directory`` in path order.

    ``methods`` selects cases by folder (all if empty), ``filter`` those whose path
    contains the text.
    """
    for path in sorted(directory.rglob(f"*{SUFFIX}")):
        wanted = not methods or path.parent.name in methods
        if wanted and filter in path.relative_to(directory).as_posix():
            yield path


def run_directory(
    directory: str | Path,
    url: str,
    *,
    methods: Sequence[str] = (),
    filter: str = "",
    progress: Progress | None = None,
    output: TextIO = sys.stdout,
) -> RpcReport:
    """Runs the recorded cases below ``directory`` against the node at ``url``.

    Failed cases are printed immediately with expected and found values; ``progress`` is called
    after each case. If the node is unreachable, every case fails.
    """
    root, report = Path(directory), RpcReport()
    client = JsonRpcClient(url, timeout=TIMEOUT)
    for path in find_cases(root, methods=methods, filter=filter):
        name = path.relative_to(root).as_posix()
        try:
            outcome = run_case(read_case(name, path.read_text()), client.send, report)
        except CaseError as error:
            outcome = Mismatch("a recorded case", str(error))
        report.tally.add(name, outcome)
        if outcome is not None:
            print_failure(report.tally.failures[-1], output)
        if progress is not None:
            progress(report.tally)
    client.close()
    return report


def run_case(case: Case, send: Send, report: RpcReport) -> Mismatch | None:
    """Runs a case to its first difference; records differing messages in ``report``."""
    for exchange in case.exchanges:
        try:
            found = json.loads(send(exchange.request.encode()))
        except (RpcUnreachable, ValueError) as error:
            return Mismatch(_shown(exchange.expected), f"{type(error).__name__}: {error}")
        compare = Comparison()
        if case.spec_only and "error" not in exchange.expected:
            fault = compare.shapes(exchange.expected, found)
        else:
            fault = compare.values(exchange.expected, found, "$")
        if fault is not None:
            return fault
        report.messages += [(case.name, *pair) for pair in compare.messages]
    return None


class Comparison:
    """Compares two JSON values; collects differing error messages in ``messages``."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, str]] = []

    def values(self, expected: Any, found: Any, path: str) -> Mismatch | None:
        """Returns the first difference, None if the values are equal."""
        if isinstance(expected, dict) and isinstance(found, dict):
            return self._objects(expected, found, path)
        if isinstance(expected, list) and isinstance(found, list):
            if len(expected) != len(found):
                return _difference(path, f"{len(expected)} entries", f"{len(found)} entries")
            for index, (left, right) in enumerate(zip(expected, found, strict=True)):
                fault = self.values(left, right, f"{path}[{index}]")
                if fault is not None:
                    return fault
            return None
        # in Python true == 1, in JSON it is not
        if isinstance(expected, bool) != isinstance(found, bool) or expected != found:
            return _difference(path, expected, found)
        return None

    def shapes(self, expected: Any, found: Any) -> Mismatch | None:
        """Returns the difference between the types and top-level keys of two results."""
        if not isinstance(found, dict) or "result" not in found:
            return _difference("$", "a result", found)
        left, right = expected.get("result"), found["result"]
        if _kind(left) != _kind(right):
            return _difference("$.result", left, right)
        if isinstance(left, dict) and left.keys() != right.keys():
            return _difference("$.result", sorted(left), sorted(right))
        return None

    def _objects(
        self, expected: dict[str, Any], found: dict[str, Any], path: str
    ) -> Mismatch | None:
        if expected.keys() != found.keys():
            missing = sorted(expected.keys() - found.keys())
            extra = sorted(found.keys() - expected.keys())
            shown = {name: found[name] for name in extra}
            return _difference(path, f"members {missing}", f"instead {_shown(shown)}")
        for name, left in expected.items():
            right = found[name]
            if name == "error" and isinstance(left, dict) and isinstance(right, dict):
                left, right = self._without_messages(left, right)
            fault = self.values(left, right, f"{path}.{name}")
            if fault is not None:
                return fault
        return None

    def _without_messages(
        self, expected: dict[str, Any], found: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        left, right = dict(expected), dict(found)
        wanted, got = left.pop("message", ""), right.pop("message", "")
        if wanted != got:
            self.messages.append((str(wanted), str(got)))
        return left, right


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `fastevm conformance rpc`."""
    parser.add_argument("directory", help="folder of .io files, one folder per method")
    parser.add_argument("--url", default=DEFAULT_URL, help="the node (default %(default)s)")
    parser.add_argument(
        "--method", action="append", default=[], metavar="NAME", help="only this method; repeatable"
    )
    parser.add_argument("--filter", default="", help="only cases whose path contains this text")
    parser.add_argument(
        "--strict-messages", action="store_true", help="fail if the text of an error differs"
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the cases. Returns 0 if all passed, 1 if any failed, 2 if there are none."""
    report = run_directory(
        arguments.directory, arguments.url, methods=arguments.method, filter=arguments.filter
    )
    tally = report.tally
    if not tally.passed + tally.failed:
        print(f"no cases below {arguments.directory}", file=sys.stderr)
        return 2
    for name, expected, found in report.messages:
        print(f"MESSAGE {name}\n  expected: {expected}\n  found:    {found}")
    if report.messages:
        print(f"{len(report.messages)} error messages have different texts")
    print(tally.line())
    return int(bool(tally.failed or (arguments.strict_messages and report.messages)))


def _parsed(text: str, number: int) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise CaseError(f"line {number}: the expected response is not JSON: {error}") from None


def _difference(path: str, expected: Any, found: Any) -> Mismatch:
    return Mismatch(f"{path}: {_shown(expected)}", f"{path}: {_shown(found)}")


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__
