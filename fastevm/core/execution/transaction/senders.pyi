"""Recovers the senders of many transactions on several threads."""

from collections.abc import Iterable

from fastevm.core.execution.transaction.transaction import Transaction

def recover_senders(transactions: Iterable[Transaction], *, threads: int | None = None) -> None: ...
