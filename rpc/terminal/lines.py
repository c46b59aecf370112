"""Formats records as text lines, coloured on a terminal."""

from collections.abc import Iterator
from typing import Any, Final

from fastevm.core.primitives.safe_text import UNSAFE

ETHER: Final = 10**18
WIDTH: Final = 10  # width in characters of the column of member names
PARAMS_LIMIT: Final = 500  # most characters shown of a request's parameters
CONSOLE_BREAKS: Final = 50  # line feeds in one console text that start a new line

BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"

Json = dict[str, Any]


class Lines:
    """Formats records. With ``coloured``, uses terminal escape sequences."""

    def __init__(self, *, coloured: bool) -> None:
        self.coloured = coloured

    def of(self, record: Json) -> str:
        """Return the lines of a record, each with a line end."""
        made = {
            "transaction": self._transaction,
            "block": self._block,
            "request": self._request,
            "console": self._console,
            "left out": self._left_out,
            "names": self._names,
        }[record["event"]](record)
        return "".join(f"{line}\n" for line in made)

    def _paint(self, text: Any, colour: str = "") -> str:
        shown = str(text).translate(UNSAFE)
        return f"\x1b[{colour}m{shown}\x1b[0m" if self.coloured and colour else shown

    def _member(self, name: str, text: Any, colour: str = "") -> str:
        return f"  {self._paint(name.ljust(WIDTH), DIM)}{self._paint(text, colour)}"

    def _transaction(self, record: Json) -> Iterator[str]:
        state = self._paint("failed", RED) if record["status"] == 0 else self._paint("ok", GREEN)
        yield f"{self._paint('Transaction', BOLD)} {record['hash']} {state}"
        yield self._member("from", record["from"])
        name = f"{record['contractName']} " if "contractName" in record else ""
        if "contract" in record:
            yield self._member("created", f"{name}{record['contract']}", CYAN)
        else:
            yield self._member("to", f"{name}{record['to']}")
            if "note" in record:
                yield self._member("", record["note"], YELLOW)
        if "function" in record:
            yield self._member("function", record["function"], YELLOW)
        if "value" in record:
            yield self._member("value", f"{ether(int(record['value']))} ETH")
        yield self._member("gas", f"{record['gasUsed']:,} of {record['gas']:,}")
        yield from self._outcome(record)

    def _outcome(self, record: Json) -> Iterator[str]:
        for made in record.get("creations", ()):
            name = f"{made['contractName']} " if "contractName" in made else ""
            yield self._member("created", f"{name}{made['address']}", CYAN)
        for log in record.get("logs", ()):
            data = f" {log['data']}" if "data" in log else ""
            yield self._member("log", f"{log['event']}{data} at {log['address']}", CYAN)
        if record.get("logsLeftOut"):
            yield self._member("log", f"... and {record['logsLeftOut']} more")
        yield from self._console_lines(record)
        if "reason" in record:
            yield self._member("reverted", record["reason"], RED)
        for line in record.get("source", ()):
            yield self._member("at", line)
        trace = record.get("trace")
        if isinstance(trace, str):
            yield self._member("trace", trace)
        elif trace is not None:
            yield from self._tree(trace)

    def _console_lines(self, record: Json) -> Iterator[str]:
        for text in record.get("console", ()):
            for line in text.split("\n", CONSOLE_BREAKS):
                yield self._member("console", line, GREEN)

    def _console(self, record: Json) -> Iterator[str]:
        yield f"{self._paint('Call', BOLD)} {record['method']} {record['to']}"
        yield from self._console_lines(record)

    def _tree(self, frame: Json, first: str = "    ", rest: str = "    ") -> Iterator[str]:
        """Yield the lines of a call and its subcalls. ``first`` and ``rest`` are line prefixes."""
        line = self._paint(f"[{frame['gasUsed']:,}] {frame['type']} {frame['to']}", DIM)
        if "function" in frame:
            line += f" {self._paint(frame['function'], YELLOW)}"
        if "value" in frame:
            line += f" {ether(int(frame['value']))} ETH"
        if "reason" in frame:
            line += f" {self._paint('reverted: ' + frame['reason'], RED)}"
        elif "output" in frame:
            line += f" -> {self._paint(frame['output'], CYAN)}"
        yield first + line
        parts = _parts(frame)
        for number, part in enumerate(parts, 1):
            branch, below = ("└─ ", "   ") if number == len(parts) else ("├─ ", "│  ")
            if isinstance(part, str):
                yield f"{rest}{self._paint(branch, DIM)}{self._paint(part, CYAN)}"
            else:
                branch, below = self._paint(branch, DIM), self._paint(below, DIM)
                yield from self._tree(part, rest + branch, rest + below)

    def _block(self, record: Json) -> Iterator[str]:
        count = record["transactions"]
        plural = "" if count == 1 else "s"
        head = self._paint(f"Block {record['number']}", BOLD)
        yield f"{head} {record['hash']} {count} transaction{plural}, {record['gasUsed']:,} gas"
        yield ""

    def _request(self, record: Json) -> Iterator[str]:
        if "error" in record:
            yield from self._failed_request(record)
            return
        if "waits" in record:
            colon = "" if record["waits"].startswith("for ") else ":"
            reason = self._paint(f"waits{colon} {record['waits']}", YELLOW)
            yield f"{self._paint('Transaction', BOLD)} {record['transaction']} {reason}"
            return
        if "happened" in record:
            yield self._paint(record["happened"], BOLD)
            return
        params = f" {record['params']}"[:PARAMS_LIMIT] if "params" in record else ""
        yield self._paint(f"{record['method']}{params}", DIM)

    def _failed_request(self, record: Json) -> Iterator[str]:
        failed = "failed" if "reason" in record else f"failed: {record['error']}"
        yield f"{self._paint(record['method'], BOLD)} {self._paint(failed, RED)}"
        name = f"{record['contractName']} " if "contractName" in record else ""
        for member in ("from", "to", "function"):
            if member in record:
                text = f"{name if member == 'to' else ''}{record[member]}"
                yield self._member(member, text, YELLOW if member == "function" else "")
        if "reason" in record:
            yield self._member("reverted", record["reason"], RED)
        if "params" in record:
            yield self._member("params", record["params"][:PARAMS_LIMIT])

    def _names(self, record: Json) -> Iterator[str]:
        directory, count = record["directory"], record["contracts"]
        if not directory.startswith(("/", ".")):
            directory = f"./{directory}"
        if not count:
            yield self._paint(f"no ABI below {directory}", RED)
            return
        yield self._paint(f"{count} contract{'' if count == 1 else 's'} from {directory}", DIM)

    def _left_out(self, record: Json) -> Iterator[str]:
        yield self._paint(
            f"... {record['count']} left out: more than {record['limit']} waited", RED
        )


def _parts(frame: Json) -> list[Json | str]:
    """Return the subcalls and events of a call in order, and a text for omitted subcalls."""
    calls, logs = frame.get("calls", ()), frame.get("logs", ())
    parts: list[Json | str] = []
    for position in range(len(calls) + 1):
        last = position == len(calls)
        parts += [
            f"emit {log['event']}"
            for log in logs
            if log["position"] == position or (last and log["position"] > position)
        ]
        if not last:
            parts.append(calls[position])
    if "callsLeftOut" in frame:
        parts.append(f"... and {frame['callsLeftOut']} more")
    return parts


def ether(wei: int) -> str:
    """Format an amount of wei in ether, without trailing zeros."""
    whole, part = divmod(wei, ETHER)
    return f"{whole}.{part:018d}".rstrip("0").rstrip(".")
