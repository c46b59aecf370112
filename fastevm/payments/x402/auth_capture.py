"""The x402 scheme ``auth-capture``: money is held in an escrow and captured later, in parts.

The facilitator's account is the operator (``captureAuthorizer``): only this account can capture,
void and refund. Captures go to the receiver in the signed terms, voids and refunds to the payer.
`fastevm.payments.x402.hold_routes` offers these operations over HTTP.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from fastevm.core.primitives.replace import replace
from fastevm.payments.authorization import Kind
from fastevm.payments.contracts import artifact
from fastevm.payments.erc6492 import unwrap
from fastevm.payments.errors import InvalidTerms
from fastevm.payments.escrow import V1_0, V1_1, ZERO, Deployment, PaymentInfo, authorize_data
from fastevm.payments.x402 import reasons
from fastevm.payments.x402.claims import (
    Call,
    Chain,
    Claim,
    authorization,
    check_domain,
    check_types,
    read_terms,
)
from fastevm.payments.x402.exact import DOMAIN, MARGIN
from fastevm.payments.x402.messages import (
    AUTH_CAPTURE,
    Json,
    Malformed,
    Payment,
    Requirements,
    as_bytes,
    as_number,
    as_text,
)
from fastevm.payments.x402.reasons import Refused

PREFIX: Final = "invalid_auth_capture_evm_"
CAPTURE_WITHIN: Final = "captureDeadlineSeconds"
REFUND_WITHIN: Final = "refundDeadlineSeconds"
DEADLINES: Final = {CAPTURE_WITHIN: "captureDeadline", REFUND_WITHIN: "refundDeadline"}
# Members of an offer's `extra`, by type.
TEXTS: Final = (
    *DOMAIN, "authCaptureEscrow", "captureAuthorizer", "captureMode", "feeRecipient",
    "operatorType", "paymentFlow", "policy", "receiverAuthorizer",
)  # fmt: skip
NUMBERS: Final = (*DEADLINES, *DEADLINES.values(), "minFeeBps", "maxFeeBps")
CLOCK_SKEW: Final = 30  # seconds by which the clocks of a server's processes may differ
FEE_ERRORS: Final = ("FeeAmountOutOfRange", "FeeBpsOutOfRange")

_SAME: Final = {
    reasons.NONCE_USED: "payment_already_collected",
    reasons.BALANCE: "insufficient_balance",
    reasons.SIGNATURE: "signature",
    reasons.VALID_BEFORE: "authorization_expired",
    reasons.VALID_AFTER: "authorization_not_yet_valid",
    reasons.MISSING_DOMAIN: "extra",
    reasons.NAME: "extra",
    reasons.VERSION: "extra",
}


class AuthCapture:
    """Checks ``auth-capture`` payments and collects them into an escrow.

    ``deployments`` are the supported escrows. The first is used for offers that name no escrow.
    """

    name = AUTH_CAPTURE

    def __init__(self, deployments: Sequence[Deployment] = (V1_1, V1_0)) -> None:
        self.deployments = {deployment.escrow: deployment for deployment in deployments}
        self.usual = deployments[0]

    def supported(self, chain: Chain) -> Json:
        """Returns the operator account for /supported."""
        return {"captureAuthorizer": chain.account}

    def deployment_of(self, extra: Any) -> Deployment:
        """Returns the escrow that an offer names. Raises Refused if it is not supported."""
        named = extra.get("authCaptureEscrow")
        found = self.usual if named is None else self.deployments.get(named)
        if found is None:
            raise refused("extra", "authCaptureEscrow is not supported")
        return found

    def read(self, chain: Chain, payment: Payment, offer: Requirements) -> Claim:
        """Parses the payload. Raises Malformed, or Refused if it does not match the offer."""
        check_types(offer, TEXTS, NUMBERS)
        token = chain.domain_of(offer.asset)
        try:
            check_domain(token, offer)
        except Refused as refusal:
            raise refused("extra", refusal.detail) from None
        _check_mode(chain, offer.extra)
        deployment = self.deployment_of(offer.extra)
        terms = read_terms(dict(payment.payload))
        signature = as_bytes(payment.payload, "signature")
        salt = int.from_bytes(as_bytes(payment.payload, "salt", 32), "big")
        info = _info(offer, terms.payer, terms.valid_before, salt)
        if terms.recipient != deployment.erc3009_collector:
            raise refused("token_collector_mismatch", f"signed for recipient {terms.recipient}")
        if terms.value != offer.amount:
            raise refused("amount_mismatch", f"asked for {offer.amount}, signed {terms.value}")
        if terms.valid_after != 0:
            raise refused("authorization_not_yet_valid", "validAfter must be 0")
        if terms.nonce != info.nonce(offer.chain_id, deployment.escrow):
            raise refused("nonce_mismatch", "the nonce is not the hash of these terms")
        made = authorization(token, terms, Kind.RECEIVE)
        return Claim(authorization=made, signature=signature, note=info.to_json())

    async def check(self, chain: Chain, claim: Claim) -> Call:
        """Returns the authorize call if it succeeds on the pending state. Raises Refused."""
        info = PaymentInfo.from_json(claim.note)
        terms, now = claim.authorization.terms, chain.now()
        if info.authorization_expiry <= now + MARGIN:
            raise refused("capture_deadline_expired")
        if terms.valid_before < now + MARGIN:
            raise refused("authorization_expired", f"less than {MARGIN} s left")
        wrapped = unwrap(claim.signature)
        if wrapped is not None and wrapped.factory not in chain.factories:
            raise refused("erc6492_factory_not_allowed", wrapped.factory)
        deployment = next(
            deployment
            for deployment in self.deployments.values()
            if deployment.erc3009_collector == terms.recipient
        )
        data = authorize_data(info, deployment.erc3009_collector, _normal(claim.signature))
        try:
            return await chain.collect([(deployment.escrow, data)])
        except Refused as refusal:
            raise _translated(refusal) from None


def _check_mode(chain: Chain, extra: Any) -> None:
    """Raises Refused unless the offer asks for deferred captures by this facilitator's account."""
    if extra.get("captureAuthorizer") != chain.account:
        raise refused("operator_not_admitted", "captureAuthorizer is not this facilitator")
    if extra.get("operatorType", "delegated") != "delegated":
        raise refused("unsupported_operator_type")
    if extra.get("paymentFlow", "escrow") != "escrow":
        raise refused("unsupported_payment_flow", "only the escrow flow is supported")
    if extra.get("captureMode", "sync") != "deferred":
        raise refused("missing_receiver_authorizer", "only captureMode deferred is supported")
    if extra.get("receiverAuthorizer", ZERO) != ZERO:
        raise refused("lifecycle_not_relayed", "receiverAuthorizer is not supported")
    if extra.get("policy") not in (None, ZERO):
        raise refused("policy", "policies are not supported")
    if extra.get("assetTransferMethod", "eip3009") != "eip3009":
        raise refused("unsupported_asset_transfer_method")


