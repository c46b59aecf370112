"""Writes the file from which commands load their modules (`fastevm.module_cache`).

``python -m fastevm.tools.module_cache`` loads what a node loads, and keeps the code of it.
"""

from __future__ import annotations

import marshal
import os
import sys
from importlib import import_module
from importlib.machinery import ExtensionFileLoader, ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Final

from fastevm.module_cache import LENGTH_SIZE, Table, conditions, path

LOADED: Final = (
    "fastevm.rpc.command",
    "fastevm.rpc.dev.command",
    "fastevm.rpc.transport.app",  # with aiohttp, which a node loads later
)


def loaded_specs() -> dict[str, ModuleSpec]:
    """The modules of this process that lie in files, in the order in which they were loaded."""
    found = {}
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if spec is None or spec.name != name or not spec.origin or name == "__main__":
            continue
        if isinstance(spec.loader, ExtensionFileLoader) or type(spec.loader) is SourceFileLoader:
            found[name] = spec
    return found


def packed(specs: dict[str, ModuleSpec]) -> tuple[Table, bytes]:
    """The table of the modules, with offsets from its end, and their code."""
    table: Table = {}
    codes = bytearray()
    for name, spec in specs.items():
        code = b""
        if isinstance(spec.loader, SourceFileLoader):
            code = marshal.dumps(spec.loader.get_code(name))
        assert spec.origin is not None
        file = Path(spec.origin).stat()
        is_package = spec.submodule_search_locations is not None
        where = (spec.cached if code else None, is_package, len(codes), len(code))
        table[name] = (spec.origin, file.st_size, file.st_mtime_ns, *where)
        codes += code
    return table, bytes(codes)


def content(specs: dict[str, ModuleSpec]) -> bytes:
    """The whole file."""
    table, codes = packed(specs)
    head = conditions() + marshal.dumps(table)
    return len(head).to_bytes(LENGTH_SIZE, "little") + head + codes


def main() -> int:
    """Write the file; 1 where Python keeps no byte code."""
    name = path()
    if name is None:
        return 1
    for module in LOADED:
        import_module(module)
    new = Path(f"{name}.{os.getpid()}")
    new.write_bytes(content(loaded_specs()))
    new.replace(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
