"""Learns the execution time per gas of senders and called codes.

Gas is a poor measure of time: for the same gas, BLAKE2F runs fifty times as long as a loop. The
builder has a deadline in every slice, so it includes short transactions before slow ones. A
transaction that may take most of a slice runs in a separate thread (`node/production/long_run.py`).
"""

from collections import OrderedDict
from typing import Final

from fastevm.core.execution.transaction.transaction import Transaction

SLOW_SECONDS: Final = 0.005  # a slice includes slower transactions after all others
LONG_SECONDS: Final = 0.04  # a longer transaction does not run between other transactions
UNKNOWN_RATE: Final = 20e-9  # seconds per gas of unknown code: the rate of the slowest precompile
# transactions with a lower gas limit are never slow
LEARN_GAS: Final = round(SLOW_SECONDS / UNKNOWN_RATE)
MAX_RATES: Final = 8_192  # maximum number of senders, and of codes, whose rates are kept
# an execution that uses a smaller share of its gas limit counts as this share, because fixed costs
# distort its rate
MIN_USED_SHARE: Final = 1 / 8
# weight of an execution that is faster than the average; a slower one replaces the average
FORGETTING: Final = 0.2


class RunTimes:
    """Seconds per gas of senders and codes. Callers must hold the lock of the pool."""

    def __init__(self) -> None:
        self._senders: OrderedDict[bytes, float] = OrderedDict()
        self._codes: OrderedDict[bytes, float] = OrderedDict()
        # lowest refused gas limit, by sender
        self._refused: OrderedDict[bytes, int] = OrderedDict()

    def expected(self, transaction: Transaction, sender: bytes) -> float:
        """Returns the expected seconds of a transaction that uses all its gas."""
        gas: int = transaction.gas_limit
        if gas < LEARN_GAS:
            return gas * UNKNOWN_RATE
        if transaction.to is None:
            return gas * self._senders.get(sender, UNKNOWN_RATE)
        code = self._codes.get(transaction.to, UNKNOWN_RATE)
        return gas * max(code, self._senders.get(sender, 0.0))

    def refuse_from(self, sender: bytes, gas_limit: int) -> None:
        """Records that a transaction of the sender with this gas limit took too long."""
        known = self._refused.pop(sender, gas_limit)
        self._refused[sender] = min(known, gas_limit)
        if len(self._refused) > MAX_RATES:
            self._refused.popitem(last=False)

    def refused_from(self, sender: bytes) -> int | None:
        """Returns the sender's lowest gas limit that took too long, or None."""
        return self._refused.get(sender)

    def learn(
        self, transaction: Transaction, sender: bytes, seconds: float, gas: int | None
    ) -> None:
        """Records an execution time in seconds.

        ``gas``: the gas used, or None if it was stopped.
        """
        if transaction.gas_limit < LEARN_GAS:
            return
        stopped_rate = max(seconds / transaction.gas_limit, UNKNOWN_RATE)
        used = max(gas or 0, transaction.gas_limit * MIN_USED_SHARE)
        rate = stopped_rate if gas is None else seconds / used
        _learn(self._senders, sender, rate)
        if transaction.to is not None:
            _learn(self._codes, transaction.to, rate)


def _learn(rates: OrderedDict[bytes, float], key: bytes, rate: float) -> None:
    known = rates.pop(key, rate)
    rates[key] = max(rate, known + FORGETTING * (rate - known))
    if len(rates) > MAX_RATES:
        rates.popitem(last=False)
