"""Records as lines that people read: in colours on a terminal, without in a pipe."""

from collections.abc import Iterator
from typing import Any, Final

from fastevm.rpc.safe_text import UNSAFE

ETHER: Final = 10**18
WIDTH: Final = 10  # of the names of members
PARAMS_LIMIT: Final = 500  # characters of a request's parameters
CONSOLE_BREAKS: Final = 50  # line feeds of one text of the console that begin a line

BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"

Json = dict[str, Any]


class Lines:
    """Writes records; ``coloured``: with the escapes of a terminal."""

    def __init__(self, *, coloured: bool) -> None:
        self.coloured = coloured

    def of(self, told: Json) -> str:
        """The lines of a record, each with its end."""
        made = {
            "transaction": self._transaction,
            "block": self._block,
            "request": self._request,
            "console": self._console,
            "left out": self._left_out,
        }[told["event"]](told)
        return "".join(f"{line}\n" for line in made)

    def _paint(self, text: Any, colour: str = "") -> str:
        shown = str(text).translate(UNSAFE)
        return f"\x1b[{colour}m{shown}\x1b[0m" if self.coloured and colour else shown

    def _member(self, name: str, text: Any, colour: str = "") -> str:
        return f"  {self._paint(name.ljust(WIDTH), DIM)}{self._paint(text, colour)}"

    def _transaction(self, told: Json) -> Iterator[str]:
        state = self._paint("failed", RED) if told["status"] == 0 else self._paint("ok", GREEN)
        yield f"{self._paint('Transaction', BOLD)} {told['hash']} {state}"
        yield self._member("from", told["from"])
        if "contract" in told:
            yield self._member("created", told["contract"], CYAN)
        else:
            name = f"{told['contractName']} " if "contractName" in told else ""
            yield self._member("to", f"{name}{told['to']}")
        if "function" in told:
            yield self._member("function", told["function"], YELLOW)
        if "value" in told:
            yield self._member("value", f"{ether(int(told['value']))} ETH")
        yield self._member("gas", f"{told['gasUsed']:,} of {told['gas']:,}")
        yield from self._outcome(told)

    def _outcome(self, told: Json) -> Iterator[str]:
        for log in told.get("logs", ()):
            data = f" {log['data']}" if "data" in log else ""
            yield self._member("log", f"{log['event']}{data} at {log['address']}", CYAN)
        if told.get("logsLeftOut"):
            yield self._member("log", f"... and {told['logsLeftOut']} more")
        yield from self._console_lines(told)
        if "reason" in told:
            yield self._member("reverted", told["reason"], RED)
        for line in told.get("source", ()):
            yield self._member("at", line)
        trace = told.get("trace")
        if isinstance(trace, str):
            yield self._member("trace", trace)
        elif trace is not None:
            yield from self._tree(trace)

    def _console_lines(self, told: Json) -> Iterator[str]:
        for text in told.get("console", ()):
            for line in text.split("\n", CONSOLE_BREAKS):
                yield self._member("console", line, GREEN)

    def _console(self, told: Json) -> Iterator[str]:
        yield f"{self._paint('Call', BOLD)} {told['method']} {told['to']}"
        yield from self._console_lines(told)

    def _tree(self, frame: Json, first: str = "    ", rest: str = "    ") -> Iterator[str]:
        """The lines of a call and of what it did: ``first`` and ``rest`` are before its lines."""
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

    def _block(self, told: Json) -> Iterator[str]:
        count = told["transactions"]
        plural = "" if count == 1 else "s"
        head = self._paint(f"Block {told['number']}", BOLD)
        yield f"{head} {told['hash']} {count} transaction{plural}, {told['gasUsed']:,} gas"
        yield ""

    def _request(self, told: Json) -> Iterator[str]:
        if "error" in told:
            yield from self._failed_request(told)
            return
        if "waits" in told:
            head = self._paint("Transaction", BOLD)
            yield f"{head} {told['transaction']} {self._paint('waits: ' + told['waits'], YELLOW)}"
            return
        params = f" {told['params']}"[:PARAMS_LIMIT] if "params" in told else ""
        yield self._paint(f"{told['method']}{params}", DIM)

    def _failed_request(self, told: Json) -> Iterator[str]:
        params = f" {told['params']}"[:PARAMS_LIMIT] if "params" in told else ""
        head = self._paint(f"{told['method']}{params}", BOLD)
        yield f"{head} {self._paint('failed: ' + told['error'], RED)}"
        for name in ("from", "to", "function"):
            if name in told:
                yield self._member(name, told[name], YELLOW if name == "function" else "")

    def _left_out(self, told: Json) -> Iterator[str]:
        yield self._paint(f"... {told['count']} left out: more than {told['limit']} waited", RED)


def _parts(frame: Json) -> list[Json | str]:
    """The calls and events of a call in their order; a text for those that are left out."""
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
    """An amount in ether, without zeros at the end."""
    whole, part = divmod(wei, ETHER)
    return f"{whole}.{part:018d}".rstrip("0").rstrip(".")
