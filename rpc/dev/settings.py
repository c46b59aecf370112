"""Options of ``fastevm dev`` from ``fastevm.toml`` and the environment.

The command line overrides variables, which override the file, which overrides defaults. Options
that may be repeated add up.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from fastevm.core.primitives.suggestion import nearest

FILE: Final = Path("fastevm.toml")
FILE_VARIABLE: Final = "FASTEVM_CONFIG"
TABLE: Final = "dev"
PREFIX: Final = "FASTEVM_"
NO: Final = ("", "0", "false", "no", "off")

Words = list[str]


def configured(
    parser: argparse.ArgumentParser, environment: Mapping[str, str] = os.environ
) -> Words:
    """Returns the options of file and variables as command-line words, lowest precedence first.

    The file is ``fastevm.toml`` in the working directory, or the path in FASTEVM_CONFIG. Its table
    ``[dev]`` has options by their long names. Sets the default of ``config_file`` to the file in
    use. Raises ValueError with the file and the key for unknown keys and invalid values.
    """
    named = environment.get(FILE_VARIABLE)
    path = FILE if named is None else Path(named)
    if named is not None and not path.is_file():
        raise ValueError(f"{FILE_VARIABLE}: file {path} does not exist")
    known = _options(parser)
    words: Words = []
    if path.is_file():
        words = _of_file(path, known)
        parser.set_defaults(config_file=path)
    for name, action in known.items():
        variable = PREFIX + name.upper().replace("-", "_")
        text = environment.get(variable)
        if text is not None:
            value = text if action.nargs != 0 else text.lower() not in NO
            words += _words(name, action, value, variable)
    return words


def _options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    actions = [action for action in parser._actions if action.dest not in ("help", "version")]
    return {
        word[2:]: action for action in actions for word in action.option_strings if word[:2] == "--"
    }


def _of_file(path: Path, known: Mapping[str, argparse.Action]) -> Words:
    import tomllib  # imported only if there is a file: the import takes 2 ms of a node's start

    try:
        tables = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    table = tables.get(TABLE, {})
    for key in tables:
        if key != TABLE or not isinstance(table, dict):
            raise ValueError(f"{path}: unexpected {key!r}: options belong in [{TABLE}]")
    words: Words = []
    for key, value in table.items():
        name = key.replace("_", "-")
        if name not in known:
            near = nearest(name, known)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{path}: unknown option {key!r} in [{TABLE}]{hint}")
        if isinstance(value, dict) or (known[name].nargs == 0 and not isinstance(value, bool)):
            raise ValueError(f"{path}: [{TABLE}] {key}: {value!r} is not valid here")
        words += _words(name, known[name], value, f"{path}: [{TABLE}] {key}")
    return words


def _words(name: str, action: argparse.Action, value: Any, where: str) -> Words:
    """Returns the command-line words of one option; none if its value is false.

    Raises ValueError with ``where`` if the option does not accept the value.
    """
    if action.nargs == 0 or isinstance(value, bool):
        return [f"--{name}"] if value else []
    values = value if isinstance(value, list) else [value]
    for item in values:
        _check(action, str(item), where)
    return [f"--{name}={value}" for value in values]


def _check(action: argparse.Action, text: str, where: str) -> None:
    try:
        found = action.type(text) if callable(action.type) else text
    except (argparse.ArgumentTypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None
    if action.choices is not None and found not in action.choices:
        raise ValueError(f"{where}: {text!r} is not one of {', '.join(map(str, action.choices))}")
