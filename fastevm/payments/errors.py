"""What the payments package raises. No message of these ever holds a signature or a key."""

from typing import Any

from fastevm.errors import FastevmError


class PaymentError(FastevmError):
    """Base of everything that payments raise on purpose."""


class InvalidTerms(PaymentError, ValueError):
    """Terms, a domain or a signature whose shape no token could accept; names the field."""


class SignatureRefused(PaymentError):
    """A signature that does not bind the payer to these terms; ``reason`` says why."""

    def __init__(self, reason: Any, detail: str) -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason
        self.detail = detail


class IllegalTransition(PaymentError):
    """A trigger that the order's state does not allow; nothing was changed."""

    def __init__(self, state: Any, trigger: Any, allowed: tuple[Any, ...] = ()) -> None:
        names = ", ".join(one.value for one in allowed) or "nothing"
        super().__init__(
            f"an authorization that is {state.value} cannot be {trigger.value}; possible: {names}"
        )
        self.state = state
        self.trigger = trigger
        self.allowed = allowed


class CaptureRefused(PaymentError):
    """Nothing was sent: the pre-flight found a failing check; ``report`` has all of them."""

    def __init__(self, report: Any) -> None:
        super().__init__(f"order {report.order_id}: {report.summary}")
        self.report = report


class MovementRefused(PaymentError):
    """A refund or sweep that the token would refuse now; ``reason`` says why. Nothing was sent."""

    def __init__(self, reason: Any, detail: str) -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason
        self.detail = detail


class UnknownOrder(PaymentError, KeyError):
    """No order has this id."""

    def __str__(self) -> str:
        return str(self.args[0])


class DuplicateOrder(PaymentError):
    """The order id is taken by other terms, or payer and nonce belong to another order."""


class StaleOrder(PaymentError):
    """Somebody else changed the order meanwhile: read it again."""


class StoreError(PaymentError):
    """The store cannot be opened or has another layout than this version knows."""


class StoreUnavailable(StoreError):
    """The store cannot be reached or is busy. Whether it did what was asked for is unknown."""


class UnreadableRow(StoreError):
    """A row of the store that this version cannot read; it is left alone."""


class SignerUnavailable(PaymentError):
    """Whoever holds the key did not sign: nothing was sent, and trying again may help."""


class WrongChain(PaymentError):
    """The node is on another chain than the merchant's token."""


class NodeBehind(PaymentError):
    """The node does not know blocks that were there before; another one may, or it later."""


class LimitReached(PaymentError):
    """A limit of the merchant's policy forbids it; nothing was changed."""


class VaultError(PaymentError):
    """No usable key, or a sealed value that no key of the ring opens for this place."""


class NodeUnreachable(PaymentError):
    """The node gave no answer in time, or none that is JSON-RPC. Whether it acted is unknown."""


class NodeRefusal(PaymentError):
    """The node answered with an error: ``code``, ``message`` and ``data`` (revert bytes or None).

    The text holds the method and the code only, since a node may repeat what it was sent.
    """

    def __init__(self, method: str, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{method}: the node refused with code {code}")
        self.method = method
        self.code = code
        self.message = message
        self.data = data


class ReorganisedMeanwhile(PaymentError):
    """The canonical chain moved while it was read, several times in a row: try again."""
