"""What every package stands on: words, hashes, tables and maps."""

from fastevm.primitives.late_names import late_names

__all__ = ["dataclass", "late_names"]

# Not before a class asks: the standard library's module takes 6 ms to load.
__getattr__ = late_names(__name__, {"dataclass": "late_dataclass"})
