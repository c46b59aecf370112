"""An x402 payer for programs: reads a 402, signs a payment, and presents it.

    payer = Payer(private_key, most={usdc: 10_000})
    async with aiohttp.ClientSession() as session:
        answer = await payer.get(session, "https://api.example/weather")

A payer pays only in assets that have a limit in ``most``. The payer presents the same payment until
the result is known, because a second signature could pay twice. If the server offers the extension
``payment-identifier``, the payment gets a secret id. With this id the payer can request a lost
answer again.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import aiohttp

from fastevm.payments.arguments import checked
from fastevm.payments.authorization import Authorization, Domain, Kind, Terms, address
from fastevm.payments.errors import PaymentError
from fastevm.payments.escrow import V1_0, V1_1, PaymentInfo
from fastevm.payments.hidden import hiding
from fastevm.payments.signatures import key_bytes, sign
from fastevm.payments.signer import KeySigner
from fastevm.payments.tokens import money_at
from fastevm.payments.x402.grants import Reply
from fastevm.payments.x402.messages import (
    AUTH_CAPTURE,
    EXACT,
    Json,
    Malformed,
    Requirements,
    as_address,
    as_number,
    as_object,
    as_text,
    decode_header,
    encode_header,
    strict_json,
)
from fastevm.payments.x402.proofs import IDENTIFIER, SIGN_IN, SIGN_IN_HEADER, new_id
from fastevm.payments.x402.proofs import answer as answer_challenge

# How often the payer presents a payment while its result is unknown. If a process of the server has
# stopped, another process takes over its payments after 120 s. With pauses of 1 s, 150 attempts
# take longer than that.
ATTEMPTS: Final = 150
MOST_NAMED: Final = 3  # offers named in an error
PAUSE_SECONDS: Final = 1.0  # between presentations, unless the server sends Retry-After
LONGEST_PAUSE: Final = 10.0  # seconds; maximum pause after a Retry-After
# Answers of a server, or of a proxy in front of the server, that do not show whether the server
# accepted the payment.
UNKNOWN: Final = (408, 425, 429, 502, 503, 504)


class NothingToPay(PaymentError):
    """The server has no offer that this payer accepts."""


@hiding("value")
class Presented(NamedTuple):
    """A payment as a header. The repr hides the value, because it may contain a secret."""

    name: str
    value: str


class PaymentPending(PaymentError):
    """The result of a payment is not known yet. Do not sign another payment.

    The money may have moved. Continue later with ``payer.get(session, error.url,
    error.presented)``. ``answer`` is the last answer of the server, or None if the connection
    failed.
    """

    def __init__(self, url: str, presented: Presented, answer: Reply | None) -> None:
        last = "the connection failed" if answer is None else f"the last status was {answer.status}"
        super().__init__(f"the result of the payment is not known yet: {last}")
        self.url, self.presented, self.answer = url, presented, answer


@checked
class Payer:
    """Pays with a private key. ``most`` maps assets to the maximum units of one payment."""

    __slots__ = ("_clock", "_key", "address", "most")

    def __init__(
        self,
        private_key: bytes | str,
        most: Mapping[str, int],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._key, self._clock = key_bytes(private_key), clock
        self.address = KeySigner(self._key).address
        self.most = {address(asset, "asset"): limit for asset, limit in most.items()}

    def pay(self, headers: Mapping[str, str], body: bytes) -> Presented:
        """Returns the payment for a 402. Raises NothingToPay or Malformed."""
        named = {name.lower(): value for name, value in headers.items()}
        header = named.get("payment-required")
        if header is not None:
            required, version = decode_header(header), 2
        else:
            required, version = as_object(strict_json(body), "body"), 1
        refused: list[str] = []
        offers = required.get("accepts")
        if not isinstance(offers, list):
            raise Malformed("accepts: expected a list of offers")
        for accepted in offers:
            try:
                offer = Requirements.read(accepted, version)
            except Malformed:
                continue  # an unknown network or scheme
            served = offer.scheme in (EXACT, AUTH_CAPTURE)
            if served and offer.amount <= self.most.get(offer.asset, -1):
                try:
                    return self._presented(offer, accepted, required, version)
                except Malformed:
                    continue  # a member that the scheme needs is missing or wrong
            if served and len(refused) < MOST_NAMED:
                limit = self.most.get(offer.asset)
                money = money_at(offer.chain_id, offer.asset)
                limited = (
                    "no limit is set" if limit is None else f"the limit is {money.text(limit)}"
                )
                refused.append(f"{money.text(offer.amount)} of {offer.asset}, where {limited}")
        text = f": {'; '.join(refused)}" if refused else ""
        raise NothingToPay(f"no offer is in an accepted asset and within its limit{text}")

    def _presented(
        self, offer: Requirements, accepted: Json, required: Json, version: int
    ) -> Presented:
        payload = self.payload(offer)
        message: dict[str, Any] = {"x402Version": version, "payload": payload}
        if version == 2:
            message |= {"accepted": offer.show(), "resource": required.get("resource", {})}
            if IDENTIFIER in as_object(required.get("extensions") or {}, "extensions"):
                info = {"required": False, "id": new_id()}
                message["extensions"] = {IDENTIFIER: {"info": info}}
            return Presented("PAYMENT-SIGNATURE", encode_header(message))
        network = accepted["network"]
        message |= {"scheme": offer.scheme, "network": network}
        return Presented("X-PAYMENT", encode_header(message))

    def payload(self, offer: Requirements) -> Json:
        """Returns a signed payload for the offer's scheme."""
        extra = offer.extra
        domain = Domain(
            as_text(extra, "name"), as_text(extra, "version"), offer.chain_id, offer.asset
        )
        if offer.scheme == AUTH_CAPTURE:
            return self._hold(offer, domain)
        terms = Terms(
            payer=self.address,
            recipient=offer.pay_to,
            value=offer.amount,
            valid_after=0,
            valid_before=int(self._clock()) + offer.max_timeout,
        )
        return self._signed(Authorization(domain, terms, Kind.TRANSFER))

    def _hold(self, offer: Requirements, domain: Domain) -> Json:
        """Signs an authorization to the escrow's collector. The nonce is the hash of the terms."""
        extra, expires = offer.extra, int(self._clock()) + offer.max_timeout
        deployment = V1_0 if extra.get("authCaptureEscrow") == V1_0.escrow else V1_1
        info = PaymentInfo(
            operator=as_address(extra, "captureAuthorizer"),
            payer=self.address,
            receiver=offer.pay_to,
            token=offer.asset,
            max_amount=offer.amount,
            pre_approval_expiry=expires,
            authorization_expiry=as_number(extra, "captureDeadline"),
            refund_expiry=as_number(extra, "refundDeadline"),
            min_fee_bps=as_number(extra, "minFeeBps"),
            max_fee_bps=as_number(extra, "maxFeeBps"),
            fee_receiver=as_address(extra, "feeRecipient"),
            salt=secrets.randbits(256),
        )
        terms = Terms(
            payer=self.address,
            recipient=deployment.erc3009_collector,
            value=offer.amount,
            valid_after=0,
            valid_before=expires,
            nonce=info.nonce(offer.chain_id, deployment.escrow),
        )
        signed = self._signed(Authorization(domain, terms, Kind.RECEIVE))
        return {**signed, "salt": f"0x{info.salt:064x}"}

    def _signed(self, made: Authorization) -> Json:
        signature = sign(made, self._key)
        return {
            "signature": "0x" + signature.secret_bytes.hex(),
            "authorization": made.message(),
        }

    def prove(self, body: bytes, url: str) -> Presented | None:
        """Returns the header that answers the challenge of a 409; None if there is no challenge.

        Send the header together with the payment. Raises Malformed if the challenge is for another
        URL, or if a payer cannot answer the challenge.
        """
        extensions = as_object(strict_json(body), "body").get("extensions")
        if not isinstance(extensions, dict) or SIGN_IN not in extensions:
            return None
        return Presented(SIGN_IN_HEADER, answer_challenge(extensions[SIGN_IN], self._key, url))

    async def get(
        self, session: aiohttp.ClientSession, url: str, presented: Presented | None = None
    ) -> Reply:
        """Returns the answer to a GET. Pays if the server requires a payment.

        Redirects are followed until a server asks for a payment. The payment goes only to the URL
        that asked for it: a later redirect is not followed but returned, so that no other server
        gets the payment. ``presented`` is a payment of an earlier call, to continue with. Raises
        PaymentPending if the result is still unknown after ``ATTEMPTS`` presentations, after
        another error of the server (status 500 or above), and for a 409 whose challenge this payer
        cannot answer.
        """
        if presented is None:
            first, url = await _get(session, url, {}, redirects=True)
            if first.status != 402:
                return first
            presented = self.pay(dict(first.headers), first.body)
        sent, answer = {presented.name: presented.value}, None
        for _ in range(ATTEMPTS):
            try:
                answer, _url = await _get(session, url, sent, redirects=False)
            except (aiohttp.ClientError, TimeoutError):
                answer = None
            else:
                if answer.status not in UNKNOWN and answer.status >= 500:
                    raise PaymentPending(url, presented, answer)
                try:
                    proof = self.prove(answer.body, url) if answer.status == 409 else None
                except Malformed as fault:
                    raise PaymentPending(url, presented, answer) from fault
                if proof is not None and proof.name not in sent:
                    sent |= {proof.name: proof.value}
                    continue
                if answer.status not in UNKNOWN:
                    return answer
                sent.pop(SIGN_IN_HEADER, None)  # a challenge can be answered once
            await asyncio.sleep(_pause(answer))
        raise PaymentPending(url, presented, answer)

    def __repr__(self) -> str:
        return f"<Payer {self.address}>"

    def __reduce__(self) -> Any:
        raise TypeError("a Payer cannot be pickled: it contains a private key")


def _pause(answer: Reply | None) -> float:
    """Returns the server's Retry-After in seconds, or the default."""
    headers = {name.lower(): value for name, value in answer.headers} if answer else {}
    pause = headers.get("retry-after", "")
    if not (pause.isascii() and pause.isdigit()):
        return PAUSE_SECONDS
    return min(max(float(pause), PAUSE_SECONDS), LONGEST_PAUSE)


async def _get(
    session: aiohttp.ClientSession, url: str, headers: Mapping[str, str], *, redirects: bool
) -> tuple[Reply, str]:
    """Returns the answer and its URL, which differs from ``url`` after a redirect."""
    async with session.get(url, headers=headers, allow_redirects=redirects) as answer:
        reply = Reply(answer.status, list(answer.headers.items()), await answer.read())
        return reply, str(answer.url)
