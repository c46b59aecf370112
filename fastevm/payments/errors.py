"""Exceptions of the payments package. Their messages never contain a signature or a key."""

from typing import Any, Final

from fastevm.errors import FastevmError


class PaymentError(FastevmError):
    """Base class of the exceptions of the payments package."""


class InvalidTerms(PaymentError, ValueError):
    """An argument is invalid: terms, a domain, a signature, an address. The text says which."""


class SignatureRefused(PaymentError):
    """The signature does not bind the payer to these terms; ``reason`` says why."""

    def __init__(self, reason: Any, detail: str) -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason
        self.detail = detail


# What a caller can do with an order in a state that allows no action.
_HINTS: Final = {
    "captured": "wait until it is paid, then refund it",
    "paid": "a paid order can only be refunded",
    "capturing": "wait for its transaction",
    "authorizing": "wait for its transaction",
    "cancelling": "wait for its transaction",
    "held": "capture, void or refund its hold",
    "released": "its money was given back: draft a new order",
    "cancelled": "it has ended: draft a new order",
    "expired": "it has ended: draft a new order",
    "failed": "it can never be captured: draft a new order",
}


class IllegalTransition(PaymentError):
    """The order's state does not allow the trigger. Nothing was changed."""

    def __init__(self, state: Any, trigger: Any, allowed: tuple[Any, ...] = ()) -> None:
        names = ", ".join(option.value for option in allowed) or "nothing"
        hint = _HINTS.get(state.value, f"it allows: {names}")
        if trigger.value == "refund":
            hint = "only a paid order can be refunded"
        super().__init__(f"state {state.value} does not allow {trigger.value}; {hint}")
        self.state = state
        self.trigger = trigger
        self.allowed = allowed


class CaptureRefused(PaymentError):
    """The preflight found a failing check, so nothing was sent. ``report`` holds all checks."""

    def __init__(self, report: Any) -> None:
        super().__init__(f"order {report.order_id}: {report.summary}")
        self.report = report


class MovementRefused(PaymentError):
    """The token or escrow would reject the call of the movement now, so nothing was sent.

    A movement is a refund, a sweep or an operation on a hold. See ``reason``.
    """

    def __init__(self, reason: Any, detail: str) -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason
        self.detail = detail


class UnknownOrder(PaymentError, KeyError):
    """No order has this id."""

    def __str__(self) -> str:
        return str(self.args[0])


class DuplicateOrder(PaymentError):
    """The order id exists with different terms, or another order has this payer and nonce."""


class ExpiredOrder(DuplicateOrder):
    """An order with these terms exists, and its window ended before the order was paid."""


def _spelled(message: str, money: Any) -> str:
    """Formats the amounts in a message with a `tokens.Money`. Without it, amounts stay in units."""
    return message if money is None else str(money.spelled(message))


class AlreadyRefunded(PaymentError):
    """The order already has a refund, and the call has no ``refund_id``.

    ``movement`` is the newest refund. ``money``, here and in the classes below, formats the amounts
    in the text.
    """

    def __init__(self, movement: Any, money: Any = None) -> None:
        super().__init__(
            _spelled(
                f"order {movement.order_id}: already refunded {movement.amount:,} units as"
                f" {movement.key!r} ({movement.state.value}); another refund needs a refund_id",
                money,
            )
        )
        self.movement = movement


class StaleOrder(PaymentError):
    """The order was changed by another caller or process after it was read. Read it again."""


class StoreError(PaymentError):
    """The store cannot be opened or used, or this version does not know its schema version."""


class StoreUnavailable(StoreError):
    """The store is unreachable or busy. It is unknown whether the operation took effect."""


class UnreadableRow(StoreError):
    """This version cannot read a row of the store. The row is left unchanged."""


class SignerUnavailable(PaymentError):
    """The key service did not sign. Nothing was sent; a retry may help."""


class WrongChain(PaymentError):
    """The node's chain id is not the chain id of the merchant's token."""


class OtherChain(WrongChain):
    """The node's chain has the chain id of the store but a different genesis block.

    Development chains begin anew when they are restarted. Nothing was changed.
    """


class NodeBehind(PaymentError):
    """The node lacks blocks that this or another node had before. A retry may help."""


class LimitReached(PaymentError):
    """The operation would exceed a limit. Nothing was changed.

    ``limit`` names the exposure limit of the policy. It is empty for other limits.
    """

    def __init__(self, text: str, limit: str = "") -> None:
        super().__init__(text)
        self.limit = limit


class NotRefundable(LimitReached):
    """The refund exceeds the refundable amount, or nothing is refundable.

    ``left`` is the refundable amount in token units. ``asked`` is the requested amount, None if the
    whole refundable amount was requested.
    """

    def __init__(self, left: int, asked: int | None, money: Any = None) -> None:
        more = "" if asked is None else f", not {asked:,} units"
        found = f"{left:,} units" if left else "nothing"
        super().__init__(_spelled(f"{found} can be refunded{more}", money))
        self.left, self.asked = left, asked


class OtherTerms(LimitReached):
    """The key already belongs to the movement ``known``, whose terms differ from ``asked``."""

    def __init__(self, known: Any, asked: Any, money: Any = None) -> None:
        of = f" of order {known.order_id}" if known.order_id != asked.order_id else ""
        super().__init__(
            _spelled(
                f"{known.key!r} is a {known.kind.value}{of}: {known.amount:,} units to"
                f" {known.recipient}, not {asked.amount:,} units to {asked.recipient}: use"
                " another id",
                money,
            )
        )
        self.known, self.asked = known, asked


class VaultError(PaymentError):
    """The ring has no usable key, or no key of the ring decrypts the value in this context."""


class NodeUnreachable(PaymentError):
    """The node gave no valid JSON-RPC answer in time. The node may have acted on the request."""


class NodeRefusal(PaymentError):
    """The node answered with an error: ``code``, ``message`` and ``data`` (revert bytes or None).

    ``str()`` has the method and the code only, because a node's message may repeat the request.
    """

    def __init__(self, method: str, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{method}: the node answered with error code {code}")
        self.method = method
        self.code = code
        self.message = message
        self.data = data


class ReorganisedMeanwhile(PaymentError):
    """The canonical chain changed repeatedly while it was read. Try again."""
