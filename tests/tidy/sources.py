"""Lists and parses the project's files, for the other tests in this folder."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def files(
    *suffixes: str, under: tuple[str, ...] = ("fastevm", "rpc", "tests", "bench")
) -> list[Path]:
    """Returns all files of the project with one of these suffixes."""
    return sorted(
        path
        for top in under
        for path in (ROOT / top).rglob("*")
        if path.suffix in suffixes and "__pycache__" not in path.parts
    )


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def cython_functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yields the name and the length in lines of each function in a .pyx or .pxd file.

    Includes nested functions.
    """
    lines = path.read_text().splitlines()
    start = re.compile(r"^(\s*)(?:async )?(?:cdef(?! class)|cpdef|def)\b.*?(\w+)\(")
    at = 0
    while at < len(lines):
        found = start.match(lines[at])
        if not found:
            at += 1
            continue
        head = at
        while head < len(lines) and not lines[head].rstrip().endswith(":"):
            if lines[head].strip() == "" or (head > at and start.match(lines[head])):
                break
            head += 1
        if head >= len(lines) or not lines[head].rstrip().endswith(":"):
            at += 1
            continue
        indent = len(found[1])
        end = last = head + 1
        while end < len(lines):
            text = lines[end]
            if text.strip() and len(text) - len(text.lstrip()) <= indent:
                break
            if text.strip():
                last = end + 1
            end += 1
        yield found[2], last - at
        at = end


def python_functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yields the name and the length in lines of each function in a .py file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1
