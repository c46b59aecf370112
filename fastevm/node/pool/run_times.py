"""How long transactions take to execute, learned per gas from senders and from the called codes.

Gas prices time badly: a call of BLAKE2F takes fifty times as long per gas as a loop. The builder
has a deadline in every slice, so it includes short transactions before slow ones, and executes
those that may take most of a slice in a thread of their own (`node/production/long_run.py`).
"""

from collections import OrderedDict
from typing import Final

from fastevm.core.execution.transaction.transaction import Transaction

SLOW_SECONDS: Final = 0.005  # a slice includes slower transactions after all others
LONG_SECONDS: Final = 0.04  # a transaction that takes longer does not run between others
UNKNOWN_RATE: Final = 20e-9  # seconds per gas of unknown code: the slowest precompile takes as much
LEARN_GAS: Final = round(SLOW_SECONDS / UNKNOWN_RATE)  # a lower gas limit is never slow
MAX_RATES: Final = 8_192  # senders, and codes, that are remembered
FORGETTING: Final = 0.2  # weight of a faster execution; a slower one counts immediately


class RunTimes:
    """Seconds per gas of senders and codes. Callers hold the lock of the pool."""

    def __init__(self) -> None:
        self._senders: OrderedDict[bytes, float] = OrderedDict()
        self._codes: OrderedDict[bytes, float] = OrderedDict()

    def expected(self, transaction: Transaction, sender: bytes) -> float:
        """Returns the seconds that a transaction may take with all its gas."""
        gas: int = transaction.gas_limit
        if gas < LEARN_GAS:
            return gas * UNKNOWN_RATE
        code = UNKNOWN_RATE
        if transaction.to is not None:
            code = self._codes.get(transaction.to, UNKNOWN_RATE)
        return gas * max(code, self._senders.get(sender, 0.0))

    def expected_of_sender(self, transaction: Transaction, sender: bytes) -> float:
        """Returns the same by what the sender's own transactions took; 0 if none is known."""
        return float(transaction.gas_limit * self._senders.get(sender, 0.0))

    def learn(
        self, transaction: Transaction, sender: bytes, seconds: float, gas: int | None
    ) -> None:
        """Counts an execution of ``seconds``, which used ``gas``; None if it was stopped."""
        if transaction.gas_limit < LEARN_GAS:
            return
        stopped_rate = max(seconds / transaction.gas_limit, UNKNOWN_RATE)
        rate = stopped_rate if gas is None else seconds / gas
        _learn(self._senders, sender, rate)
        if transaction.to is not None:
            _learn(self._codes, transaction.to, rate)


def _learn(rates: OrderedDict[bytes, float], key: bytes, rate: float) -> None:
    known = rates.pop(key, rate)
    rates[key] = max(rate, known + FORGETTING * (rate - known))
    if len(rates) > MAX_RATES:
        rates.popitem(last=False)
