# Types of rlp.pyx.
from collections.abc import Sequence
from typing import TypeAlias

# Types that can be encoded, and types that decoding returns.
RlpValue: TypeAlias = bytes | bytearray | memoryview | int | Sequence["RlpValue"]
RlpDecoded: TypeAlias = bytes | list["RlpDecoded"]

MAX_DEPTH: int

class RlpError(ValueError):
    offset: int | None
    def __init__(self, message: str, offset: int | None = None) -> None: ...

def encode(value: RlpValue) -> bytes: ...
def decode(data: bytes | bytearray | memoryview) -> RlpDecoded: ...
def decode_int(data: bytes) -> int: ...
