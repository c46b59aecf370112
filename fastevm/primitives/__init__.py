"""What every package stands on: words, hashes, tables and maps."""

from fastevm.primitives.late_names import late_names

__all__ = [
    "dataclass",
    "has_malloc_trim",
    "late_names",
    "nearest",
    "set_malloc_option",
    "trim_malloc",
]

# Not before a class asks: the standard library's module takes 6 ms to load.
__getattr__ = late_names(
    __name__,
    {
        "dataclass": "late_dataclass",
        "has_malloc_trim": "native.symbols",
        "nearest": "suggestion",
        "set_malloc_option": "native.symbols",
        "trim_malloc": "native.symbols",
    },
)
