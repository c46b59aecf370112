"""Tests that no module imports itself through other modules, not even for the type checker.

Imports of Python modules and cimports between Cython headers are two graphs. Headers are enough to
find cycles of cimports, because they declare all names that a ``.pyx`` file can cimport.
"""

import re
from pathlib import Path

import pytest

from .sources import ROOT, files

TOPS = {"fastevm": "fastevm", "rpc": "fastevm.rpc", "bench": "fastevm.bench"}
FROM = re.compile(r"^[ \t]*from[ \t]+(\.*[\w.]*)[ \t]+(c?import)[ \t]+(\([^)]*\)|[^\n]*)", re.M)
WHOLE = re.compile(r"^[ \t]*(c?import)[ \t]+(fastevm[\w.]*)", re.M)

# Graph -> suffixes of the files in it, and the statement that is an edge.
GRAPHS = {"python": ((".py", ".pyx"), "import"), "headers": ((".pxd",), "cimport")}


def module_of(path: Path) -> str:
    """Returns the dotted name under which a file is imported."""
    top, *parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([TOPS[top], *(part for part in parts if part != "__init__")])


def absolute(base: str, package: str) -> str:
    """Returns the absolute name that a from-import in ``package`` uses for ``base``.

    Leading dots in ``base`` are resolved.
    """
    name = base.lstrip(".")
    if name == base:
        return base
    parts = package.split(".")
    kept = parts[: len(parts) - (len(base) - len(name) - 1)]
    return ".".join([*kept, name] if name else kept)


def imports_of(path: Path, statement: str, modules: dict[str, Path]) -> set[str]:
    """Returns the modules that a file imports with this statement, including inside functions."""
    text, module = path.read_text(), module_of(path)
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    found = {name for word, name in WHOLE.findall(text) if word == statement}
    for base, word, names in FROM.findall(text):
        if word != statement:
            continue
        base = absolute(base, package)
        for name in re.findall(r"(\w+)(?:[ \t]+as[ \t]+\w+)?", re.sub(r"#.*", "", names)):
            inner = f"{base}.{name}"
            found.add(inner if inner in modules else base)
    return {name for name in found if name in modules and name != module}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Returns the groups of modules that import each other, directly or not, each sorted."""
    left = set(graph)
    while True:
        pointed = {name for module in left for name in graph[module]}
        ends = {m for m in left if not graph[m] & left or m not in pointed}
        if not ends:
            break
        left -= ends
    groups = []
    for module in sorted(left):
        reached = _reached(graph, module)
        group = sorted(name for name in reached if module in _reached(graph, name))
        if group and group not in groups:
            groups.append(group)
    return groups


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for name in graph[waiting.pop()] - seen:
            seen.add(name)
            waiting.append(name)
    return seen


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_no_modules_import_each_other_in_a_circle(name: str) -> None:
    suffixes, statement = GRAPHS[name]
    modules = {module_of(path): path for path in files(*suffixes, under=tuple(TOPS))}
    graph = {module: imports_of(path, statement, modules) for module, path in modules.items()}
    assert len(modules) > 50 and any(graph.values())
    assert circles(graph) == []


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}
    assert circles(graph) == [["b", "c"]]
