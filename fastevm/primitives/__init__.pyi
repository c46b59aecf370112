"""What the package gives, for type checkers."""

from fastevm.primitives.late_dataclass import dataclass
from fastevm.primitives.late_names import late_names

__all__ = ["dataclass", "late_names"]
