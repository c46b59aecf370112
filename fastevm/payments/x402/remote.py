"""A client of a facilitator over HTTP. A server without a key uses it as the engine."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import aiohttp

from fastevm.core.primitives.replace import replace
from fastevm.payments.arguments import checked
from fastevm.payments.errors import InvalidTerms
from fastevm.payments.hidden import unchained
from fastevm.payments.node import address_of_node
from fastevm.payments.x402 import networks, reasons
from fastevm.payments.x402.bodies import is_bad_header
from fastevm.payments.x402.messages import (
    FINAL,
    LONGEST_BODY,
    Json,
    Malformed,
    Payment,
    Requirements,
    Resource,
    Settled,
    Verified,
    as_object,
    strict_json,
)
from fastevm.payments.x402.proofs import IDENTIFIER
from fastevm.payments.x402.reasons import Unavailable
from fastevm.rpc_client.asynchronous import open_session
from fastevm.rpc_client.messages import shown_address

VERIFY_SECONDS: Final = 15.0
SETTLE_SECONDS: Final = 90.0
# authentication schemes that need a token after their name, in lower case
SCHEMES_OF_TOKENS: Final = ("basic", "bearer")


@checked
class RemoteFacilitator:
    """Calls a facilitator of any vendor. Sends ``headers``, such as ``Authorization``, each time.

    Raises InvalidTerms for a header that is empty or that a request cannot contain, and for an
    Authorization header without a token.

    A settlement without a clear answer is pending, not failed. A failure is pending too if a
    facilitator may report it after sending a transaction, unless the answer says that the failure
    is final. A failure found before sending is `Settled.final` only if the answer says so: an
    earlier request may have sent the payment.
    """

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self.url = address_of_node(url, "url", "http", "https").rstrip("/")
        self._headers = _checked_headers(headers or {})
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"<RemoteFacilitator {shown_address(self.url)}>"

    def __reduce__(self) -> Any:
        raise TypeError("a RemoteFacilitator cannot be pickled: its headers may contain a token")

    async def close(self) -> None:
        """Closes the connections."""
        if self._session is not None:
            await self._session.close()

    async def verify(self, payment: Payment, offer: Requirements) -> Verified:
        """Checks whether the payment would succeed now. Raises Unavailable."""
        with unchained():
            try:
                members = await self._post("/verify", payment, offer, VERIFY_SECONDS)
            except _NoAnswer as error:
                raise Unavailable(f"no answer of the facilitator: {error}") from None
        if not isinstance(members.get("isValid"), bool):
            raise Unavailable("the facilitator's answer has no isValid member")
        reason = None if members["isValid"] else str(members.get("invalidReason") or "invalid")
        message = str(members.get("invalidMessage") or "")
        return Verified(payer=_text(members.get("payer")), reason=reason, message=message)

    async def settle(self, payment: Payment, offer: Requirements, claim: str = "") -> Settled:
        """Collects the payment. The result is pending if the answer does not say what happened.

        ``claim`` is sent as ``Idempotency-Key``; facilitators that do not know this header ignore
        it.
        """
        more = {"Idempotency-Key": claim} if claim else {}
        try:
            message = await self._post("/settle", payment, offer, SETTLE_SECONDS, more)
        except _NoAnswer as error:
            return Settled(chain_id=offer.chain_id, reason=reasons.PENDING, message=str(error))
        if not isinstance(message.get("success"), bool):
            return Settled(chain_id=offer.chain_id, reason=reasons.PENDING)
        settled = Settled(
            chain_id=offer.chain_id,
            payer=_text(message.get("payer")),
            transaction=_text(message.get("transaction")) or "",
            amount=offer.amount,
            reason=None if message["success"] else _text(message.get("errorReason")) or "",
            message=str(message.get("errorMessage") or ""),
            final=message.get(FINAL) is True,
        )
        reason = settled.reason
        if reason is None or reason in reasons.SPENT or settled.final:
            return settled
        if reasons.moved_nothing(reason, settled.transaction):
            return settled
        text = f"the facilitator does not say whether money moved: {reason or 'no reason'}"
        return replace(settled, reason=reasons.PENDING, message=text)

    async def supported(self) -> Json:
        """Returns the facilitator's supported kinds. Raises Unavailable."""
        with unchained():
            try:
                async with (
                    asyncio.timeout(VERIFY_SECONDS),
                    self._open().get(f"{self.url}/supported", headers=self._headers) as answer,
                ):
                    return as_object(strict_json(await _body_of(answer)), "supported")
            except (aiohttp.ClientError, OSError, TimeoutError, Malformed) as error:
                raise Unavailable(f"no answer of the facilitator: {type(error).__name__}") from None

    async def _post(
        self,
        path: str,
        payment: Payment,
        offer: Requirements,
        seconds: float,
        more: Mapping[str, str] | None = None,
    ) -> Json:
        body = json.dumps(_body(payment, offer)).encode()
        headers = {"Content-Type": "application/json", **self._headers, **(more or {})}
        try:
            async with (
                asyncio.timeout(seconds),
                self._open().post(self.url + path, data=body, headers=headers) as answer,
            ):
                message = as_object(strict_json(await _body_of(answer)), "answer")
        except (aiohttp.ClientError, OSError, TimeoutError, Malformed) as error:
            raise _NoAnswer(type(error).__name__) from None
        if answer.status >= 500 and message.get("errorReason") != reasons.PENDING:
            raise _NoAnswer(f"status {answer.status}")
        return message

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = open_session()
        return self._session


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns a copy. Raises InvalidTerms; its text shows no values, because they may be tokens."""
    for name, value in headers.items():
        if is_bad_header(name, value):
            text = "expected a name and printable latin-1 text, as a header can contain them"
            raise InvalidTerms(f"headers: {name!r:.40}: {text}")
        if not value.strip() or value.strip().lower() in SCHEMES_OF_TOKENS:
            raise InvalidTerms(f"headers: {name} has no value: is the variable of its token set?")
    return dict(headers)


async def _body_of(answer: aiohttp.ClientResponse) -> bytes:
    """Returns the body. Raises Malformed if it exceeds ``LONGEST_BODY`` bytes."""
    parts, length = [], 0
    async for part in answer.content.iter_any():
        length += len(part)
        if length > LONGEST_BODY:
            raise Malformed(f"the answer exceeds {LONGEST_BODY} bytes")
        parts.append(part)
    return b"".join(parts)


class _NoAnswer(Exception):
    """The result of a request is unknown."""


def _body(payment: Payment, offer: Requirements) -> Json:
    if payment.version == 1:
        network = networks.shown(payment.chain_id, 1)
        payload: dict[str, Any] = {"scheme": payment.scheme, "network": network}
        requirements = offer.show_v1(Resource(url="")) or {}
    else:
        payload = {"accepted": payment.accepted.show() if payment.accepted else {}}
        payload |= {"resource": dict(payment.resource)} if payment.resource else {}
        # the id is a secret between payer and seller
        extensions = {name: info for name, info in payment.extensions.items() if name != IDENTIFIER}
        payload |= {"extensions": extensions} if extensions else {}
        requirements = offer.show()
    payload |= {"x402Version": payment.version, "payload": dict(payment.payload)}
    return {
        "x402Version": payment.version,
        "paymentPayload": payload,
        "paymentRequirements": requirements,
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
