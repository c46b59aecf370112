"""Imports go down the floor plan of fastevm/ARCHITECTURE.md only."""

import re
from pathlib import Path

import pytest

from .sources import ROOT, files, shown

IMPORT = re.compile(r"^\s*(?:from\s+(fastevm[\w.]*)\s+c?import|c?import\s+(fastevm[\w.]*))", re.M)
PLAIN = re.compile(r"fastevm\.(errors|types|\w+\.values)$")


def floor_plan() -> dict[str, set[str]]:
    """Package -> packages it may import, read from the table in ARCHITECTURE.md."""
    plan: dict[str, set[str]] = {}
    for line in (ROOT / "fastevm/ARCHITECTURE.md").read_text().splitlines():
        row = re.match(r"\| \d \| `fastevm\.(\w+)` \| ([\w, ]*)\|", line)
        if row:
            plan[row[1]] = {name.strip() for name in row[2].split(",") if name.strip()}
    return plan


def imports_of(path: Path) -> set[str]:
    return {found[1] or found[2] for found in IMPORT.finditer(path.read_text())}


def test_the_plan_names_every_package() -> None:
    packages = {p.parent.name for p in (ROOT / "fastevm").glob("*/__init__.py")}
    assert packages == set(floor_plan())


def test_the_plan_only_points_down() -> None:
    plan = floor_plan()
    for package, below in plan.items():
        for other in below:
            assert package not in plan.get(other, ()), f"{package} and {other} import each other"


@pytest.mark.parametrize("package", sorted(floor_plan()))
def test_a_package_imports_only_from_below(package: str) -> None:
    allowed = floor_plan()[package] | {package}
    for path in files(".py", ".pyx", ".pxd", ".pyi", under=(f"fastevm/{package}",)):
        for name in imports_of(path):
            if PLAIN.match(name):
                continue
            parts = name.split(".")
            target = parts[1] if len(parts) > 1 else "__init__"
            assert target in allowed, f"{shown(path)} imports {name}"


def test_the_node_uses_public_names_only() -> None:
    for path in files(".py", under=("rpc",)):
        for name in imports_of(path):
            assert name.count(".") <= 1, f"{shown(path)} imports {name}"


def test_no_import_hides_inside_a_function() -> None:
    inside = re.compile(r"^[ \t]+(?:from\s+fastevm[\w.]*\s+c?import|c?import\s+fastevm)", re.M)
    for path in files(".py", ".pyx", ".pxd", under=("fastevm", "rpc")):
        assert not inside.search(path.read_text()), shown(path)
