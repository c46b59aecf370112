"""Counts how many times each opcode is executed."""

from fastevm.tracing.observer import Observer

class OpcodeCounter(Observer):
    """Counts the executed opcodes of one or more transactions, including failed ones."""

    def __init__(self) -> None: ...
    def counts(self) -> dict[str, int]:
        """Returns the number of executions by mnemonic.

        The name of an undefined opcode is its byte (``0x0c``).
        """
