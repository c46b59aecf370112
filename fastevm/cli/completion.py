"""``fastevm completion``: completes commands, options and choices in bash, zsh and fish.

The printed script calls ``fastevm completion words`` for candidates, so the script does not need an
update when options change.
"""

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from fastevm.cli.parser import Parser

WORDS: Final = "words"
SCRIPTS: Final = {
    "bash": """\
# eval "$(fastevm completion bash)" in ~/.bashrc
_fastevm() {
    local IFS=$'\\n'
    COMPREPLY=($(fastevm completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -o bashdefault -F _fastevm fastevm
""",
    "zsh": """\
# eval "$(fastevm completion zsh)" in ~/.zshrc, after compinit
_fastevm() {
    local found
    found=$(fastevm completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    if [[ -n $found ]]; then compadd -- ${(f)found}; else _files; fi
}
compdef _fastevm fastevm
""",
    "fish": """\
# fastevm completion fish | source
complete -c fastevm -a '(fastevm completion words -- (commandline -opc)[2..] (commandline -ct))'
""",
}
"""Completion scripts by shell. Without candidates the shell completes file names."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.description = "Print a script that completes commands and options in a shell."
    parser.add_argument("shell", choices=(*SCRIPTS, WORDS), metavar="{bash,zsh,fish}")
    parser.add_argument("typed", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Prints the script, or the candidates for the last of the typed words."""
    if arguments.shell == WORDS:
        typed = arguments.typed[1:] if arguments.typed[:1] == ["--"] else arguments.typed
        text = "".join(f"{candidate}\n" for candidate in candidates(typed or [""]))
    else:
        text = SCRIPTS[arguments.shell]
    print(text, end="")
    return 0


def candidates(typed: Sequence[str]) -> list[str]:
    """Returns the candidates for the last word. There are none for a value without choices."""
    *before, last = typed
    parser: Parser = import_module("fastevm.cli.command_line").parser(before[0] if before else None)
    option: argparse.Action | None = None
    for word in before:
        option = _options(parser).get(word) if word.startswith("-") else None
        if option is None and word in (subcommands := _subcommands(parser)):
            parser = subcommands[word]
            parser.filled()
    if option is not None and option.nargs != 0:
        found = [str(choice) for choice in option.choices or ()]
    elif last.startswith("-"):
        found = [word for word in _options(parser) if word.startswith("--")]
    else:
        found = [*_subcommands(parser), *_choices(parser)]
    return [word for word in found if word.startswith(last)]


def _options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    shown = (action for action in parser._actions if action.help != argparse.SUPPRESS)
    return {word: item for item in shown for word in item.option_strings}


def _subcommands(parser: argparse.ArgumentParser) -> dict[str, Parser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _choices(parser: argparse.ArgumentParser) -> list[str]:
    positional = (action for action in parser._actions if not action.option_strings)
    subcommands = argparse._SubParsersAction
    return [
        str(choice)
        for item in positional
        if item.choices and not isinstance(item, subcommands)
        for choice in item.choices
        if choice != WORDS
    ]
