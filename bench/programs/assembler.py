"""An assembler for EVM code: opcodes, pushes, labels, and data after the code."""

from __future__ import annotations

from fastevm.core.spec.opcodes import BY_MNEMONIC

WORD = 1 << 256
LABEL_BYTES = 2


def push(number: int, *, width: int | None = None) -> bytes:
    """Returns PUSH1 to PUSH32 of a number, with ``width`` or the fewest bytes.

    Zero becomes PUSH1 0.
    """
    width = width or max(1, (number.bit_length() + 7) // 8)
    return bytes([0x5F + width]) + number.to_bytes(width, "big")


class Assembly:
    """Code under construction. Labels and data may be referenced before their offset is known."""

    def __init__(self) -> None:
        self._code = bytearray()
        self._references: list[tuple[int, str]] = []
        self._offsets: dict[str, int] = {}
        self._data: list[tuple[str, bytes]] = []
        self._names = 0

    @property
    def size(self) -> int:
        """The number of bytes so far, without the data."""
        return len(self._code)

    def op(self, *mnemonics: str) -> None:
        """Appends opcodes without immediates."""
        for mnemonic in mnemonics:
            self._code.append(BY_MNEMONIC[mnemonic].value)

    def raw(self, code: bytes) -> None:
        """Appends bytes unchanged."""
        self._code += code

    def push(self, value: int, *, width: int | None = None) -> None:
        """Appends PUSH1 to PUSH32 of the value modulo 2**256, with `width` or the fewest bytes."""
        self._code += push(value % WORD, width=width)

    def label(self) -> str:
        """Returns a new label."""
        self._names += 1
        return f"L{self._names}"

    def land(self, label: str) -> None:
        """Appends a JUMPDEST and sets the label to the offset of the JUMPDEST."""
        self._offsets[label] = len(self._code)
        self.op("JUMPDEST")

    def push_label(self, label: str) -> None:
        """Appends PUSH2 of the label's offset."""
        self._code.append(0x5F + LABEL_BYTES)
        self._references.append((len(self._code), label))
        self._code += bytes(LABEL_BYTES)

    def data(self, content: bytes) -> str:
        """Puts bytes after the code and returns a label for the offset of the bytes."""
        label = self.label()
        self._data.append((label, content))
        return label

    def assemble(self) -> bytes:
        """Returns the code with its data. All references are resolved."""
        code = bytearray(self._code)
        offsets = dict(self._offsets)
        for label, content in self._data:
            offsets[label] = len(code)
            code += content
        for at, label in self._references:
            code[at : at + LABEL_BYTES] = offsets[label].to_bytes(LABEL_BYTES, "big")
        return bytes(code)


def assemble(source: str) -> bytes:
    """Assembles a source text.

    The words are mnemonics, numbers to push (0x or decimal), and labels.

    ``name:`` writes a JUMPDEST and ``@name`` pushes its offset. ``;`` begins a comment.
    """
    code = Assembly()
    for line in source.splitlines():
        for word in line.partition(";")[0].split():
            if word.endswith(":"):
                code.land(word[:-1])
            elif word.startswith("@"):
                code.push_label(word[1:])
            elif word[0].isdigit():
                code.push(int(word, 0))
            else:
                code.op(word)
    return code.assemble()
