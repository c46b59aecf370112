"""What the package gives, for type checkers."""

from fastevm.primitives.late_dataclass import dataclass
from fastevm.primitives.late_names import late_names
from fastevm.primitives.native.symbols import has_malloc_trim, set_malloc_option, trim_malloc
from fastevm.primitives.suggestion import nearest

__all__ = [
    "dataclass",
    "has_malloc_trim",
    "late_names",
    "nearest",
    "set_malloc_option",
    "trim_malloc",
]
