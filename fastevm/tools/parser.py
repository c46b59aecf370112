"""The parser of the command line, which suggests known words for misspelt ones."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, NoReturn

CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
UNKNOWN = re.compile(r"unrecognized arguments: (--[\w.-]+)")


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` whose errors about unknown words suggest known ones.

    ``fill`` adds a command's options when the command is given: others need not be loaded.
    ``configured`` finds words that stand before those that are given; its ValueError is a usage
    error.
    """

    configured: Callable[[argparse.ArgumentParser], list[str]] | None = None

    def __init__(self, *args: Any, fill: Callable[[Parser], None] | None = None, **kw: Any) -> None:
        super().__init__(*args, **kw)
        self._fill = fill

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Refuse unknown options here, in the command's own parser: it knows the right ones."""
        fill, self._fill = self._fill, None
        if fill is not None:
            fill(self)
        if self.configured is not None:
            try:
                args = [*self.configured(self), *args]
            except (ValueError, OSError) as error:
                self.error(str(error))
        parsed, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return parsed, rest

    def error(self, message: str) -> NoReturn:
        """Print usage and the message with a suggestion, and exit with 2."""
        near = self._near(message)
        super().error(f"{message}; did you mean {near!r}?" if near else message)

    def _near(self, message: str) -> str | None:
        if found := CHOICE.search(message):
            word, known = found[1], re.findall(r"'([^']*)'", found[2])
        elif found := UNKNOWN.search(message):
            word, known = found[1], list(self._option_string_actions)
        else:
            return None
        return next(iter(get_close_matches(word, known, n=1)), None)
