"""Defines the options of ``fastevm bench``, in a separate module so that ``--help`` imports
little.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final

import fastevm

HERE: Final = Path(__file__).parent
ROOT: Final = Path(fastevm.__file__).parents[1]  # the folder that the package is imported from
DEFAULT_CASES: Final = HERE / "programs" / "cases.json.xz"
PEER_NAMES: Final = ("pyrevm", "py-evm", "geth", "revm")


def found_first(*paths: Path) -> Path:
    """Returns the first path that exists, or the first path for an error message."""
    return next((path for path in paths if path.exists()), paths[0])


# The official tests, in a folder beside the working directory or beside the repository.
SHARED: Final = Path(
    os.environ.get("FASTEVM_SHARED") or found_first(Path("../shared"), ROOT.parent / "shared")
)


def child_environment() -> dict[str, str]:
    """Returns the environment for a process that must import the same fastevm."""
    return os.environ | {"PYTHONPATH": str(ROOT)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``fastevm bench`` to the parser."""
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write all figures here (- prints them)"
    )
    parser.add_argument(
        "--report", type=Path, metavar="DIR",
        help="write a page to read here; for the default cases, measure the border, the state, "
        "blocks and threads as well",
    )  # fmt: skip
    parser.add_argument(
        "--large", action="store_true",
        help="with --report: up to eight million slots, which takes minutes and gigabytes",
    )  # fmt: skip
    parser.add_argument(
        "--node", action="store_true",
        help="measure the node over HTTP beside anvil (of npm, installed once) instead of programs",
    )  # fmt: skip
    parser.add_argument(
        "--quick", action="store_true", help="cases only, fewer rounds, less certain figures"
    )
    parser.add_argument(
        "--cases", type=Path, metavar="FILE", default=DEFAULT_CASES,
        help="programs to time (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--match", default="*", metavar="PATTERN", help="only cases of such names")
    parser.add_argument(
        "--peers", default=",".join(PEER_NAMES), metavar="NAMES",
        help="engines to take alongside, where found (default: %(default)s; empty for none)",
    )  # fmt: skip
