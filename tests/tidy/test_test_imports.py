"""Tests that names which tests import from other tests exist, because mypy skips most tests."""

import ast
from pathlib import Path

from .sources import ROOT, files, shown


def defined(path: Path) -> set[str]:
    """Returns the names that a module assigns, defines or imports outside functions."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(item.asname or item.name).split(".")[0] for item in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        waiting += ast.iter_child_nodes(node)
    return found


def module(path: Path, node: ast.ImportFrom) -> Path:
    """Returns the file or folder that a from-import names."""
    if node.level:
        base = path.parents[node.level - 1]
        return base.joinpath(*(node.module or "").split(".")) if node.module else base
    return ROOT.joinpath(*(node.module or "").split("."))


def missing(path: Path) -> list[str]:
    """Returns the names that a test imports from other tests, and that do not exist there."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom):
            continue
        if not node.level and (node.module or "").split(".")[0] != "tests":
            continue
        target = module(path, node)
        source = target / "__init__.py" if target.is_dir() else target.with_suffix(".py")
        names = defined(source) if source.is_file() else set()
        if target.is_dir():
            names |= {item.stem for item in target.iterdir()}
        found += [
            f"{item.name} from {node.module}" for item in node.names if item.name not in names
        ]
    return found


def test_every_name_that_tests_import_from_each_other_exists() -> None:
    tests = [path for path in files(".py", under=("tests",)) if "node_modules" not in path.parts]
    wrong = {shown(path): names for path in tests if (names := missing(path))}
    assert not wrong


def test_a_name_that_is_gone_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("import os\nA: int = 1\nif A:\n    B = 2\n")
    other = tmp_path / "other.py"
    other.write_text("from .one import A, B, C, os\nfrom . import one\n")
    assert missing(other) == ["C from one"]
