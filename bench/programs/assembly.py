"""A small assembler for the programs of this directory: mnemonics, numbers, labels."""

from __future__ import annotations

from fastevm.spec.opcodes import OPCODES

VALUES = {op.mnemonic: op.value for op in OPCODES}
LABEL_SIZE = 2  # bytes of a pushed label


def push(number: int) -> bytes:
    """The shortest PUSH of a number."""
    size = max(1, (number.bit_length() + 7) // 8)
    return bytes([VALUES["PUSH1"] - 1 + size]) + number.to_bytes(size, "big")


def assemble(source: str) -> bytes:
    """Code of a text of words: a mnemonic, a number to push (0x or decimal), ``name:`` for a
    JUMPDEST and ``@name`` for its offset. ``;`` begins a comment."""
    words = [word for line in source.splitlines() for word in line.partition(";")[0].split()]
    pieces: list[bytes | str] = []
    for word in words:
        if word.endswith(":"):
            pieces += [word, bytes([VALUES["JUMPDEST"]])]
        elif word.startswith("@"):
            pieces.append(word)
        elif word[0].isdigit():
            pieces.append(push(int(word, 0)))
        else:
            pieces.append(bytes([VALUES[word]]))
    return link(pieces)


def link(pieces: list[bytes | str]) -> bytes:
    """Put the labels' offsets in."""
    at = 0
    places = {}
    for piece in pieces:
        if isinstance(piece, bytes):
            at += len(piece)
        elif piece.endswith(":"):
            places[piece[:-1]] = at
        else:
            at += 1 + LABEL_SIZE
    opcode = bytes([VALUES["PUSH1"] - 1 + LABEL_SIZE])
    return b"".join(
        piece if isinstance(piece, bytes)
        else b"" if piece.endswith(":")
        else opcode + places[piece[1:]].to_bytes(LABEL_SIZE, "big")
        for piece in pieces
    )  # fmt: skip
