"""``fastevm db``: verifies, repairs, exports, imports, prunes, compacts and measures a data
directory.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from fastevm.chain.block_files import blocks_of
from fastevm.chain.chain import Chain
from fastevm.chain.genesis import genesis_block
from fastevm.chain.retention import ChainLimits, block_threads
from fastevm.chain.storage import DataDirectory, StorageError
from fastevm.chain.storage.genesis_file import GENESIS_NAME, Pace, genesis_file
from fastevm.chain.storage.maintenance import repair, set_aside_files, verify
from fastevm.core.primitives.config_values import read_number
from fastevm.core.primitives.json_file import read_json
from fastevm.errors import ForkError, error_text
from fastevm.node.from_fork import kept_chain
from fastevm.node.from_genesis import genesis_node
from fastevm.node.node import Mining
from fastevm.node.remote.kept_fork import is_fork

ANY_PACE: Final = Pace(1, 1)  # accepts blocks with any block time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the actions and their options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (action, purpose) in ACTIONS.items():
        item = actions.add_parser(name, help=purpose, description=purpose)
        item.add_argument("--datadir", type=Path, required=True, metavar="DIR")
        item.set_defaults(database_action=action)
        if name in ("verify", "stats", "prune"):
            item.add_argument("--json", action="store_true", help="print one JSON value")
        if name == "repair":
            item.add_argument(
                "--genesis",
                type=Path,
                metavar="FILE",
                help="genesis to store if genesis.json is missing",
            )
        if name in ("export", "import"):
            item.add_argument("file", type=Path, help="concatenated RLP; import: also gzip, era1")
        if name == "export":
            item.add_argument("--first", type=int, default=1, metavar="NUMBER")
            item.add_argument("--last", type=int, metavar="NUMBER", help="the head")
        if name == "prune":
            item.add_argument("--yes", action="store_true", help="delete; else only list")


def run(arguments: argparse.Namespace) -> int:
    """Runs an action. Returns 0, or 1 if it found damage or could not repair it."""
    try:
        return int(arguments.database_action(arguments))
    except (StorageError, ForkError) as error:
        print(f"fastevm db: {error_text(error)}", file=sys.stderr)
        return 1


def _verify(arguments: argparse.Namespace) -> int:
    problems = 0
    if arguments.json:
        files = _files(arguments.datadir)
        print(json.dumps({"datadir": str(arguments.datadir), "files": files}))
        return 1 if any(file["problems"] for file in files) else 0
    for report in verify(arguments.datadir):
        counts = ", ".join(f"{count} {kind}" for kind, count in report.counts.items())
        print(f"{report.name}: {report.size} bytes, {counts or 'no records'}")
        for problem in report.problems:
            print(f"  {problem}")
        problems += len(report.problems)
    return 1 if problems else 0


def _repair(arguments: argparse.Namespace) -> int:
    done = repair(arguments.datadir, _stored_genesis(arguments.genesis))
    print("\n".join(done) if done else "nothing to repair")
    return 0


def _stored_genesis(path: Path | None) -> bytes | None:
    """Returns the content of ``genesis.json``, read from a genesis file or a copy of
    ``genesis.json``.
    """
    if path is None:
        return None
    try:
        found = read_json(path.read_bytes())
        if not isinstance(found, dict):
            raise ValueError("expected an object")
        if "genesisHash" in found:
            return path.read_bytes()
        block, _ = genesis_block(found)
        chain_id = read_number(found["config"]["chainId"], "config.chainId")
        return genesis_file(found, block.hash, chain_id).encoded()
    except (OSError, ValueError) as error:
        raise StorageError(f"{path} is not a genesis file: {error}") from None


def _existing(path: Path) -> DataDirectory:
    """Returns the data directory at ``path``, which must exist, without opening its files."""
    if not path.is_dir():
        raise StorageError(f"{path} is not a directory")
    return DataDirectory(path)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[DataDirectory, Chain]]:
    """Yields the directory and its restored chain. Builds no blocks."""
    directory = _existing(path)
    try:
        genesis = directory.genesis
        if genesis is None:
            raise StorageError(f"{path} does not contain a chain")
        if is_fork(genesis):
            yield directory, kept_chain(directory, ChainLimits())
            return
        pace = directory.pace or ANY_PACE
        try:
            node = genesis_node(
                genesis,
                mining=Mining.NEVER,
                block_time_ms=pace.block_time_ms,
                slice_interval_ms=pace.slice_interval_ms,
                directory=directory,
                limits=ChainLimits(threads=block_threads()),
            )
        except StorageError:
            raise
        except ValueError as error:
            raise StorageError(f"{path / GENESIS_NAME}: {error}") from None
        yield directory, node.chain
    finally:
        directory.close()


def _export(arguments: argparse.Namespace) -> int:
    if arguments.file.is_file():  # the file might belong to the data directory, so it is kept
        raise StorageError(f"{arguments.file} already exists: choose another file")
    with _opened(arguments.datadir) as (_, chain):
        last = chain.head.number if arguments.last is None else arguments.last
        if arguments.first > last:
            raise StorageError(f"the first block, {arguments.first}, is above the last, {last}")
        with arguments.file.open("wb") as file:
            for number in range(max(arguments.first, chain.genesis.number + 1), last + 1):
                block = chain.block_by_number(number)
                if block is None:
                    raise StorageError(f"block {number} does not exist")
                file.write(block.rlp())
    print(f"exported blocks up to {last}")
    return 0


def _import(arguments: argparse.Namespace) -> int:
    with _opened(arguments.datadir) as (_, chain):
        count = sum(chain.import_rlp(block) for block in blocks_of(arguments.file))
        print(f"imported {count} blocks; the head is {chain.head.number}")
    return 0


def _files(path: Path) -> list[dict[str, Any]]:
    """Returns name, size in bytes, record counts and problems of each file of a directory."""
    return [
        {
            "name": report.name,
            "size": report.size,
            "counts": report.counts,
            "problems": list(report.problems),
        }
        for report in verify(path)
    ]


def _set_aside(path: Path) -> list[dict[str, Any]]:
    return [{"name": file.name, "size": _size(file)} for file in set_aside_files(path)]


def _stats(arguments: argparse.Namespace) -> int:
    if arguments.json:
        found = {"files": _files(arguments.datadir), "setAside": _set_aside(arguments.datadir)}
        print(json.dumps({"datadir": str(arguments.datadir), **found}))
        return 0
    for report in verify(arguments.datadir):
        print(f"{report.name:<18} {report.size:>14} bytes", *_shown(report.counts))
    aside = set_aside_files(arguments.datadir)
    print(f"{'set aside':<18} {sum(map(_size, aside)):>14} bytes  {len(aside)} entries")
    return 0


def _shown(counts: dict[str, int]) -> list[str]:
    return [f" {count} {kind}" for kind, count in counts.items()]


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _prune(arguments: argparse.Namespace) -> int:
    with_lock = _existing(arguments.datadir)
    if arguments.json:
        found = {"deleted": arguments.yes, "setAside": _set_aside(arguments.datadir)}
        print(json.dumps({"datadir": str(arguments.datadir), **found}))
    try:
        for path in set_aside_files(arguments.datadir):
            if not arguments.json:
                verb = "deleted" if arguments.yes else "would delete"
                print(f"{verb} {path.name}, {_size(path)} bytes")
            if arguments.yes and path.is_dir():
                shutil.rmtree(path)
            elif arguments.yes:
                path.unlink()
    finally:
        with_lock.close()
    return 0


def _compact(arguments: argparse.Namespace) -> int:
    with _opened(arguments.datadir) as (directory, chain):
        before = directory.blocks.file.size
        directory.forget_slices(chain)  # the parent of the stored slices may be on a removed branch
        # first, because the snapshot refers to the old length of the journal
        directory.forget_snapshot()
        directory.development.forget_snapshots()
        directory.blocks.compact(chain)
        print(f"blocks.log: {before} bytes before, {directory.blocks.file.size} now")
    return 0


ACTIONS: Final[dict[str, tuple[Callable[[argparse.Namespace], int], str]]] = {
    "verify": (_verify, "read every record and report damage; changes nothing"),
    "repair": (_repair, "make a damaged directory usable; damaged files are renamed and kept"),
    "export": (_export, "write the canonical blocks as RLP"),
    "import": (_import, "verify, execute and add blocks from RLP"),
    "prune": (_prune, "delete what was set aside: torn records, damaged files, old chains"),
    "stats": (_stats, "count records and bytes"),
    "compact": (_compact, "drop side branches and moves of the head from the journal"),
}
