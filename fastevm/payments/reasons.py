"""Named reasons why an authorization cannot be captured, independent of the token's texts."""

from enum import Enum
from typing import Final

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError
from eth_utils.crypto import keccak

ERROR_STRING: Final = bytes.fromhex("08c379a0")
PANIC: Final = bytes.fromhex("4e487b71")
LONGEST_TEXT: Final = 200  # characters kept of a token's revert text


class Reason(Enum):
    """A named reason. A ``transient`` reason may disappear by itself or by the payer's action."""

    PAUSED = "paused"
    BLOCKED = "blocked"
    NOT_PAYEE = "caller_is_not_payee"
    NOT_YET_VALID = "not_yet_valid"
    EXPIRED = "expired"
    NONCE_CONSUMED = "nonce_used_or_cancelled"
    NONCE_SPENT_ELSEWHERE = "nonce_spent_on_another_payment"
    SIGNATURE_LENGTH = "signature_length"
    SIGNATURE_S = "signature_high_s"
    SIGNATURE_V = "signature_v"
    SIGNATURE_SIGNER = "signature_of_another_signer"
    WRONG_TYPE = "signature_of_another_type"
    WRONG_DOMAIN = "domain_is_not_the_tokens"
    BALANCE = "insufficient_balance"
    BALANCE_LATER = "insufficient_balance_after_other_authorizations"
    ZERO_ADDRESS = "zero_address"
    NO_TOKEN = "no_token_at_this_address"
    GAS_FUNDS = "insufficient_funds_for_gas"
    OUT_OF_GAS = "out_of_gas"
    SIGNER_UNAVAILABLE = "signer_unavailable"
    NO_COLLECTOR = "no_permit_collector"
    NO_ESCROW = "no_escrow"
    NO_MULTICALL = "no_multicall"
    PERMIT_EARLY = "permit_nonce_not_reached"
    PERMIT_TAKEN = "permit_nonce_of_another_order"
    UNDERPAID = "underpaid"
    OVERPAID = "overpaid"
    PAID_LATE = "paid_after_expiry"
    NOT_PAID = "payment_removed_by_a_reorganisation"
    UNKNOWN = "unknown"

    @property
    def transient(self) -> bool:
        """Whether a later capture of this authorization may succeed."""
        return self in _TRANSIENT

    @property
    def final(self) -> bool:
        """Whether no capture of this authorization can ever succeed, so the order fails."""
        return self in _FINAL


_TRANSIENT: Final = frozenset(
    (
        Reason.PAUSED,
        Reason.BLOCKED,
        Reason.NOT_YET_VALID,
        Reason.BALANCE,
        Reason.BALANCE_LATER,
        Reason.GAS_FUNDS,
        Reason.OUT_OF_GAS,
        Reason.SIGNER_UNAVAILABLE,
        Reason.NO_COLLECTOR,
        Reason.NO_ESCROW,
        Reason.NO_MULTICALL,
        Reason.PERMIT_EARLY,
        Reason.UNKNOWN,
    )
)
# Reasons about the amounts of transfers with memos, not about a capture.
AMOUNT_REASONS: Final = (Reason.UNDERPAID, Reason.OVERPAID, Reason.PAID_LATE)
_FINAL: Final = frozenset(
    (
        Reason.NONCE_SPENT_ELSEWHERE,
        Reason.SIGNATURE_LENGTH,
        Reason.SIGNATURE_S,
        Reason.SIGNATURE_V,
        Reason.SIGNATURE_SIGNER,
        Reason.WRONG_TYPE,
        Reason.WRONG_DOMAIN,
        Reason.ZERO_ADDRESS,
    )
)

