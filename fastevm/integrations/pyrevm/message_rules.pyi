"""What pyrevm asks of a message before it runs, and what it charges for."""

from fastevm.core.spec.schedule import ForkSchedule

class SentMessage:
    """A message as it was sent. ``before``: the gas that a transaction pays before it runs."""

    caller: str
    to: str | None
    data: bytes
    value: int
    gas_price: int
    gas_limit: int
    before: int

class Rules:
    """The rules of a fork, ``limit`` on the size of code in place of its own."""

    schedule: ForkSchedule
    shown_name: str
    refund_quotient: int

    def __init__(self, name: str, limit: int | None) -> None: ...

def rules_of(name: str, limit: int | None) -> Rules: ...
