"""Options of the terminal output."""

import argparse
from pathlib import Path
from typing import Final

from msgspec import Struct

COLOURS: Final[dict[str, bool | None]] = {"auto": None, "always": True, "never": False}
TEXT: Final = "text"
JSON: Final = "json"
REQUESTS, PARAMS, TRACES = 1, 2, 3  # number of -v options from which each is shown


class TerminalOptions(Struct, frozen=True):
    """Selects what the terminal shows. ``abis`` are directories of ABI files.

    With ``as_json``, each line is a JSON value. With ``console``, the console output of contracts
    is shown. ``coloured`` selects escape sequences; None selects them if the output is a terminal.
    """

    requests: bool = False
    params: bool = False
    traces: bool = False
    as_json: bool = False
    abis: tuple[Path, ...] = ()
    console: bool = True
    coloured: bool | None = None


def add_terminal_arguments(parser: argparse.ArgumentParser, *, tells: bool) -> None:
    """Add the options. With ``tells``, transactions are shown by default."""
    group = parser.add_argument_group("terminal")
    group.add_argument(
        "-q", "--quiet", "--silent", action="store_true",
        help="print nothing but, with --port 0, the address",
    )  # fmt: skip
    first = "requests too" if tells else "transactions and requests"
    group.add_argument(
        "-v", "--verbose", action="count", default=0,
        help=f"show {first}; -vv: with parameters; -vvv: with call trees",
    )  # fmt: skip
    group.add_argument(
        "--log-format", choices=(TEXT, JSON), default=TEXT,
        help="lines for people, or a JSON value in each line (%(default)s)",
    )  # fmt: skip
    _add_styles(group)
    group.add_argument(
        "--abi", type=directory, action="append", default=[], metavar="DIR",
        help="ABI files (*.json) whose functions, events and errors are named; may be repeated",
    )  # fmt: skip
    parser.set_defaults(tells=tells)


def _add_styles(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--json", action="store_const", const=JSON, dest="log_format", help="--log-format json"
    )
    group.add_argument(
        "--color", choices=tuple(COLOURS), default="auto",
        help="whether lines for people have colours (%(default)s: on a terminal)",
    )  # fmt: skip
    group.add_argument(
        "--print-traces", "--enable-trace-printing", action="store_const", const=TRACES,
        dest="verbose", help="-vvv",
    )  # fmt: skip
    group.add_argument(
        "--disable-console-log", "--no-console-log", action="store_true",
        help="leave out what contracts write to the console",
    )  # fmt: skip


def terminal_options(arguments: argparse.Namespace) -> TerminalOptions | None:
    """Return the options; None if nothing is shown."""
    verbose = arguments.verbose
    if arguments.quiet or not (arguments.tells or verbose):
        return None
    return TerminalOptions(
        requests=verbose >= REQUESTS,
        params=verbose >= PARAMS,
        traces=verbose >= TRACES,
        as_json=arguments.log_format == JSON,
        abis=tuple(arguments.abi),
        console=not arguments.disable_console_log,
        coloured=COLOURS[arguments.color],
    )


def directory(text: str) -> Path:
    """Parse the path of a directory, which must exist."""
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not a directory")
    return path
