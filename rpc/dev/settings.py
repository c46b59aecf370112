"""Reads options of ``fastevm dev`` from ``fastevm.toml`` and the environment.

The precedence is: command line, variables, file, defaults. The values of options that may be
repeated are combined. Relative paths in the file are relative to its folder.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fastevm.core.primitives.suggestion import nearest
from fastevm.rpc.command import socket_path
from fastevm.rpc.terminal.options import directory

FILE: Final = "fastevm.toml"
REPOSITORY: Final = ".git"  # a folder with this entry is the last one that is searched
FILE_OPTION: Final = "config-file"
NO_FILE_OPTION: Final = "no-config"
PATHS: Final = (Path, directory, socket_path)  # types of options whose values are paths
TABLE: Final = "dev"
PREFIX: Final = "FASTEVM_"
NO: Final = ("", "0", "false", "no", "off")

Words = list[str]


def configured(
    parser: argparse.ArgumentParser,
    given: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
) -> Words:
    """Returns the options of file and variables as command-line words, lowest precedence first.

    ``given`` are the words of the command line, which may name or exclude a file. The table
    ``[dev]`` of the file has options by their long names. Sets the default of ``config_file`` to
    the file in use. Raises ValueError with the file and the key for unknown keys and invalid
    values.
    """
    known = _options(parser)
    path = _chosen_file(given, environment)
    words: Words = []
    if path is not None:
        words = _of_file(path, known)
        parser.set_defaults(config_file=path)
    for name, action in known.items():
        variable = _variable(name)
        text = environment.get(variable)
        if text is not None:
            words += _words(name, action, text if action.nargs != 0 else _is_on(text), variable)
    return words


def add_config_arguments(group: argparse._ArgumentGroup) -> None:
    """Adds the options that select the file. `configured` reads them before all others."""
    group.add_argument(
        f"--{FILE_OPTION}", type=Path, metavar="FILE",
        help=f"read options from this file, not from {FILE} in this folder or a parent folder",
    )  # fmt: skip
    group.add_argument(f"--{NO_FILE_OPTION}", action="store_true", help=f"do not look for {FILE}")


def found_file() -> Path | None:
    """Returns `FILE` in the working directory, or else in the nearest parent that has it.

    Stops at the root of a git repository. Raises ValueError if another user owns the file.
    """
    first = Path.cwd()
    for folder in (first, *first.parents):
        path = folder / FILE
        if path.is_file():
            _check_owner(path, first)
            return Path(FILE) if folder == first else path
        if (folder / REPOSITORY).exists():
            return None
    return None


def _check_owner(path: Path, folder: Path) -> None:
    """Raises ValueError unless this user, root or the owner of ``folder`` owns the file.

    Options can overwrite files, so a file that somebody left in a folder for all users is refused.
    """
    if path.stat().st_uid not in (0, os.getuid(), folder.stat().st_uid):
        raise ValueError(
            f"{path} belongs to another user: pass --{FILE_OPTION} to read it,"
            f" or --{NO_FILE_OPTION}"
        )


def _chosen_file(given: Sequence[str], environment: Mapping[str, str]) -> Path | None:
    """Returns the file that the command line or variables select, or else `found_file`."""
    early = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    add_config_arguments(early)  # type: ignore[arg-type]
    try:
        chosen, _ = early.parse_known_args(list(given))
    except argparse.ArgumentError:
        return None  # the parser of all options reports the error
    named: Path | None = chosen.config_file
    source = f"--{FILE_OPTION}"
    if named is None and not chosen.no_config:
        if _is_on(environment.get(_variable(NO_FILE_OPTION), "")):
            return None
        source = _variable(FILE_OPTION)
        named = Path(environment[source]) if source in environment else None
    if named is None:
        return None if chosen.no_config else found_file()
    if chosen.no_config:
        raise ValueError(f"--{FILE_OPTION} and --{NO_FILE_OPTION} exclude each other")
    if not named.is_file():
        raise ValueError(f"{source}: file {named} does not exist")
    return named


def _variable(option: str) -> str:
    return PREFIX + option.upper().replace("-", "_")


def _is_on(text: str) -> bool:
    return text.lower() not in NO


def _options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Returns the options that files and variables may set, by long name."""
    own = ("help", "version", "config_file", "no_config")
    actions = [action for action in parser._actions if action.dest not in own]
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
        words += _words(name, known[name], value, f"{path}: [{TABLE}] {key}", path.parent)
    return words


def _words(
    name: str, action: argparse.Action, value: Any, where: str, folder: Path | None = None
) -> Words:
    """Returns the command-line words of one option; none if ``value`` is false.

    Relative paths are relative to ``folder``, by default to the working directory. Raises
    ValueError with ``where`` if the option does not accept the value.
    """
    if action.nargs == 0 or isinstance(value, bool):
        return [f"--{name}"] if value else []
    values = value if isinstance(value, list) else [value]
    if folder is not None and action.type in PATHS:
        values = [folder / str(item) for item in values]
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
