# Types of the operations on 256-bit words that tests call.
from collections.abc import Callable

OPERATIONS: dict[str, Callable[..., int]]
