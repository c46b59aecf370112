"""``fastevm spec``, also ``python -m fastevm.core.spec``: prints the rules of forks."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fastevm.errors import UnknownForkError

from .activation import MAINNET
from .forks import FORKS, Fork, Rules, fork_named, resolve
from .opcodes import BY_MNEMONIC
from .parameters import PARAMETERS
from .sstore import SstoreTransition, sstore_rows

Row = Sequence[object]


def table(header: Row, rows: Iterable[Row]) -> str:
    """Formats a table.

    Each column is as wide as its widest cell; numbers are aligned to the right.
    """
    cells = [[*map(_text, header)], *([*map(_text, row)] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numeric = [all(_is_number(row[i]) for row in cells[1:]) for i in range(len(widths))]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def listing() -> str:
    """Formats all forks: name, aliases, activation on mainnet, EIPs."""
    starts = {a.fork: f"block {a.number:,}" for a in MAINNET.by_block}
    starts[MAINNET.merge_fork] = f"block {MAINNET.merge_block:,}"
    starts.update({a.fork: f"time {a.timestamp}" for a in MAINNET.by_time})
    rows = (
        (
            fork.name,
            ", ".join(fork.aliases),
            starts.get(fork, ""),
            " ".join(
                [str(eip.number) if eip.number else eip.label for eip in fork.eips]
                + [f"-{eip.number}" for eip in fork.removed]
            ),
        )
        for fork in FORKS
    )
    return table(("fork", "also", "mainnet", "EIPs (- = removed)"), rows)


def shown(fork: Fork) -> str:
    """Formats all rules of one fork, each with the EIP that sets it."""
    rules = resolve(fork)
    count = sum(1 for eip in fork.all_eips if eip.number)
    sections = [f"{fork.name}: the Yellow Paper's Frontier and {count} EIPs"]
    sections.append(table(("opcode", "name", "gas", "pops", "pushes", "EIP"), _opcode_rows(rules)))
    sections.append(
        table(
            ("parameter", "value", "unit", "EIP", "meaning"),
            (
                (p.name, rules.parameters[p.name], p.unit, source.label, p.meaning)
                for p in PARAMETERS.values()
                if (source := rules.sources.get(("parameters", p.name)))
            ),
        )
    )
    sections.append(
        table(
            ("SSTORE", "gas", "refund"),
            zip((t.name for t in SstoreTransition), *sstore_rows(rules.parameters), strict=True),
        )
    )
    sections.append(table(("precompile", "address", "EIP"), _address_rows(rules, "precompiles")))
    if rules.contracts:
        sections.append(
            table(("system contract", "address", "EIP"), _address_rows(rules, "contracts"))
        )
    return "\n\n".join(sections)


def diff(old: Fork, new: Fork) -> str:
    """Formats the differences between two forks, with both values and the EIP responsible."""
    before, after = resolve(old), resolve(new)
    rows = [
        (_KINDS[kind], name, *values, _responsible(kind, name, old, new))
        for kind in _KINDS
        for name, *values in _changes(getattr(before, kind), getattr(after, kind))
    ]
    rows += [
        ("SSTORE", f"{transition.name} {what}", *values, "by the parameters above")
        for what, *columns in zip(
            ("gas", "refund"),
            sstore_rows(before.parameters),
            sstore_rows(after.parameters),
            strict=True,
        )
        for transition, *values in zip(SstoreTransition, *columns, strict=True)
        if values[0] != values[1]
    ]
    if not rows:
        return f"{old.name} and {new.name} have the same rules"
    return table(("what", "name", old.name, new.name, "by"), rows)


_KINDS = {
    "opcodes": "opcode",
    "parameters": "parameter",
    "precompiles": "precompile",
    "contracts": "contract",
}


def _opcode_rows(rules: Rules) -> Iterator[Row]:
    for mnemonic, op in BY_MNEMONIC.items():
        if mnemonic in rules.opcodes:
            eip = rules.sources["opcodes", mnemonic]
            gas = rules.opcodes[mnemonic]
            yield f"0x{op.value:02x}", mnemonic, gas, op.pops, op.pushes, eip.label


def _address_rows(rules: Rules, kind: str) -> Iterator[Row]:
    addresses = getattr(rules, kind)
    for name in sorted(addresses, key=addresses.__getitem__):
        yield name, _address(addresses[name]), rules.sources[kind, name].label


def _changes(before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old != new:
            yield name, old, new


def _responsible(kind: str, name: str, old: Fork, new: Fork) -> str:
    """Returns the EIPs that set the name in only one of two forks. "without" precedes removed
    EIPs.
    """
    brought = [e for e in new.all_eips if e not in old.all_eips and name in getattr(e, kind)]
    taken = [e for e in old.all_eips if e not in new.all_eips and name in getattr(e, kind)]
    if brought:
        return brought[-1].label
    return f"without {taken[-1].label}" if taken else ""


def _address(value: int | bytes) -> str:
    return f"0x{value.hex()}" if isinstance(value, bytes) else f"0x{value:02x}"


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return _address(value) if isinstance(value, bytes) else str(value)


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(",", "").isdigit() or text in ("-", "yes", "no")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the actions and their arguments."""
    parser.description = "Print the rules of the EVM's forks."
    commands = parser.add_subparsers(dest="spec_action", metavar="ACTION", required=True)
    commands.add_parser("list", help="all forks")
    show = commands.add_parser("show", help="all rules of one fork")
    show.add_argument("fork")
    compare = commands.add_parser("diff", help="what changes between two forks")
    compare.add_argument("old")
    compare.add_argument("new")


def run(options: argparse.Namespace) -> int:
    """Runs the command. Returns the exit code: 0, or 2 for an unknown fork."""
    try:
        if options.spec_action == "list":
            text = listing()
        elif options.spec_action == "show":
            text = shown(fork_named(options.fork))
        else:
            text = diff(fork_named(options.old), fork_named(options.new))
    except UnknownForkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`): avoid another error when stdout is flushed at
        # exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with these arguments. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.core.spec")
    add_arguments(parser)
    return run(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