# The exact revert strings of USDC, and the shorter strings of the libraries that USDC uses.
REVERT_STRINGS: Final[dict[str, Reason]] = {
    "Pausable: paused": Reason.PAUSED,
    "Blacklistable: account is blacklisted": Reason.BLOCKED,
    "FiatTokenV2_2: Account is blacklisted": Reason.BLOCKED,
    "FiatTokenV2: caller must be the payee": Reason.NOT_PAYEE,
    "FiatTokenV2: authorization is not yet valid": Reason.NOT_YET_VALID,
    "FiatTokenV2: authorization is expired": Reason.EXPIRED,
    "FiatTokenV2: authorization is used or canceled": Reason.NONCE_CONSUMED,
    "ECRecover: invalid signature length": Reason.SIGNATURE_LENGTH,
    "ECRecover: invalid signature 's' value": Reason.SIGNATURE_S,
    "ECRecover: invalid signature 'v' value": Reason.SIGNATURE_V,
    "ECRecover: invalid signature": Reason.SIGNATURE_SIGNER,
    "FiatTokenV2: invalid signature": Reason.SIGNATURE_SIGNER,
    "ERC20: transfer amount exceeds balance": Reason.BALANCE,
    "ERC20: transfer from the zero address": Reason.ZERO_ADDRESS,
    "ERC20: transfer to the zero address": Reason.ZERO_ADDRESS,
}

# Selectors of custom errors, for tokens that revert without text.
REVERT_SELECTORS: Final[dict[bytes, Reason]] = {
    bytes.fromhex("f9df5ac9"): Reason.PAUSED,
    bytes.fromhex("fd8c4245"): Reason.PAUSED,  # ContractPaused(uint8)
    bytes.fromhex("db42144d"): Reason.BALANCE,
    bytes.fromhex("bd2a913c"): Reason.EXPIRED,
    bytes.fromhex("7ba5ffb5"): Reason.SIGNATURE_SIGNER,
    bytes.fromhex("a43fec12"): Reason.BLOCKED,  # PolicyForbids(bytes32,uint64)
    bytes.fromhex("9cfea583"): Reason.ZERO_ADDRESS,  # InvalidReceiver(address)
    bytes.fromhex("d9309fb9"): Reason.NONCE_CONSUMED,  # PermitUsed() of the collector
    bytes.fromhex("f77e91ce"): Reason.NONCE_CONSUMED,  # AlreadyCaptured(bytes32)
    bytes.fromhex("7c214f04"): Reason.NOT_PAYEE,  # NotOperator()
}
POLICY_FORBIDS: Final = bytes.fromhex("a43fec12")
# The policies that a B20 token checks in a transfer, by the keccak of their scope names.
POLICY_SCOPES: Final = {
    keccak(text=f"TRANSFER_{name}_POLICY"): words
    for name, words in (
        ("SENDER", "the payer to send"),
        ("RECEIVER", "the recipient to receive"),
        ("EXECUTOR", "the caller to move tokens"),
    )
}


def decode_revert(data: bytes) -> tuple[Reason, str]:
    """Returns the reason of revert bytes and the token's text or error selector."""
    text = revert_text(data)
    if text is not None:
        return REVERT_STRINGS.get(text, Reason.UNKNOWN), text
    if data[:4] == PANIC and len(data) >= 36:
        return Reason.UNKNOWN, f"panic 0x{int.from_bytes(data[4:36], 'big'):02x}"
    if data[:4] == POLICY_FORBIDS and len(data) >= 68:
        policy = int.from_bytes(data[36:68], "big")
        allowed = POLICY_SCOPES.get(data[4:36], "this transfer")
        return Reason.BLOCKED, f"the token's policy {policy} forbids {allowed}"
    if len(data) >= 4:
        reason = REVERT_SELECTORS.get(data[:4], Reason.UNKNOWN)
        return reason, f"custom error 0x{data[:4].hex()}"
    return Reason.UNKNOWN, "reverted without a reason"


def revert_text(data: bytes) -> str | None:
    """Returns the printable part of an ``Error(string)``, shortened. None for other revert data.

    Decodes leniently: Solidity up to 0.6, which USDC uses, leaves arbitrary bytes after the text.
    """
    if data[:4] != ERROR_STRING:
        return None
    try:
        (text,) = decode(["string"], data[4:], strict=False)
    except (DecodingError, UnicodeDecodeError):
        return None
    return "".join(char for char in text[:LONGEST_TEXT] if char.isprintable())
