"""Reasons of x402, spelled as published clients and dashboards expect them."""

from typing import Final

from fastevm.payments.errors import PaymentError
from fastevm.payments.reasons import Reason

INVALID_PAYLOAD: Final = "invalid_payload"
INVALID_REQUIREMENTS: Final = "invalid_payment_requirements"
UNSUPPORTED_SCHEME: Final = "unsupported_scheme"
INVALID_NETWORK: Final = "invalid_network"
VERIFY_ERROR: Final = "unexpected_verify_error"
SETTLE_ERROR: Final = "unexpected_settle_error"
PENDING: Final = "settlement_pending"
DUPLICATE: Final = "duplicate_settlement"  # settled before, for another request
FACTORY: Final = "eip6492_factory_not_allowed"

EXACT: Final = "invalid_exact_evm_"
MISSING_DOMAIN: Final = EXACT + "missing_eip712_domain"
NETWORK_MISMATCH: Final = EXACT + "network_mismatch"
RECIPIENT: Final = EXACT + "recipient_mismatch"
SIGNATURE: Final = EXACT + "signature"
NONCE_USED: Final = EXACT + "nonce_already_used"
BALANCE: Final = EXACT + "insufficient_balance"
NAME: Final = EXACT + "token_name_mismatch"
VERSION: Final = EXACT + "token_version_mismatch"
SIMULATION: Final = EXACT + "transaction_simulation_failed"
TRANSACTION: Final = EXACT + "transaction_failed"
VALUE: Final = EXACT + "payload_authorization_value_mismatch"
VALID_BEFORE: Final = EXACT + "payload_authorization_valid_before"
VALID_AFTER: Final = EXACT + "payload_authorization_valid_after"

# Reasons of a payment whose money may have moved; some facilitators spell the first one shorter.
SPENT: Final = (
    NONCE_USED, "nonce_already_used", "invalid_auth_capture_evm_payment_already_collected",
    DUPLICATE,
)  # fmt: skip

# Reasons of a payment whose window has ended. It may have been made before.
LATE: Final = (
    VALID_BEFORE, "invalid_auth_capture_evm_authorization_expired",
    "invalid_auth_capture_evm_capture_deadline_expired",
)  # fmt: skip

# Prefixes of reasons that a facilitator finds before it sends a transaction. A reason that contains
# a part of _AFTER is an exception: facilitators also return it if the result of a transaction is
# unknown.
_BEFORE: Final = ("eip6492_", "insufficient_", "invalid_", "missing_", "unsupported_")
_AFTER: Final = (
    "broadcast", "confirm", "execut", "pending", "receipt", "settle", "state", "timed_out",
    "timeout", "transaction_failed", "unexpected", "unknown",
)  # fmt: skip

# Reasons in the bodies of a paywall's answers with status 409 and 503.
NOT_PROVED: Final = "payer_not_proved"
OTHER_REQUEST: Final = "payment_of_another_request"
NOT_KEPT: Final = "answer_not_kept"
IN_PROGRESS: Final = "payment_in_progress"

_BY_CAUSE: Final[dict[Reason, str]] = {
    Reason.NONCE_CONSUMED: NONCE_USED,
    Reason.NONCE_SPENT_ELSEWHERE: NONCE_USED,
    Reason.BALANCE: BALANCE,
    Reason.EXPIRED: VALID_BEFORE,
    Reason.NOT_YET_VALID: VALID_AFTER,
    Reason.SIGNATURE_LENGTH: SIGNATURE,
    Reason.SIGNATURE_S: SIGNATURE,
    Reason.SIGNATURE_V: SIGNATURE,
    Reason.SIGNATURE_SIGNER: SIGNATURE,
    Reason.WRONG_TYPE: SIGNATURE,
}


class Refused(PaymentError):
    """The payment is invalid. ``reason`` is x402's identifier, ``detail`` a text for people."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.detail = reason, detail


class Unavailable(PaymentError):
    """The facilitator cannot answer now. The result is unknown, so the status is 503, never 402."""


def of_cause(cause: Reason, otherwise: str = SIMULATION) -> str:
    """Returns x402's reason for a token's revert reason."""
    return _BY_CAUSE.get(cause, otherwise)


def moved_nothing(reason: str, transaction: str) -> bool:
    """Whether a failed settlement certainly moved no money and never will.

    Only then may the payer sign again. This is not certain if the facilitator stopped waiting or
    names a transaction: somebody else may have submitted the payer's authorization.
    """
    if transaction or any(word in reason for word in _AFTER):
        return False
    return reason.startswith(_BEFORE)
