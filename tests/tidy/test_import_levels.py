"""Tests that a package imports only from lower levels. ARCHITECTURE.md has the table of levels."""

import re
from pathlib import Path

from .sources import ROOT, files, shown

IMPORT = re.compile(r"^\s*(?:from\s+(fastevm[\w.]*)\s+c?import|c?import\s+(fastevm[\w.]*))", re.M)
ROW = re.compile(r"\| (\d+) \| `([\w.]+)` \|")
EVERYWHERE = re.compile(r"fastevm\.errors$")
# Public modules that `rpc` may import directly, without their package.
PUBLIC = (
    "fastevm.__main__",
    "fastevm.core.primitives.arguments",
    "fastevm.core.primitives.duration",
    "fastevm.core.primitives.hex",
    "fastevm.core.primitives.native.symbols",
    "fastevm.core.primitives.replace",
    "fastevm.core.primitives.safe_text",
    "fastevm.core.primitives.suggestion",
    "fastevm.core.execution.types",
    "fastevm.errors",
    "fastevm.rpc",
)
SUFFIXES = (".py", ".pyx", ".pxd", ".pyi")


def levels() -> dict[str, int]:
    """Returns package -> level, read from the table in ARCHITECTURE.md."""
    text = (ROOT / "fastevm/ARCHITECTURE.md").read_text()
    return {row[2]: int(row[1]) for row in ROW.finditer(text)}


LEVELS = levels()


def package_of(module: str) -> str:
    """Returns the row of the table to which a module belongs, or "" for `fastevm` itself."""
    parts = module.split(".")[1:]
    nested = ".".join(parts[:2])
    return nested if nested in LEVELS else (parts[0] if parts else "")


def imports_of(path: Path) -> set[str]:
    return {found[1] or found[2] for found in IMPORT.finditer(path.read_text())}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts if parts[0] == "fastevm" else ("fastevm", *parts))


SOURCES = [
    path
    for path in files(*SUFFIXES, under=("fastevm", "rpc"))
    if not shown(path).startswith(("fastevm/rpc/", "fastevm/bench/"))
]


def test_every_package_has_a_level() -> None:
    top = {path.parent.name for path in (ROOT / "fastevm").glob("*/__init__.py")} - {"core"}
    core = {f"core.{path.parent.name}" for path in (ROOT / "fastevm/core").glob("*/__init__.py")}
    assert top | core == set(LEVELS)


def test_a_package_imports_from_the_levels_below_only() -> None:
    wrong = []
    for path in SOURCES:
        package = package_of(module_of(path))
        for name in imports_of(path) if package in LEVELS else ():
            other = package_of(name)
            if other in ("", package) or EVERYWHERE.match(name):
                continue
            if LEVELS.get(other, -1) >= LEVELS[package]:
                wrong.append(f"{shown(path)} (level {LEVELS[package]}) imports {name}")
    assert not wrong, "\n".join(wrong)


def test_payments_import_the_client_only() -> None:
    """The payment engine is meant to use any node, so it uses JSON-RPC only."""
    allowed = (
        "fastevm.payments",
        "fastevm.rpc_client",
        "fastevm.errors",
        "fastevm.core.primitives",
    )
    for path in files(".py", under=("fastevm/payments",)):
        for name in imports_of(path):
            assert name.startswith(allowed), f"{shown(path)} imports {name}"


def test_the_node_uses_public_names_only() -> None:
    """The node may use what packages export, and the public modules in `PUBLIC`."""
    for path in files(".py", under=("rpc",)):
        for name in imports_of(path):
            is_package = (ROOT / name.replace(".", "/") / "__init__.py").exists()
            assert is_package or name.startswith(PUBLIC), f"{shown(path)} imports {name}"


def test_no_import_hides_inside_a_function() -> None:
    inside = re.compile(r"^[ \t]+(?:from\s+fastevm[\w.]*\s+c?import|c?import\s+fastevm)", re.M)
    for path in files(".py", ".pyx", ".pxd", under=("fastevm", "rpc")):
        if shown(path) == "fastevm/__init__.py":  # it imports types for type checkers only
            continue
        assert not inside.search(path.read_text()), shown(path)
