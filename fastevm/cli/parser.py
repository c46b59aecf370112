"""The command-line parser. Suggests corrections for misspelt words."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from fastevm.core.primitives.safe_text import UNSAFE_IN_LINES
from fastevm.core.primitives.suggestion import nearest

CHOICE = r"invalid choice: '([^']*)' \(choose from (.*)\)"
UNKNOWN = r"unrecognized arguments: (--[\w.-]+)"
LONGEST_USAGE = 8  # lines before an error message


COLUMNS = 80  # width if the output is not a terminal


class Formatter(argparse.HelpFormatter):
    """A formatter that determines the terminal width without importing shutil (and zlib).

    argparse creates a formatter whenever an option is added.
    """

    def __init__(self, prog: str, *args: Any, **kw: Any) -> None:
        super().__init__(prog, *args, **{"width": terminal_width() - 2, **kw})


def terminal_width() -> int:
    """Returns COLUMNS, else the width of standard output, as `shutil.get_terminal_size` does."""
    with contextlib.suppress(KeyError, ValueError):
        if (columns := int(os.environ["COLUMNS"])) > 0:
            return columns
    if sys.__stdout__ is not None:
        with contextlib.suppress(ValueError, OSError):
            return os.get_terminal_size(sys.__stdout__.fileno()).columns or COLUMNS
    return COLUMNS


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` that suggests corrections for unknown words.

    ``fill`` adds a command's options when the command is selected, so other commands are not
    loaded. ``configured`` takes the parser and the given arguments, and returns arguments from the
    configuration. The parser puts them before the given ones. A ValueError of ``configured`` is a
    usage error.
    """

    configured: Callable[[argparse.ArgumentParser, Sequence[str]], list[str]] | None = None

    def __init__(self, *args: Any, fill: Callable[[Parser], None] | None = None, **kw: Any) -> None:
        super().__init__(*args, **{"formatter_class": Formatter, **kw})
        self._fill = fill

    def filled(self) -> None:
        """Adds the command's options, unless they were added before."""
        fill, self._fill = self._fill, None
        if fill is not None:
            fill(self)

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Rejects unknown options in the command's parser, which can suggest the command's
        options.
        """
        self.filled()
        if self.configured is not None:
            try:
                args = [*self.configured(self, args), *args]
            except (ValueError, OSError) as error:
                self.error(str(error))
        parsed, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return parsed, rest

    def error(self, message: str) -> NoReturn:
        """Prints the usage and the message with a suggestion, and exits with 2.

        Shortens a long usage, which would hide the message.
        """
        near, usage = self._near(message), self.format_usage()
        if usage.count("\n") > LONGEST_USAGE:
            usage = f"usage: {self.prog} [options]; {self.prog} --help lists them\n"
        text = f"{message}; did you mean {near!r}?" if near else message
        text = text.translate(UNSAFE_IN_LINES)
        self.exit(2, f"{usage}{self.prog}: error: {text}\n")

    def _near(self, message: str) -> str | None:
        if found := re.search(CHOICE, message):
            word, known = found[1], re.findall(r"'([^']*)'", found[2])
        elif found := re.search(UNKNOWN, message):
            word, known = found[1], list(self._option_string_actions)
        else:
            return None
        return next(iter(nearest(word, known)), None)
