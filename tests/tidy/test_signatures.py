"""Tests that ``help`` shows the parameters of every public function, as the stubs do."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fastevm
from tests.tidy.sources import ROOT

# Classes without a public constructor. Functions return their objects.
NOT_CONSTRUCTED = ("ExecutionResult", "Layer", "Transaction")
# Function -> its parameter for any keyword arguments, such as the methods of a contract.
OPEN = {
    "EVM.fork": "options",  # the options of `RemoteSource.open` and of the sources
    "Layer.remote": "options",
    "Transaction.build": "fields",  # the docstring lists the fields of each type
}
STUBS = {
    "EVM": "evm/machine.pyi",
    "Layer": "core/state/layer.pyi",
    "Transaction": "core/execution/transaction/transaction.pyi",
    "ExecutionResult": "evm/result.pyi",
}


def public_functions() -> Iterator[tuple[str, Any]]:
    for name in fastevm.__all__:
        found = getattr(fastevm, name)
        if not callable(found):
            continue
        is_exception = inspect.isclass(found) and issubclass(found, Exception)
        if name not in NOT_CONSTRUCTED and not (is_exception and "__init__" not in vars(found)):
            yield name, found
        if inspect.isclass(found):
            for member in dir(found):
                value = getattr(found, member)
                if member[0] != "_" and callable(value) and not hasattr(Exception, member):
                    yield f"{name}.{member}", value


FUNCTIONS = dict(public_functions())


def stub_parameters() -> dict[str, list[str]]:
    """Returns the names of the parameters in the stubs, by function."""
    found = {}
    for kind, path in STUBS.items():
        tree = ast.parse(Path(ROOT, "fastevm", path).read_text())
        (body,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == kind]
        for node in body.body:
            if isinstance(node, ast.FunctionDef) and f"{kind}.{node.name}" in FUNCTIONS:
                names = [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]
                found[f"{kind}.{node.name}"] = [n for n in names if n not in ("self", "cls")]
    return found


def shown_parameters(name: str) -> list[str]:
    return [
        each.name
        for each in inspect.signature(FUNCTIONS[name]).parameters.values()
        if each.name != "self" and each.kind is not each.VAR_KEYWORD
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_shows_its_parameters(name: str) -> None:
    found = inspect.signature(FUNCTIONS[name]).parameters.values()
    rest = [each.name for each in found if each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    assert rest == ([OPEN[name]] if name in OPEN else []), str(inspect.signature(FUNCTIONS[name]))
    assert "\\x00" not in str(found), "a default is shown as bytes"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_says_what_it_does(name: str) -> None:
    doc = inspect.getdoc(FUNCTIONS[name]) or ""
    assert len(doc) > 20 and "stub" not in doc


def test_shown_parameters_are_those_of_the_stubs() -> None:
    stubs = stub_parameters()
    assert {"EVM.call", "EVM.create", "EVM.set_block", "Layer.of"} <= set(stubs)
    for name, expected in stubs.items():
        if name not in OPEN:
            assert set(shown_parameters(name)) == set(expected), name


def test_no_docstring_refers_to_a_stub() -> None:
    for path in (ROOT / "fastevm").rglob("*.py*"):
        if path.suffix in (".py", ".pyx", ".pyi", ".in"):
            assert "See the stub" not in path.read_text(), path
