"""Compiles the contracts: ``python -m tests.unit.rpc.reverting.build [--check]``."""

from __future__ import annotations

from pathlib import Path

from fastevm.payments.contracts import build

HERE = Path(__file__).parent
CONTRACTS = ("Bells", "Picky", "Refuser", "Thrifty")


def main(arguments: list[str] | None = None) -> int:
    """Writes or checks the artifacts beside this file."""
    return build.main(arguments, {HERE: CONTRACTS})


if __name__ == "__main__":
    raise SystemExit(main())
