"""The contract ABI: compiled types, and the functions that encode and decode with them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, final

from fastevm.core.primitives.bytes_like import BytesLike
from fastevm.errors import FastevmError

DEPTH_LIMIT: Final = 64

class AbiEncodingError(FastevmError, ValueError):
    """A value does not fit its ABI type. The message names the argument."""

class AbiDecodingError(FastevmError, ValueError):
    """The data do not match the ABI types."""

class AbiTypeError(FastevmError, ValueError):
    """The contract ABI has no such type, or the type is too large or too deep."""

@final
class AbiType:
    """A compiled ABI type.

    ``text``: the name as in signatures, or ``tuple``. For a tuple, ``members`` are pairs of a name
    and an `AbiType`, and ``make`` creates the decoded tuple from its values.
    """

    name: str
    head: int
    is_dynamic: bool
    def __init__(
        self,
        text: str,
        members: list[tuple[str, AbiType]] | None = None,
        make: Callable[[tuple[Any, ...]], Any] | None = None,
    ) -> None: ...

def encode_values(
    types: AbiType, values: Sequence[Any] | Mapping[str, Any], prefix: bytes = b""
) -> bytes: ...
def decode_values(types: AbiType, data: BytesLike, start: int = 0) -> tuple[Any, ...]: ...
def decode_column(kind: AbiType, words: Iterable[bytes]) -> list[Any]: ...
