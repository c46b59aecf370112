"""Reads bytes, addresses, hashes and slots that Python programs pass as arguments."""

from typing import TypeAlias

# Subclasses such as HexBytes are included; text is hex with a 0x prefix.
BytesLike: TypeAlias = bytes | bytearray | memoryview | str

def bytes_of(value: BytesLike, name: str = "data") -> bytes: ...
def address_of(value: BytesLike, name: str = "address") -> bytes: ...
def word_of(value: int | BytesLike, name: str = "slot") -> int: ...
