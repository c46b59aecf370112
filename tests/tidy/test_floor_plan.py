"""Imports go down the floor plan of fastevm/ARCHITECTURE.md only, and never in a circle."""

import re
from pathlib import Path

import pytest

from .sources import ROOT, files, shown

IMPORT = re.compile(r"^\s*(?:from\s+(fastevm[\w.]*)\s+c?import|c?import\s+(fastevm[\w.]*))", re.M)
VALUES = re.compile(r"fastevm\.(errors|types|\w+\.values)$")
EVERYTHING = ("rpc", "bench")  # above the table: rpc has a rule of its own, bench none
SUFFIXES = (".py", ".pyx", ".pxd", ".pyi")


def floor_plan() -> dict[str, set[str]]:
    """Package -> packages it may import, read from the table in ARCHITECTURE.md."""
    plan: dict[str, set[str]] = {}
    for line in (ROOT / "fastevm/ARCHITECTURE.md").read_text().splitlines():
        row = re.match(r"\| \d+ \| `fastevm\.([\w.]+)` \| ([\w,. ]*)\|", line)
        if row and row[1] not in EVERYTHING:
            plan[row[1]] = {name.strip() for name in row[2].split(",") if name.strip()}
    return plan


PLAN = floor_plan()


def package_of(module: str) -> str:
    """The row of the table that a dotted name of fastevm belongs to."""
    parts = module.split(".")[1:]
    nested = ".".join(parts[:2])
    return nested if nested in PLAN else (parts[0] if parts else "__init__")


def imports_of(path: Path) -> set[str]:
    return {found[1] or found[2] for found in IMPORT.finditer(path.read_text())}


def modules_of(package: str) -> list[Path]:
    """The files of a row, without those of a row below it."""
    folder = ROOT / "fastevm" / package.replace(".", "/")
    return [
        path
        for path in files(*SUFFIXES, under=(folder.relative_to(ROOT).as_posix(),))
        if package_of(".".join(path.relative_to(ROOT).parts[:-1])) == package
    ]


def test_the_plan_names_every_package() -> None:
    packages = {path.parent.name for path in (ROOT / "fastevm").glob("*/__init__.py")}
    assert packages - set(EVERYTHING) == {name for name in PLAN if "." not in name}


def test_the_plan_only_points_down() -> None:
    for package, below in PLAN.items():
        for other in below:
            assert package not in PLAN.get(other, ()), f"{package} and {other} import each other"


@pytest.mark.parametrize("package", sorted(PLAN))
def test_a_package_imports_only_from_below(package: str) -> None:
    allowed = PLAN[package] | {package}
    for path in modules_of(package):
        for name in imports_of(path):
            if not VALUES.match(name):
                assert package_of(name) in allowed, f"{shown(path)} imports {name}"


def test_the_node_uses_public_names_only() -> None:
    """Those of a floor's package, and the formats of ``wire``, each a module."""
    for path in files(".py", under=("rpc",)):
        for name in imports_of(path):
            public = name.count(".") <= 1 or name.startswith(("fastevm.wire.", "fastevm.rpc"))
            assert public, f"{shown(path)} imports {name}"


def test_no_import_hides_inside_a_function() -> None:
    inside = re.compile(r"^[ \t]+(?:from\s+fastevm[\w.]*\s+c?import|c?import\s+fastevm)", re.M)
    for path in files(".py", ".pyx", ".pxd", under=("fastevm", "rpc")):
        assert not inside.search(path.read_text()), shown(path)
