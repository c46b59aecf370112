"""Contains the pages' texts: a sentence for every state and every reason."""

from typing import Final, NamedTuple

from fastevm.payments import Actor, Progress, Purpose, Reason, State, Trigger


class Words(NamedTuple):
    """A state's label, meaning, and tone (wait, good, bad or idle)."""

    label: str
    sentence: str
    tone: str


STATES: Final[dict[State, Words]] = {
    State.DRAFTED: Words(
        "Not signed", "The terms are set. The buyer has not signed them yet.", "idle"
    ),
    State.SIGNED: Words("Signed", "The buyer has signed; the shop is storing it.", "wait"),
    State.STORED: Words(
        "Authorized",
        "Signed and stored. No money has moved and none is reserved.",
        "wait",
    ),
    State.CAPTURING: Words(
        "Capturing", "The capture is on its way into a block. This is not a payment yet.", "wait"
    ),
    State.CAPTURED: Words(
        "Captured", "The money has moved. A few more blocks make sure that it stays.", "wait"
    ),
    State.PAID: Words(
        "Paid", "The transfer is in the chain, as deep as the shop wants it to be.", "good"
    ),
    State.AUTHORIZING: Words(
        "Being held", "The buyer's money is on its way into the escrow.", "wait"
    ),
    State.HELD: Words(
        "Held", "The buyer's money waits in the escrow. The shop can collect it in parts.", "wait"
    ),
    State.RELEASED: Words(
        "Released", "The escrow gave all of the money back to the buyer.", "idle"
    ),
    State.CANCELLING: Words(
        "Cancelling", "The buyer's cancellation is on its way into a block.", "wait"
    ),
    State.CANCELLED: Words(
        "Cancelled", "The buyer took the authorization back. It can never be captured.", "idle"
    ),
    State.VOIDED: Words(
        "Voided", "The shop will not use the authorization. The token does not know that.", "idle"
    ),
    State.EXPIRED: Words("Expired", "The window closed before the money was collected.", "bad"),
    State.FAILED: Words("Failed", "This authorization can never be captured.", "bad"),
}

# States whose transaction is pre-confirmed in a slice of the open block.
PRE_CONFIRMED: Final[dict[State, Words]] = {
    State.CAPTURING: Words(
        "Pre-confirmed", "The capture is in the newest slice; its block is still open.", "wait"
    ),
    State.CANCELLING: Words(
        "Cancellation pre-confirmed", "It is in the newest slice; its block is still open.", "wait"
    ),
}

REASONS: Final[dict[Reason, str]] = {
    Reason.PAUSED: "the token is paused: nobody can move it at the moment",
    Reason.BLOCKED: "the token's issuer has blocked the buyer or the shop",
    Reason.NOT_PAYEE: "only the shop's own account may collect this payment",
    Reason.NOT_YET_VALID: "the window of the authorization has not begun",
    Reason.EXPIRED: "the window of the authorization has closed",
    Reason.NONCE_CONSUMED: "the authorization has been used or cancelled",
    Reason.NONCE_SPENT_ELSEWHERE: "its one-time nonce was used for another payment",
    Reason.SIGNATURE_LENGTH: "the signature has the wrong length",
    Reason.SIGNATURE_S: "the signature is in the form that tokens refuse (high s)",
    Reason.SIGNATURE_V: "the signature's recovery id is not 27 or 28",
    Reason.SIGNATURE_SIGNER: "somebody else signed, or other terms were signed",
    Reason.WRONG_TYPE: "another kind of message was signed",
    Reason.WRONG_DOMAIN: "it was signed for another token, or for another chain",
    Reason.BALANCE: "the buyer does not hold enough money",
    Reason.BALANCE_LATER: "the buyer's money does not cover all of their open orders",
    Reason.ZERO_ADDRESS: "payer or recipient is the zero address",
    Reason.NO_TOKEN: "there is no token at this address",
    Reason.GAS_FUNDS: "the shop's account cannot pay for the transaction",
    Reason.OUT_OF_GAS: "the transaction ran out of gas",
    Reason.SIGNER_UNAVAILABLE: "the shop's signer does not answer",
    Reason.NO_COLLECTOR: "the shop's permit collector is not deployed",
    Reason.NO_ESCROW: "the chain has no escrow that could hold the money",
    Reason.NO_MULTICALL: "the chain has no Multicall3 contract, which this wallet needs",
    Reason.PERMIT_EARLY: "an earlier permit of the buyer has to be used first",
    Reason.PERMIT_TAKEN: "another order has a permit with the same number",
    Reason.UNDERPAID: "the buyer has sent too little",
    Reason.OVERPAID: "the buyer has sent too much; the shop can refund the rest",
    Reason.PAID_LATE: "money came after the order had expired; the shop can refund it",
    Reason.NOT_PAID: "the chain was reorganised, and the payment is no longer on it",
    Reason.UNKNOWN: "the token gave an unknown reason",
}

