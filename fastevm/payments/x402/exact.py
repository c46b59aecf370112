"""The x402 scheme ``exact`` with EIP-3009: a TRANSFER authorization of the exact amount."""

from typing import Final

from fastevm.payments.authorization import Kind
from fastevm.payments.calls import call_data, capture_data
from fastevm.payments.erc6492 import through_multicall, unwrap
from fastevm.payments.signatures import ECDSA_LENGTH, Signature
from fastevm.payments.tokens import BYTES_OVERLOAD, Token
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
from fastevm.payments.x402.messages import EXACT, Json, Payment, Requirements, as_bytes
from fastevm.payments.x402.reasons import Refused

DOMAIN: Final = ("name", "version", "assetTransferMethod")  # members of extra that are text
MARGIN: Final = 6  # seconds; minimum remaining validity of an authorization


class Exact:
    """Checks and collects ``exact`` payments of tokens with EIP-3009."""

    name = EXACT

    def supported(self, chain: Chain) -> Json:
        """Returns an empty object: this scheme adds no members to the answer of ``/supported``."""
        return {}

    def read(self, chain: Chain, payment: Payment, offer: Requirements) -> Claim:
        """Parses the payload. Raises Malformed, or Refused if it does not match the offer."""
        check_types(offer, DOMAIN)
        if offer.extra.get("assetTransferMethod", "eip3009") != "eip3009":
            raise Refused("unsupported_payload_type", "only eip3009 is supported")
        token = chain.domain_of(offer.asset)
        check_domain(token, offer)
        terms = read_terms(dict(payment.payload))
        signature = as_bytes(payment.payload, "signature")
        if terms.recipient != offer.pay_to:
            raise Refused(reasons.RECIPIENT, f"signed for recipient {terms.recipient}")
        if terms.value != offer.amount:
            raise Refused(reasons.VALUE, f"asked for {offer.amount}, signed {terms.value}")
        made = authorization(token, terms, Kind.TRANSFER)
        return Claim(authorization=made, signature=signature)

    async def check(self, chain: Chain, claim: Claim) -> Call:
        """Returns the collecting call if it succeeds on the pending state. Raises Refused."""
        check_window(chain, claim)
        token: Token = chain.domain_of(claim.authorization.domain.token)
        wrapped = unwrap(claim.signature)
        if wrapped is None:
            return await chain.collect(_calls(token, claim, claim.signature))
        (code,) = await chain.ask([("eth_getCode", [claim.payer, "pending"])])
        calls = _calls(token, claim, wrapped.inner)
        if code != "0x":
            return await chain.collect(calls)
        if wrapped.factory not in chain.factories:
            raise Refused(reasons.FACTORY, wrapped.factory)
        deploying = [
            through_multicall(wrapped.factory, wrapped.call, to, data) for to, data in calls
        ]
        return await chain.collect(deploying)


def check_window(chain: Chain, claim: Claim) -> None:
    """Raises Refused unless the authorization is valid now and for ``MARGIN`` seconds."""
    terms, now = claim.authorization.terms, chain.now()
    if terms.valid_before < now + MARGIN:
        raise Refused(reasons.VALID_BEFORE, f"less than {MARGIN} s left")
    if terms.valid_after > now:
        raise Refused(reasons.VALID_AFTER, f"valid in {terms.valid_after - now} s")


def _calls(token: Token, claim: Claim, signature: bytes) -> list[tuple[str, bytes]]:
    """Returns the possible calls with this signature, the most likely first.

    Some wallets write v as 0 or 1, but tokens expect 27 or 28, so v is converted. A contract
    wallet's signature of 65 bytes may end in 0 or 1 for another reason. So a token that accepts
    long signatures first gets the unchanged bytes.
    """
    terms = claim.authorization.terms
    members = (
        terms.payer,
        terms.recipient,
        terms.value,
        terms.valid_after,
        terms.valid_before,
        terms.nonce,
    )
    made = []
    if token.long_signatures:
        made.append(call_data(BYTES_OVERLOAD, *members, signature))
    if len(signature) == ECDSA_LENGTH:
        v = signature[64]
        with_v = signature[:64] + bytes([v + 27 if v < 2 else v])
        if with_v != signature or not made:
            made.append(capture_data(claim.authorization, Signature(with_v)))
    if not made:
        raise Refused(reasons.SIGNATURE, "this token accepts signatures of 65 bytes only")
    return [(token.domain.token, data) for data in made]
