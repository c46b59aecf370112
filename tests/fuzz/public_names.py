"""Lists public classes and functions with the argument types from their stubs."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import fastevm

# Public classes that are not in `fastevm.__all__`.
FURTHER: Final = {
    "fastevm.integrations.pyrevm": (
        "EVM", "AccountInfo", "BlockEnv", "CfgEnv", "Env", "JournalCheckpoint", "TxEnv",
    ),
    "fastevm.evm.contracts": ("ContractType",),
    "fastevm.evm.hook_calls": ("Precompiles",),
    "fastevm.evm.snapshot": ("Snapshot",),
    "fastevm.core.execution.block.block": ("BlockBuilder",),
    "fastevm.simulate.batch.arrow": ("ArrowTable",),
    "fastevm.simulate.batch.columns": ("Columns",),
    "fastevm.simulate.batch.many": ("Simulations",),
    "fastevm.core.execution.types": ("Block", "Header", "Log", "Receipt", "Withdrawal"),
}  # fmt: skip
FURTHER_FUNCTIONS: Final = {
    "fastevm.integrations.pyrevm": ("fake_exponential",),
    "fastevm.evm.contracts": ("load_artifact",),
    "fastevm.core.execution.block.block": ("execute_block",),
    "fastevm.core.state.shipping": ("pack_layer", "unpack_layer"),
}


@dataclass(frozen=True)
class Parameter:
    """A parameter: its name, whether it is required, and whether it is keyword-only."""

    name: str
    annotation: str
    required: bool
    named: bool


@dataclass(frozen=True)
class Described:
    """A class in a stub: the parameters of its methods, and the types of its attributes."""

    methods: dict[str, list[Parameter]]
    values: dict[str, str]


@cache
def tree_of(module: str) -> ast.Module:
    """Parses the stub of a module, or its source if there is no stub."""
    found = import_module(module)
    file = Path(str(found.__file__))
    stub = file.parent / f"{file.name.partition('.')[0]}.pyi"
    return ast.parse((stub if stub.exists() else file.with_suffix(".py")).read_text())


def parameters_of(function: ast.FunctionDef) -> list[Parameter]:
    """Returns a function's parameters except ``self``, ``cls``, ``*args`` and ``**kwargs``."""
    given = function.args
    places = [*given.posonlyargs, *given.args]
    optional = len(given.defaults)
    found = [
        Parameter(each.arg, text(each.annotation), at < len(places) - optional, False)
        for at, each in enumerate(places)
        if each.arg not in ("self", "cls")
    ]
    return found + [
        Parameter(each.arg, text(each.annotation), default is None, True)
        for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]


def text(annotation: ast.expr | None) -> str:
    return "" if annotation is None else ast.unparse(annotation)


def described(kind: type) -> Described:
    """Returns the description of a class from its stub.

    If the constructor is generated, the fields are its parameters.
    """
    for node in tree_of(kind.__module__).body:
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
            return of_class(node)
    raise LookupError(f"{kind.__module__} has no class {kind.__name__}")


def of_class(node: ast.ClassDef) -> Described:
    functions = [
        item for item in node.body if isinstance(item, ast.FunctionDef) and is_public(item.name)
    ]
    fields = [
        item for item in node.body
        if isinstance(item, ast.AnnAssign) and is_public(text(item.target))
    ]  # fmt: skip
    values = {text(item.target): text(item.annotation) for item in fields}
    properties = [item for item in functions if item.decorator_list and is_property(item)]
    values |= {item.name: text(item.returns) for item in properties}
    methods = {item.name: parameters_of(item) for item in functions if item not in properties}
    if "__init__" not in methods:
        methods["__init__"] = [
            Parameter(text(item.target), text(item.annotation), item.value is None, True)
            for item in fields
        ]
    return Described(methods, values)


def is_public(name: str) -> bool:
    return not name.startswith("_") or name.endswith("__")


def is_property(item: ast.FunctionDef) -> bool:
    return any(
        "property" in text(entry) or "setter" in text(entry) for entry in item.decorator_list
    )


def function_parameters(function: Any) -> list[Parameter]:
    """Returns the parameters of a public function, or [] if no stub lists them."""
    for node in tree_of(function.__module__).body:
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
            return parameters_of(node)
    return []


def every_class() -> list[type]:
    own = [getattr(fastevm, name) for name in fastevm.__all__]
    further = [getattr(import_module(home), name) for home, names in FURTHER.items()
               for name in names]  # fmt: skip
    return [each for each in (*own, *further) if isinstance(each, type)]


def every_function() -> list[Any]:
    own = [
        getattr(fastevm, name) for name in fastevm.__all__
        if name not in ("__version__", "simulate_async", "simulate", "simulate_many")
    ]  # fmt: skip
    further = [getattr(import_module(home), name) for home, names in FURTHER_FUNCTIONS.items()
               for name in names]  # fmt: skip
    return [each for each in (*own, *further) if not isinstance(each, type)]


CLASSES: Final = tuple(every_class())
FUNCTIONS: Final = tuple((each, function_parameters(each)) for each in every_function())
MEMBERS: Final = {kind: described(kind) for kind in CLASSES}
