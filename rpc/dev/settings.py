"""Options of ``fastevm dev`` that stand in ``fastevm.toml`` or in the environment.

The command line comes first, then variables, then the file, then defaults. Options that may be
repeated add up.
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
    """The options of file and variables as words of a command line, weakest first.

    The file is ``fastevm.toml`` in the working directory, or that of FASTEVM_CONFIG; its table
    ``[dev]`` has options by their long names. ValueError names the file and what is wrong in it.
    """
    named = environment.get(FILE_VARIABLE)
    path = FILE if named is None else Path(named)
    if named is not None and not path.is_file():
        raise ValueError(f"{FILE_VARIABLE}: there is no file {path}")
    known = _options(parser)
    words = _of_file(path, known) if path.is_file() else []
    for name, action in known.items():
        variable = PREFIX + name.upper().replace("-", "_")
        text = environment.get(variable)
        if text is not None:
            value = text if action.nargs != 0 else text.lower() not in NO
            words += _words(name, action, value, variable)
    return words


def _options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    actions = [one for one in parser._actions if one.dest not in ("help", "version")]
    return {word[2:]: one for one in actions for word in one.option_strings if word[:2] == "--"}


def _of_file(path: Path, known: Mapping[str, argparse.Action]) -> Words:
    import tomllib  # for a file that is there: 2 ms of the start of every other node

    try:
        table = tomllib.loads(path.read_text()).get(TABLE, {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(table, dict):
        raise ValueError(f"{path}: {TABLE} is no table")
    words: Words = []
    for key, value in table.items():
        name = key.replace("_", "-")
        if name not in known:
            near = nearest(name, known)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{path}: unknown option {key!r} in [{TABLE}]{hint}")
        if isinstance(value, dict) or (known[name].nargs == 0 and not isinstance(value, bool)):
            raise ValueError(f"{path}: [{TABLE}] {key}: {value!r} is no value of this option")
        words += _words(name, known[name], value, f"{path}: [{TABLE}] {key}")
    return words


def _words(name: str, action: argparse.Action, value: Any, where: str) -> Words:
    """The words of one option; true for a switch, false for one that is left out.

    ValueError says ``where`` a value stands that the option does not take.
    """
    if action.nargs == 0 or isinstance(value, bool):
        return [f"--{name}"] if value else []
    values = value if isinstance(value, list) else [value]
    for one in values:
        _check(action, str(one), where)
    return [f"--{name}={one}" for one in values]


def _check(action: argparse.Action, text: str, where: str) -> None:
    try:
        found = action.type(text) if callable(action.type) else text
    except (argparse.ArgumentTypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None
    if action.choices is not None and found not in action.choices:
        raise ValueError(f"{where}: {text!r} is none of {', '.join(map(str, action.choices))}")
