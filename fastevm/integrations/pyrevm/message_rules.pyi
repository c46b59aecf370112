"""The checks and charges that pyrevm applies to a message before its execution."""

from fastevm.core.spec.schedule import ForkSchedule

class SentMessage:
    """A message with its charges. ``before``: the intrinsic gas, charged before the execution."""

    caller: str
    to: str | None
    data: bytes
    value: int
    gas_price: int
    gas_limit: int
    before: int

class Rules:
    """The rules of a fork. ``limit`` replaces the fork's code size limit in bytes."""

    schedule: ForkSchedule
    shown_name: str
    refund_quotient: int

    def __init__(self, name: str, limit: int | None) -> None: ...

def rules_of(name: str, limit: int | None) -> Rules: ...
