"""Operations on 256-bit words as functions of Python ints."""

from collections.abc import Callable

OPERATIONS: dict[str, Callable[..., int]]
