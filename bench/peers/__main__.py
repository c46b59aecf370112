"""Builds the missing peers in Go and Rust.

    python -m fastevm.bench.peers [geth] [evm] [on-geth] [on-revm]

Skips a program with a message if its toolchain is not installed. Exit status 1 if a build fails.
The first build of each program downloads its dependencies and takes minutes.
"""

from __future__ import annotations

import argparse
import shutil
import sys

from fastevm.bench.peers.compiled import PROGRAMS, NotBuilt


def main(arguments: list[str] | None = None) -> int:
    """Builds the named programs, or all programs if no name is given."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.bench.peers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    names = parser.parse_args(arguments).names or list(PROGRAMS)
    unknown = [name for name in names if name not in PROGRAMS]
    if unknown:
        parser.error(f"unknown peer {unknown[0]!r}: expected {', '.join(PROGRAMS)}")
    status = 0
    for name in names:
        program = PROGRAMS[name]
        missing = shutil.which(program.toolchain) is None
        try:
            print(f"{name}: {program.build()}", flush=True)
        except NotBuilt as reason:
            print(f"{name}: {'skipped' if missing else 'failed'}: {reason}", flush=True)
            status = status or (0 if missing else 1)
    return status


if __name__ == "__main__":
    sys.exit(main())
