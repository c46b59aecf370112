"""What every package stands on: words, hashes, tables and maps."""

from fastevm.core.primitives.native.symbols import has_malloc_trim, set_malloc_option, trim_malloc
from fastevm.core.primitives.suggestion import nearest

__all__ = [
    "has_malloc_trim",
    "nearest",
    "set_malloc_option",
    "trim_malloc",
]
