"""Logs used for reconciliation, and how they are grouped within one transaction.

Transfers decide what was paid. The other events say which authorization, order or payout a transfer
belongs to. :func:`entries` finds the transfer of such an event by the position and arguments of the
event.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak
from msgspec import Struct, field


class Event(Enum):
    """The events that are read; the value is the event's signature."""

    TRANSFER = "Transfer(address,address,uint256)"
    USED = "AuthorizationUsed(address,bytes32)"
    CANCELED = "AuthorizationCanceled(address,bytes32)"
    MEMO = "Memo(address,bytes32)"
    PAYMENT_CAPTURED = "PaymentCaptured(bytes32,address,uint256,uint256)"
    PAYOUT_SENT = "PayoutSent(bytes32,address,address,uint256)"

    @property
    def topic(self) -> str:
        """Topic 0, as hex."""
        return _TOPICS[self]


_TOPICS: Final = {event: "0x" + keccak(text=event.value).hex() for event in Event}
_EVENTS: Final = {topic: event for event, topic in _TOPICS.items()}
# Number of indexed arguments, and argument names, indexed arguments first.
_ARGUMENTS: Final[dict[Event, tuple[int, tuple[str, ...]]]] = {
    Event.TRANSFER: (2, ("sender", "recipient", "amount")),
    Event.USED: (2, ("authorizer", "nonce")),
    Event.CANCELED: (2, ("authorizer", "nonce")),
    Event.MEMO: (2, ("caller", "memo")),
    Event.PAYMENT_CAPTURED: (2, ("reference", "payer", "amount", "maximum")),
    Event.PAYOUT_SENT: (3, ("reference", "sender", "recipient", "amount")),
}

Value = str | int


class LogKey(NamedTuple):
    """Identifies a log uniquely; used to process each log exactly once."""

    block_hash: str
    transaction_hash: str
    log_index: int


class Checkpoint(NamedTuple):
    """A block up to which logs have been read."""

    number: int
    block_hash: str


class ChainLog(Struct, frozen=True, kw_only=True):
    """A decoded log. Addresses are checksummed, 32-byte values are 0x-hex.

    ``timestamp`` is the timestamp of the log's block in seconds, None if it is not known.
    """

    key: LogKey
    block_number: int
    address: str
    event: Event
    arguments: Mapping[str, Value] = field(default_factory=dict)
    removed: bool = False
    timestamp: int | None = None

    def number(self, name: str) -> int:
        """Returns a numeric argument."""
        return int(self.arguments[name])

    def text(self, name: str) -> str:
        """Returns an argument that is an address or 32 bytes."""
        return str(self.arguments[name])


class Entry(Struct, frozen=True, kw_only=True):
    """A transfer, and its purpose according to the logs before and after it.

    ``authorization`` is (payer, nonce) of the captured authorization. ``memo``, ``order`` and
    ``payout`` are 32-byte references as 0x-hex.
    """

    transfer: ChainLog
    authorization: tuple[str, str] | None = None
    memo: str | None = None
    order: str | None = None
    payout: str | None = None

    @property
    def amount(self) -> int:
        """The transferred amount in token units."""
        return self.transfer.number("amount")


def read_log(raw: Mapping[str, Any]) -> ChainLog | None:
    """Decodes a JSON-RPC log object.

    Returns None for other events, and if topics or data do not match the event's arguments.
    """
    topics = raw["topics"]
    event = _EVENTS.get(topics[0].lower()) if topics else None
    if event is None:
        return None
    indexed, names = _ARGUMENTS[event]
    if len(topics) != 1 + indexed:
        return None
    types = event.value[event.value.index("(") + 1 : -1].split(",")
    words = b"".join(bytes.fromhex(topic[2:]) for topic in topics[1:])
    time = raw.get("blockTimestamp")
    try:
        values = decode(types, words + bytes.fromhex(raw["data"][2:]))
        timestamp = int(time, 16) if isinstance(time, str) else None
    except (DecodingError, ValueError):
        return None
    return ChainLog(
        key=LogKey(raw["blockHash"], raw["transactionHash"], int(raw["logIndex"], 16)),
        block_number=int(raw["blockNumber"], 16),
        address=to_checksum_address(raw["address"]),
        event=event,
        arguments={
            name: _shown(kind, value)
            for name, kind, value in zip(names, types, values, strict=True)
        },
        removed=bool(raw.get("removed", False)),
        timestamp=timestamp,
    )