# Preflight verdicts by name: title, and the text of a passed check.
CHECKS: Final[dict[str, tuple[str, str]]] = {
    "domain": ("Token", "the terms name this token on this chain"),
    "signature": ("Signature", "the buyer signed these terms"),
    "window_now": ("Window now", "the authorization is valid at this moment"),
    "window_at_capture": ("Window at capture", "it will be valid when the capture arrives"),
    "nonce": ("One-time nonce", "neither used nor cancelled"),
    "balance": ("Balance", "the buyer holds the amount"),
    "balance_after_others": ("Other orders", "the buyer's money covers all of their open orders"),
    "policy": ("Token's policy", "neither paused nor blocked: a simulated capture succeeds"),
    "gas": ("Gas", "the shop's account can pay for the transaction"),
}

PURPOSES: Final[dict[Purpose, str]] = {
    Purpose.CAPTURE: "Capture",
    Purpose.CANCEL: "Cancellation",
    Purpose.HOLD: "Hold in the escrow",
    Purpose.PART: "Capture of a part",
    Purpose.RELEASE: "Release of the held money",
    Purpose.REFUND: "Refund",
    Purpose.SWEEP: "Sweep",
    Purpose.FILL: "Filler (closes a gap in the account's nonces)",
}
PROGRESS: Final[dict[Progress, str]] = {
    Progress.RESERVED: "being signed",
    Progress.RECORDED: "recorded",
    Progress.REFUSED: "refused by the node",
    Progress.SENT: "sent",
    Progress.PRE_CONFIRMED: "pre-confirmed in a slice",
    Progress.SUCCEEDED: "in a block",
    Progress.REVERTED: "failed in a block",
    Progress.REPLACED: "replaced",
    Progress.LOST: "lost",
}
ACTORS: Final[dict[str, str]] = {
    Actor.MERCHANT.value: "Shop",
    Actor.PAYER.value: "Buyer",
    Actor.CHAIN.value: "Chain",
    Actor.CLOCK.value: "Clock",
}
TRIGGERS: Final[dict[Trigger, str]] = {
    Trigger.SIGN: "signed the authorization",
    Trigger.STORE: "stored the signature, encrypted",
    Trigger.SUBMIT_CAPTURE: "submitted the capture",
    Trigger.SEE_CAPTURE: "the capture is in a block",
    Trigger.REACH_DEPTH: "the payment is deep enough",
    Trigger.UNDO_CAPTURE: "a reorganisation removed the capture",
    Trigger.LOSE_CAPTURE: "the capture failed",
    Trigger.SUBMIT_CANCEL: "signed a cancellation, which the shop submitted",
    Trigger.SEE_CANCEL: "the cancellation is in a block",
    Trigger.UNDO_CANCEL: "a reorganisation removed the cancellation",
    Trigger.LOSE_CANCEL: "the cancellation failed",
    Trigger.LOSE_VOIDED_CANCEL: "the cancellation failed; the order stays voided",
    Trigger.SUBMIT_HOLD: "asked the escrow to hold the money",
    Trigger.SEE_HOLD: "the escrow holds the money",
    Trigger.UNDO_HOLD: "a reorganisation removed the hold",
    Trigger.LOSE_HOLD: "the hold failed",
    Trigger.SEE_RELEASE: "the escrow gave the money back",
    Trigger.UNDO_RELEASE: "a reorganisation removed the release",
    Trigger.UNDO_PARTS: "a reorganisation removed the last movement of the hold",
    Trigger.VOID: "voided the order and erased the signature",
    Trigger.EXPIRE: "the window closed",
    Trigger.FAIL: "the authorization can never be captured",
    Trigger.UNDO_FAILURE: "a reorganisation revived the authorization",
}
