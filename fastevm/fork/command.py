"""``fastevm fork cache``: statistics, deletion, export and import of the disk cache of forks."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fastevm.errors import error_text
from fastevm.fork.disk_cache import DiskCache, cache_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the subcommand with its actions and options."""
    subjects = parser.add_subparsers(dest="subject", metavar="SUBJECT", required=True)
    purpose = "the disk cache of values fetched from other nodes"
    cache = subjects.add_parser("cache", help=purpose, description=purpose)
    actions = cache.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (action, purpose) in ACTIONS.items():
        item = actions.add_parser(name, help=purpose, description=purpose)
        item.add_argument(
            "--cache-path", type=Path, metavar="DIR", help=f"folder of the cache ({cache_folder()})"
        )
        item.set_defaults(cache_action=action)
        if name == "stats":
            item.add_argument("--json", action="store_true", help="print one JSON value")
        if name == "clear":
            item.add_argument("--chain-id", type=int, metavar="ID", help="only this chain")
            item.add_argument(
                "--down-to", type=int, metavar="BYTES",
                help="delete the least recently used blocks until the file has at most BYTES",
            )  # fmt: skip
        if name in ("export", "import"):
            item.add_argument("file", type=Path)


def run(arguments: argparse.Namespace) -> int:
    """Runs an action. Returns 0, or 1 if the cache cannot be used."""
    cache = DiskCache(arguments.cache_path or cache_folder())
    if arguments.action != "import" and not cache.path.exists():
        print(f"fastevm fork cache: {cache.path} does not exist", file=sys.stderr)
        return 1 if arguments.action == "export" else 0
    try:
        arguments.cache_action(cache, arguments)
    except (ValueError, FileExistsError) as error:
        print(f"fastevm fork cache: {error_text(error)}", file=sys.stderr)
        return 1
    finally:
        cache.close()
    return 1 if cache.broken else 0


def _stats(cache: DiskCache, arguments: argparse.Namespace) -> None:
    stats = cache.stats()
    if arguments.json:
        counts = {name: count for name, count in stats.items() if name != "bytes"}
        names = ("chain", "blocks", "first", "last")
        chains = [dict(zip(names, chain, strict=True)) for chain in cache.chains()]
        limits = {"bytes": stats["bytes"], "maxBytes": cache.max_bytes}
        print(json.dumps({"path": str(cache.path), **limits, "counts": counts, "chains": chains}))
        return
    print(f"{cache.path}: {stats.pop('bytes')} bytes, at most {cache.max_bytes}")
    for name, count in stats.items():
        print(f"{name:<12} {count:>12}")
    for identity, blocks, first, last in cache.chains():
        chain_id, _, genesis = identity.partition(":")
        where = f" from genesis 0x{genesis[:8]}" if genesis else ""
        print(f"chain {chain_id}{where}: {blocks} blocks, {first} to {last}")


def _clear(cache: DiskCache, arguments: argparse.Namespace) -> None:
    if arguments.down_to is not None:
        deleted = cache.evict(arguments.down_to)
    else:
        deleted = cache.clear(arguments.chain_id)
    print(f"deleted {deleted} blocks")


def _export(cache: DiskCache, arguments: argparse.Namespace) -> None:
    cache.export(arguments.file)
    print(f"exported {cache.stats()['block']} blocks")


def _import(cache: DiskCache, arguments: argparse.Namespace) -> None:
    print(f"imported {cache.import_from(arguments.file)} new blocks")


ACTIONS: Final[dict[str, tuple[Callable[[DiskCache, argparse.Namespace], None], str]]] = {
    "stats": (_stats, "count values and bytes"),
    "clear": (_clear, "delete the cache or a part of it"),
    "export": (_export, "write a copy that another machine can import"),
    "import": (_import, "import an exported file"),
}
