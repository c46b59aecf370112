"""One file with the modules that commands load, where Python would look for each and open it.

To find 480 modules in their folders and to read 350 files takes a sixth of the time in which a node
starts. ``python -m fastevm.tools.module_cache`` writes the file beside the byte code of this
package, as `make` does. A module that has changed since then, by the size or the time of its file,
comes from where it lies; the whole file counts for this interpreter, these folders and these
options only. Nothing depends on it: without it everything loads as ever.
"""

import marshal
import os
import sys
from importlib import import_module
from importlib.machinery import ExtensionFileLoader, ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER, spec_from_file_location
from types import CodeType
from typing import Any, Final

SUFFIX: Final = ".modules"
LENGTH_SIZE: Final = 8  # bytes, the first of the file: the length of what stands before the code

# Name -> (file, its size, nanoseconds of its last change, where its byte code lies or None, whether
# it is a package, offset and length of its code). Offsets count from the end of the table; the
# length is 0 for an extension module.
Table = dict[str, tuple[str, int, int, str | None, bool, int, int]]


def path() -> str | None:
    """Where the file lies; None where Python keeps no byte code."""
    cached = globals().get("__cached__")
    return None if cached is None else cached.removesuffix(".pyc") + SUFFIX


def folder_of(file: str) -> str:
    """The folder of a file; `pathlib` is not loaded yet."""
    return os.path.dirname(file)  # noqa: PTH120


def conditions() -> bytes:
    """What must be the same when the file is read as when it was written.

    Among the folders neither that of the script, or the working directory, nor this package's: its
    modules are found by their package.
    """
    folders = sys.path if sys.flags.safe_path else sys.path[1:]
    own = folder_of(folder_of(__file__))
    others = [folder for folder in folders if folder != own]
    return marshal.dumps((MAGIC_NUMBER, sys.version, others, __file__))


class Loader(SourceFileLoader):
    """Loads a module whose code lies in the file."""

    def __init__(self, name: str, origin: str, place: tuple[int, int, int]) -> None:
        super().__init__(name, origin)
        self.place = place

    def get_code(self, fullname: str) -> CodeType | None:
        """Its code; from where it lies, if it is asked for again."""
        if fullname != self.name or self.place[0] < 0:
            return super().get_code(fullname)
        descriptor, offset, length = self.place
        self.place = (-1, 0, 0)
        code: CodeType = marshal.loads(os.pread(descriptor, length, offset))
        return code


class Finder:
    """Finds what the table names, while its file is as it was; leaves the rest to others."""

    def __init__(self, table: Table, descriptor: int, start: int) -> None:
        self.table, self.descriptor, self.start = table, descriptor, start

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """As `importlib.abc.MetaPathFinder` has it."""
        entry = self.table.get(name)
        if entry is None:
            return None
        origin, size, changed, cached, is_package, offset, length = entry
        try:
            found = os.stat(origin)  # noqa: PTH116
        except OSError:
            return None
        if found.st_size != size or found.st_mtime_ns != changed:
            return None
        if not length:
            return spec_from_file_location(name, origin, loader=ExtensionFileLoader(name, origin))
        spec = spec_from_file_location(
            name,
            origin,
            loader=Loader(name, origin, (self.descriptor, self.start + offset, length)),
            submodule_search_locations=[folder_of(origin)] if is_package else None,
        )
        assert spec is not None
        spec.cached = cached
        return spec


def use() -> bool:
    """Find modules by the file from now on; whether there is one that may be used."""
    name = path()
    if name is None or not hasattr(os, "pread"):
        return False
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    length = int.from_bytes(os.pread(descriptor, LENGTH_SIZE, 0), "little")
    head = os.pread(descriptor, length, LENGTH_SIZE)
    expected = conditions()
    if len(head) != length or not head.startswith(expected):
        os.close(descriptor)
        return False
    table = marshal.loads(head[len(expected) :])
    finder: Any = Finder(table, descriptor, LENGTH_SIZE + length)
    sys.meta_path.insert(0, finder)
    return True


def open_extensions() -> None:
    """Open the extension modules of the file on a thread, for a command that loads them all."""
    for finder in sys.meta_path:
        if isinstance(finder, Finder):
            open_ahead = import_module("fastevm.primitives.native.symbols").open_ahead
            open_ahead([origin for origin, *_, length in finder.table.values() if not length])
