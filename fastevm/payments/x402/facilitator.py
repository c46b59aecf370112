"""The x402 facilitator: verifies payments and settles each once, for programs and for HTTP.

    facilitator = Facilitator([settler])
    async with facilitator:
        answer = await facilitator.verify(payment, requirements)
        answer = await facilitator.settle(payment, requirements)

Verification simulates the payment on the pending state and moves no money. Chain, token, payer and
nonce identify a payment. It is settled once, and only one caller gets the success. `Unavailable`
means that the result is unknown: repeat the call.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, Self

from fastevm.payments.arguments import checked
from fastevm.payments.errors import InvalidTerms
from fastevm.payments.x402 import networks, reasons
from fastevm.payments.x402.chain_settler import ChainSettler
from fastevm.payments.x402.claims import Claim, Scheme, check_domain
from fastevm.payments.x402.exact import Exact
from fastevm.payments.x402.messages import (
    EXACT,
    VERSIONS,
    Json,
    Malformed,
    Payment,
    Requirements,
    Settled,
    Verified,
)
from fastevm.payments.x402.reasons import Refused
from fastevm.rpc_client.closing import AsyncClosing

LISTED_SCHEMES: Final = ("http://", "https://")
MOST_RESOURCES: Final = 10_000  # kept in the catalogue
MOST_LISTED: Final = 100  # per page of the catalogue
BAZAAR: Final = "bazaar"  # the extension with which a resource asks to be listed


class Engine(Protocol):
    """Verifies and settles payments. `Facilitator` and `RemoteFacilitator` implement it."""

    async def verify(self, payment: Payment, offer: Requirements) -> Verified:
        """Checks whether the payment would succeed now. Raises Malformed or Unavailable."""
        ...

    async def settle(self, payment: Payment, offer: Requirements, claim: str = "") -> Settled:
        """Collects the payment once. Raises Malformed or Unavailable.

        ``claim`` is a random key of the caller. A caller that repeats the settlement with the same
        key gets the same result. All other callers get ``duplicate_settlement``.
        """
        ...


@checked
class Facilitator(AsyncClosing):
    """Verifies and settles payments on one or more chains."""

    def __init__(self, settlers: Sequence[ChainSettler], schemes: Sequence[Scheme] = ()) -> None:
        self.settlers = {settler.chain_id: settler for settler in settlers}
        if len(self.settlers) != len(settlers):
            raise InvalidTerms("settlers: expected at most one per chain")
        self.schemes: Mapping[str, Scheme] = {scheme.name: scheme for scheme in (*schemes, Exact())}
        self._resources: dict[str, Json] = {}
        self._tending: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tending = [asyncio.create_task(settler.run()) for settler in self.settlers.values()]
        return self

    async def close(self) -> None:
        """Stops the maintenance tasks and records the results of payments in flight.

        Waits for their blocks for at most ``Rules.close_for`` seconds. Another facilitator with
        this store continues with the payments that are still unfinished.
        """
        for task in self._tending:
            task.cancel()
        await asyncio.gather(*self._tending, return_exceptions=True)
        if self._tending:
            await asyncio.gather(*(settler.finish() for settler in self.settlers.values()))
        self._tending = []
        for settler in self.settlers.values():
            await settler.receipts.close()

    async def verify(self, payment: Payment, offer: Requirements) -> Verified:
        """Checks the payment on the pending state. Raises Malformed or Unavailable."""
        payer = None
        try:
            try:
                settler, scheme, claim = self._claim(payment, offer)
            except Refused:
                await self._check_unrecorded(payment, offer)
                raise
            payer = claim.payer
            await settler.check_unordered(claim, offer.pay_to)
            try:
                await scheme.check(settler, claim)
            except Refused as refusal:
                if refusal.reason in reasons.LATE:
                    await settler.check_unspent(claim)
                raise
            await settler.check_unsent(claim)
            settler.verified(claim)
        except Refused as refusal:
            return Verified(payer=payer, reason=refusal.reason, message=refusal.detail)
        return Verified(payer=payer)

    async def settle(self, payment: Payment, offer: Requirements, claim: str = "") -> Settled:
        """Collects the payment once and returns the result. Raises Malformed or Unavailable.

        Only one caller gets the success; all others get ``duplicate_settlement``. If the settlement
        began with a ``claim``, every request with this claim gets the success. If it began without
        a claim, one request without a claim gets the success, once: the request that began the
        settlement, or the next request if the first no longer waits.
        """
        payer = None
        try:
            try:
                settler, scheme, parsed = self._claim(payment, offer)
            except Refused as refusal:
                settled = await self._recorded(payment, offer, claim, refusal)
            else:
                payer = parsed.payer
                await settler.check_unordered(parsed, offer.pay_to)
                settled = await settler.settle(parsed, lambda: scheme.check(settler, parsed), claim)
        except Refused as refusal:
            return Settled(
                chain_id=offer.chain_id,
                payer=payer,
                reason=refusal.reason,
                message=refusal.detail,
            )
        if settled.success:
            self._list(payment, offer)
        return settled

    def _claim(self, payment: Payment, offer: Requirements) -> tuple[ChainSettler, Scheme, Claim]:
        scheme = self.schemes.get(offer.scheme)
        if scheme is None:
            raise Refused(reasons.UNSUPPORTED_SCHEME, offer.scheme[:40])
        settler = self.settlers.get(offer.chain_id)
        if settler is None:
            raise Refused(reasons.INVALID_NETWORK, offer.network)
        if not payment.chooses(offer):
            different = payment.chain_id != offer.chain_id
            raise Refused(
                reasons.NETWORK_MISMATCH if different else reasons.INVALID_REQUIREMENTS,
                "the payload was made for other requirements",
            )
        allowed = settler.rules.recipients
        if allowed is not None and offer.pay_to not in allowed:
            raise Refused(reasons.INVALID_REQUIREMENTS, f"payTo {offer.pay_to} is not allowed")
        return settler, scheme, scheme.read(settler, payment, offer)

    async def _recorded(
        self, payment: Payment, offer: Requirements, claim: str, refusal: Refused
    ) -> Settled:
        """Returns the result of a payment that earlier settings accepted.

        If the facilitator was restarted without the payment's token, recipient, scheme or operator,
        the store still has the payment's transaction. Raises ``refusal`` for any other payment.
        """
        settler = self.settlers.get(offer.chain_id)
        found = None if settler is None else await settler.recorded(payment, offer)
        if settler is None or found is None:
            await self._check_unrecorded(payment, offer)
            raise refusal

        async def refuse() -> None:  # the transaction of a recorded payment is not sent again
            raise refusal

        return await settler.settle(found, refuse, claim)

    async def _check_unrecorded(self, payment: Payment, offer: Requirements) -> None:
        """Raises Refused if a payment that these settings refuse was sent under earlier settings.

        The reason is NONCE_USED, because after any other reason the payer would sign again. Also
        covers chains that are no longer served.
        """
        for settler in self.settlers.values():
            if await settler.was_sent(payment, offer):
                text = (
                    "this payment was sent to the chain, but the facilitator's settings have"
                    " changed and do not accept it any more: sign no other before the seller has"
                    " checked it"
                )
                raise Refused(reasons.NONCE_USED, text)

    def fault_of(self, offer: Requirements) -> str | None:
        """Returns why the facilitator can accept no payment for an offer; None if it can."""
        settler = self.settlers.get(offer.chain_id)
        if settler is None:
            served = ", ".join(map(str, self.settlers)) or "none"
            return f"chain {offer.chain_id} is not served by the facilitator (served: {served})"
        token = settler.tokens.get(offer.asset)
        if token is None:
            served = ", ".join(settler.tokens)
            return f"asset {offer.asset} is not a token of the facilitator (tokens: {served})"
        allowed = settler.rules.recipients
        if allowed is not None and offer.pay_to not in allowed:
            return f"pay_to {offer.pay_to} is not a recipient that the facilitator allows"
        try:
            check_domain(token, offer)
        except Refused as refusal:
            return f"extra: {refusal.detail}"
        return None

    def supported(self) -> Json:
        """Returns the answer to /supported."""
        kinds: list[Json] = []
        for chain_id, settler in self.settlers.items():
            for name, scheme in self.schemes.items():
                extra = scheme.supported(settler)
                for version in VERSIONS:
                    network = networks.shown(chain_id, version)
                    if version == 1 and (name != EXACT or network.startswith(networks.PREFIX)):
                        continue
                    kind = {"x402Version": version, "scheme": name, "network": network}
                    kinds.append({**kind, "extra": extra} if extra else kind)
        signers = sorted({settler.account for settler in self.settlers.values()})
        return {"kinds": kinds, "extensions": [BAZAAR], "signers": {"eip155:*": signers}}

    # --- the catalogue ----------------------------------------------------------------------------

    def _list(self, payment: Payment, offer: Requirements) -> None:
        """Adds a paid resource to the catalogue if the payment has the extension ``bazaar``.

        The payer writes this extension, so its form is checked, and a payment to another recipient
        does not replace a listed resource.
        """
        url, wish = payment.resource.get("url"), payment.extensions.get(BAZAAR)
        if not isinstance(url, str) or not isinstance(wish, dict):
            return
        if not url.lower().startswith(LISTED_SCHEMES):
            return
        listed = self._resources.get(url)
        if listed is not None and listed["accepts"][0]["payTo"] != offer.pay_to:
            return
        info = wish.get("info")
        given = info.get("input") if isinstance(info, dict) else None
        kind = given.get("type") if isinstance(given, dict) else "http"
        self._resources.pop(url, None)
        if len(self._resources) >= MOST_RESOURCES:
            del self._resources[next(iter(self._resources))]
        self._resources[url] = {
            "resource": url,
            "type": kind if kind in ("http", "mcp") else "http",
            "x402Version": payment.version,
            "accepts": [offer.show()],
            "lastUpdated": int(time.time()),
            "metadata": info if isinstance(info, dict) else {},
        }

    def resources(self, kind: str | None, limit: int, offset: int) -> Json:
        """Returns the answer to /discovery/resources, newest first. Raises Malformed."""
        if kind not in (None, "http", "mcp") or not 1 <= limit <= MOST_LISTED or offset < 0:
            raise Malformed(f"type: http or mcp; limit: 1 to {MOST_LISTED}; offset: 0 or more")
        found = [
            resource
            for resource in reversed(self._resources.values())
            if kind in (None, resource["type"])
        ]
        page: dict[str, Any] = {"limit": limit, "offset": offset, "total": len(found)}
        return {"x402Version": 2, "items": found[offset : offset + limit], "pagination": page}