def _info(offer: Requirements, payer: str, valid_before: int, salt: int) -> PaymentInfo:
    extra = offer.extra
    try:
        capture, refund = as_number(extra, "captureDeadline"), as_number(extra, "refundDeadline")
        if refund < capture:
            raise refused("deadline_ordering", "refundDeadline is before captureDeadline")
        if valid_before > capture:
            raise refused("deadline_ordering", "validBefore is after captureDeadline")
        return PaymentInfo(
            operator=as_text(extra, "captureAuthorizer"),
            payer=payer,
            receiver=offer.pay_to,
            token=offer.asset,
            max_amount=offer.amount,
            pre_approval_expiry=valid_before,
            authorization_expiry=capture,
            refund_expiry=refund,
            min_fee_bps=as_number(extra, "minFeeBps"),
            max_fee_bps=as_number(extra, "maxFeeBps"),
            fee_receiver=as_text(extra, "feeRecipient"),
            salt=salt,
        )
    except (InvalidTerms, Malformed) as error:
        raise refused("extra", str(error)) from None


def _normal(signature: bytes) -> bytes:
    """Returns an ECDSA signature with v 27 or 28; any other signature unchanged."""
    if len(signature) == 65 and signature[64] < 2:
        return signature[:64] + bytes([signature[64] + 27])
    return signature


def refused(word: str, detail: str = "") -> Refused:
    """Returns an error with a reason of this scheme."""
    return Refused(PREFIX + word, detail)


def _translated(refusal: Refused) -> Refused:
    """Translates errors of the escrow and its token to reasons of this scheme."""
    found = re.fullmatch(r"custom error 0x([0-9a-f]{8})", refusal.detail)
    if found is None:
        return refused(_SAME.get(refusal.reason, "simulation_failed"), refusal.detail)
    decoded = artifact("AuthCaptureEscrow").error_name(bytes.fromhex(found[1]))
    if decoded in FEE_ERRORS:
        return refused("fee_bps_out_of_range")
    word = re.sub(r"(?<!^)(?=[A-Z])", "_", decoded or "").lower()
    return refused(word or "simulation_failed", refusal.detail)


# --- offers with deadlines relative to the request ------------------------------------------------


def dated(offer: Requirements, now: int) -> Requirements:
    """Returns an offer in which relative deadlines (seconds) are replaced by absolute times."""
    extra = dict(offer.extra)
    for within, deadline in DEADLINES.items():
        if within in extra:
            extra[deadline] = now + int(extra.pop(within))
    return replace(offer, extra=extra)


def dated_as(offer: Requirements, payment: Payment, now: int) -> Requirements:
    """Returns the offer with the deadlines that the payer accepted.

    The 402 stated absolute deadlines, at most ``max_timeout`` seconds ago. A deadline that such a
    402 cannot have stated is replaced by a deadline that counts from ``now``.
    """
    chosen = payment.accepted
    extra = dict(offer.extra)
    for within, deadline in DEADLINES.items():
        if within not in extra:
            continue
        latest = now + int(extra.pop(within))
        accepted = chosen.extra.get(deadline) if chosen is not None else None
        age = latest - accepted if isinstance(accepted, int) else None
        good = age is not None and -CLOCK_SKEW <= age <= offer.max_timeout + CLOCK_SKEW
        extra[deadline] = accepted if good else latest
    return replace(offer, extra=extra)
