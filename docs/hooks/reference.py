"""MkDocs hook: generates the reference pages for the command line and metrics."""

from __future__ import annotations

import argparse
import re
import urllib.request
from collections.abc import Callable
from typing import Any

from fastevm.cli.command_line import COMMANDS, parser
from fastevm.integrations.local_node import LocalNode
from fastevm.rpc.limits import Limits

# --- command line ---


def command_page() -> str:
    """The page with every command and its options."""
    lines = [
        "# Command line", "",
        "Every command and its options. `fastevm COMMAND --help` prints the same.", "",
    ]  # fmt: skip
    top = parser()
    commands = next(a for a in top._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in COMMANDS.items():
        lines += [f"## fastevm {name}", "", f"{sentence(command.purpose)}", ""]
        subparser = commands.choices[name]
        command.fill(subparser)
        lines += options(subparser)
    return "\n".join(lines)


def sentence(text: str) -> str:
    """The text with an initial capital and a full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "."


def options(command: argparse.ArgumentParser) -> list[str]:
    """Tables of the options of a command by group, and of its subcommands."""
    lines: list[str] = []
    for group in command._action_groups:
        rows = [row for action in group._group_actions if (row := option(command, action))]
        if rows:
            title = group.title if group.title not in ("options", "positional arguments") else None
            lines += [f"**{title}**", ""] if title else []
            lines += ["| option | meaning |", "|---|---|", *rows, ""]
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, subcommand in action.choices.items():
                lines += [f"### {subcommand.prog or name}", "", *options(subcommand)]
    return lines


def option(command: argparse.ArgumentParser, action: argparse.Action) -> str | None:
    """The table row of an option, or None if the option is hidden."""
    hidden = argparse.SUPPRESS in (action.help, action.dest) or action.dest == "help"
    if hidden or isinstance(action, argparse._SubParsersAction):
        return None
    formatter = command._get_formatter()
    words = ", ".join(action.option_strings) or formatter._format_args(action, action.dest)
    if action.option_strings and action.nargs != 0:
        words += " " + formatter._format_args(action, action.dest.upper())
    explanation = formatter._expand_help(action) if action.help else ""
    return f"| `{words}` | {escaped(explanation)} |".replace("\n", " ")


def escaped(text: str) -> str:
    """The text escaped for a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


# --- metrics ---


def metrics_page() -> str:
    """The page with every metric of a node and every limit with its default."""
    with (
        LocalNode("node") as node,
        urllib.request.urlopen(node.listen() + "/metrics", timeout=10) as answer,
    ):
        text = answer.read().decode()
    kinds = sorted(re.findall(r"# TYPE (\S+) (\S+)", text))
    lines = [
        "# Metrics", "",
        "Every listener serves `/metrics` in the Prometheus text format. With `--metrics-listen`"
        " only that address serves it. Followers and nodes with a data directory have more"
        " metrics.", "",
        "| name | kind |", "|---|---|",
        *(f"| `{name}` | {kind} |" for name, kind in kinds), "",
        "## Limits", "",
        "`rpc_limits` returns the limits of a node. Sizes are in bytes, times in seconds.", "",
        "| limit | default |", "|---|---|",
    ]  # fmt: skip
    limits = Limits()
    for name in Limits.__slots__ if hasattr(Limits, "__slots__") else vars(limits):
        lines.append(f"| `{name}` | {getattr(limits, name):,} |")
    return "\n".join([*lines, ""])


PAGES: dict[str, Callable[[], str]] = {
    "reference/command-line.md": command_page,
    "reference/metrics.md": metrics_page,
}
SOURCES = {  # relative to docs/; targets of the edit links
    "reference/command-line.md": "../fastevm/cli/command_line.py",
    "reference/metrics.md": "../rpc/metrics.py",
}


def on_files(files: Any, config: Any) -> Any:
    """Adds the generated pages to the site."""
    from mkdocs.structure.files import File

    for path, page in PAGES.items():
        made = File.generated(config, path, content=page())
        made.edit_uri = SOURCES[path]
        files.append(made)
    return files
