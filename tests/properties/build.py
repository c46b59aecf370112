"""Compiles the contracts with seeded bugs: ``python -m tests.properties.build [--check]``."""

from __future__ import annotations

from pathlib import Path

from fastevm.payments.contracts import build

HERE = Path(__file__).parent
CONTRACTS = (
    "AllowanceToken", "Bank", "BatchToken", "BurnToken", "Counter", "Ownership", "PluginWallet",
    "Reentrant", "RoundingVault", "ShareVault", "TimeLock", "Voucher",
)  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Writes or checks the artifacts beside this file."""
    return build.main(arguments, {HERE: CONTRACTS})


if __name__ == "__main__":
    raise SystemExit(main())
