"""The parser of the command line: a word that is almost right is answered with the right one."""

import argparse
import re
from difflib import get_close_matches
from typing import NoReturn

CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
UNKNOWN = re.compile(r"unrecognized arguments: (--[\w.-]+)")


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` whose complaints about unknown words suggest known ones."""

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Refuse unknown options here, in the command's own parser: it knows the right ones."""
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
