"""Formats the messages of refused simulations from a code and its numbers."""

from fastevm.errors import InvalidTransaction

def supplied(error: InvalidTransaction, gas: int) -> InvalidTransaction: ...
