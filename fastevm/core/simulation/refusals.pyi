"""The words for what a simulation is refused with."""

from fastevm.errors import InvalidTransaction

def supplied(error: InvalidTransaction, gas: int) -> InvalidTransaction: ...