def _shown(kind: str, value: Any) -> Value:
    if kind == "address":
        return str(to_checksum_address(value))
    return int(value) if kind == "uint256" else "0x" + value.hex()


def entries(logs: Iterable[ChainLog], token: str, emitters: Collection[str] = ()) -> list[Entry]:
    """Returns the transfers of ``token`` in the logs of one transaction, with their purpose.

    AuthorizationUsed directly precedes its Transfer, and Memo directly follows it. PaymentCaptured
    follows a transfer with the same payer and amount. PayoutSent follows a transfer with the same
    sender, recipient and amount. PaymentCaptured and PayoutSent count only if one of ``emitters``
    emitted them.
    """
    ordered = sorted(logs, key=lambda chain_log: chain_log.key.log_index)
    found: list[Entry] = []
    for at, chain_log in enumerate(ordered):
        if chain_log.event is Event.TRANSFER and chain_log.address == token:
            before = ordered[at - 1] if at else None
            after = ordered[at + 1] if at + 1 < len(ordered) else None
            found.append(
                Entry(
                    transfer=chain_log,
                    authorization=_authorization(chain_log, before),
                    memo=_memo(chain_log, after),
                )
            )
    claimed = _claimed([chain_log for chain_log in ordered if chain_log.address in emitters], found)
    return [
        Entry(
            transfer=entry.transfer,
            authorization=entry.authorization,
            memo=entry.memo,
            order=claimed.get((at, Event.PAYMENT_CAPTURED)),
            payout=claimed.get((at, Event.PAYOUT_SENT)),
        )
        for at, entry in enumerate(found)
    ]


def _authorization(transfer: ChainLog, before: ChainLog | None) -> tuple[str, str] | None:
    used = (
        before is not None
        and before.event is Event.USED
        and before.address == transfer.address
        and before.key.log_index == transfer.key.log_index - 1
        and before.text("authorizer") == transfer.text("sender")
    )
    return (before.text("authorizer"), before.text("nonce")) if used and before else None


def _memo(transfer: ChainLog, after: ChainLog | None) -> str | None:
    follows = (
        after is not None
        and after.event is Event.MEMO
        and after.address == transfer.address
        and after.key.log_index == transfer.key.log_index + 1
    )
    return after.text("memo") if follows and after else None


def _claimed(ordered: Sequence[ChainLog], found: Sequence[Entry]) -> dict[tuple[int, Event], str]:
    """Returns which PaymentCaptured and PayoutSent logs belong to which transfers.

    The keys are (position in ``found``, event), the values the 32-byte references of the logs. Each
    log belongs to the nearest earlier transfer that matches and has no such log yet.
    """
    claimed: dict[tuple[int, Event], str] = {}
    for chain_log in ordered:
        if chain_log.event not in (Event.PAYMENT_CAPTURED, Event.PAYOUT_SENT):
            continue
        for at in reversed(range(len(found))):
            transfer = found[at].transfer
            earlier = transfer.key.log_index < chain_log.key.log_index
            if earlier and (at, chain_log.event) not in claimed and _names(chain_log, transfer):
                claimed[at, chain_log.event] = chain_log.text("reference")
                break
    return claimed


def _names(chain_log: ChainLog, transfer: ChainLog) -> bool:
    if chain_log.number("amount") != transfer.number("amount"):
        return False
    if chain_log.event is Event.PAYMENT_CAPTURED:
        return chain_log.text("payer") == transfer.text("sender")
    same_sender = chain_log.text("sender") == transfer.text("sender")
    return same_sender and chain_log.text("recipient") == transfer.text("recipient")
