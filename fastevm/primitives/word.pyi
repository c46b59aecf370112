# Types of the test door of 256-bit words.
from collections.abc import Callable

OPERATIONS: dict[str, Callable[..., int]]
