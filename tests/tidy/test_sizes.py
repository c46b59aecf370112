"""Files, functions and lines stay small enough to be read at once."""

from pathlib import Path

import pytest

from .sources import cython_functions, files, python_functions, shown

MAX_FILE = 800
MAX_FUNCTION = 40
MAX_INLINE_FUNCTION = 25
MAX_COLUMNS = 100

# The dispatch is one function by design: one short arm per opcode.
DISPATCH = "fastevm/interpreter/loop.pyx"

SOURCES = files(".py", ".pyx", ".pxd", ".pyi", ".h", under=("fastevm", "rpc"))


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_a_file_has_at_most_800_lines(path: Path) -> None:
    if shown(path) != DISPATCH:
        assert len(path.read_text().splitlines()) <= MAX_FILE


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_a_line_has_at_most_100_columns(path: Path) -> None:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        assert len(line) <= MAX_COLUMNS, f"{shown(path)}:{number}"


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_a_function_has_at_most_40_lines_and_25_when_inline(path: Path) -> None:
    if shown(path) == DISPATCH or path.suffix in (".h", ".pyi"):
        return
    found = python_functions(path) if path.suffix == ".py" else cython_functions(path)
    limit = MAX_INLINE_FUNCTION if path.suffix == ".pxd" else MAX_FUNCTION
    for name, length in found:
        assert length <= limit, f"{shown(path)}: {name} has {length} lines"


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_a_file_begins_by_saying_what_it_is_for(path: Path) -> None:
    text = path.read_text().strip()
    if path.name in ("__init__.py", "__init__.pxd") and not text:
        return
    first = text.splitlines()[0]
    assert first.startswith(("#", '"""', "//", "/*")), f"{shown(path)}: {first!r}"
    assert len(first.strip('#"/* ')) > 10, f"{shown(path)}: {first!r}"
