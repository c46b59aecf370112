"""Answers a request with a payment: verifies, runs the handler, settles, and answers once.

The first request that presents a payment needs a valid signature. Its grant binds the payment to
this request. A later request with the payment gets an answer only if it comes from the payer:

- Before the settlement starts, the same signature proves this, because only the payer, this server
  and its facilitator have the signature.
- Afterwards the payment's secret id or a signed challenge proves this (see `proofs`).

All other callers get a 409 and change nothing.
"""

import asyncio
import hashlib
import json
import logging
import re
import secrets
import time
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hmac import compare_digest
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from fastevm.core.primitives.replace import replace
from fastevm.payments.hidden import hiding
from fastevm.payments.x402 import proofs, reasons
from fastevm.payments.x402.bodies import sendable
from fastevm.payments.x402.facilitator import Engine
from fastevm.payments.x402.grants import (
    LONG_COPY_SECONDS,
    LONGEST_COPY,
    Grant,
    Grants,
    Phase,
    Reply,
)
from fastevm.payments.x402.messages import (
    Payment,
    Requirements,
    Settled,
    decode_header,
    encode_header,
)
from fastevm.payments.x402.renewal import Renewal

log: Final = logging.getLogger(__name__)

RECEIPTS: Final = {2: "PAYMENT-RESPONSE", 1: "X-PAYMENT-RESPONSE"}
KEPT: Final = 3_600.0  # seconds; minimum lifetime of a grant
FAILURE: Final = 400  # lowest status of answers that are not charged
SERVER_FAILURE: Final = 500  # lowest status after which an upfront handler may run again
# If a process has not renewed a grant for so long, another process may take it over.
HELD_SECONDS: Final = 120.0
PRIVATE: Final = ("private", "no-store")  # Cache-Control that keeps an answer out of shared caches
_QUOTED: Final = re.compile(r'="[^"]*"?')  # private="set-cookie" keeps only this header private
# Headers that some caches prefer to Cache-Control (RFC 9213); "*" matches any prefix.
CACHE_HEADERS: Final = (
    "*-cache-control",  # CDN-, Cloudflare-CDN-, Netlify-CDN-, Vercel-CDN-, X-LiteSpeed-
    "edge-control", "*-edge-control",  # Akamai
    "surrogate-control",  # Fastly, Varnish
    "x-accel-expires",  # nginx
)  # fmt: skip

Run = Callable[[], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Request:
    """The parts of a request that the paywall needs. `joined` returns ``headers``.

    ``root`` is a prefix of the path that the application does not see, because the application is
    mounted there or a proxy removed the prefix. ``mounts`` are other such prefixes. ``repaired`` is
    the path with its broken percent-encodings repaired, as some servers decode it; it is empty if
    none is broken. ``target`` is the request target as it was sent, empty if the server does not
    show it.
    """

    method: str
    path: str
    url: str = field(repr=False)  # its query may contain a key of the caller
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    root: str = ""
    mounts: tuple[str, ...] = ()
    repaired: str = ""
    target: str = ""


def joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Returns headers with names in lower case. Values of a repeated header are joined by commas.

    So no value is lost: some frameworks read the first of several values, some the last.
    """
    found = dict[str, str]()
    for name, value in headers:
        key = name.lower()
        found[key] = f"{found[key]}, {value}" if key in found else value
    return found


def quoted(path: str) -> str:
    """Percent-encodes a decoded path for a URL. Different paths get different encodings."""
    return quote(path, safe="/:@!$&'()*+,;=~")


@hiding("url", "holder")
class Purchase(Struct):
    """A request with a payment.

    ``url`` is the public address of the request, ``holder`` the id of the paywall.
    ``required(reason, message, receipt)`` returns the 402. The caller must hold the lock of ``key``
    while `answer` runs.
    """

    engine: Engine
    grants: Grants
    request: Request
    url: str
    payment: Payment
    offer: Requirements
    upfront: bool
    key: str
    holder: str
    renewal: Renewal
    required: Callable[[str, str, tuple[str, str] | None], Reply]

    async def answer(self, run: Run) -> Reply:
        """Returns the answer. Raises Malformed or Unavailable."""
        proofs.id_of(self.payment)  # raises Malformed
        grant = await to_thread(self.grants.get, self.key)
        if grant is None:
            verified = await self.engine.verify(self.payment, self.offer)
            if not verified.valid:
                return self._refused(verified.reason or "", verified.message)
            made = self._grant()
            grant = await to_thread(self.grants.add, made)
            if grant is None:
                return await self._carry_on(made, run)
        return await self._again(grant, run)

    async def refusal(self) -> Reply | None:
        """Returns the 409 for a caller that has not proved to be the payer; None for the payer."""
        grant = await to_thread(self.grants.get, self.key)
        if grant is None or self._proof(grant) is not None:
            return None
        return self._stranger(grant)

    # --- presented again --------------------------------------------------------------------------

    async def _again(self, grant: Grant, run: Run) -> Reply:
        """Answers a payment that was presented before."""
        proved = self._proof(grant)
        if proved is None:
            return self._stranger(grant)
        if not compare_digest(grant.request, self._fingerprint()):
            text = "this payment belongs to another request; sign a new payment for this one"
            return conflict(reasons.OTHER_REQUEST, text)
        if grant.phase is Phase.GIVEN:
            return await self._given(grant, proved)
        now = time.time()
        if grant.holder not in ("", self.holder) and now < grant.since + HELD_SECONDS:
            return later({"error": reasons.IN_PROGRESS})
        mine = replace(grant, holder=self.holder, since=now, proved=proved)
        if not await to_thread(self.grants.put, mine, grant.holder, grant.proved):
            return later({"error": reasons.IN_PROGRESS})
        if mine.phase is Phase.BEGUN and mine.reply is None:
            verified = await self.engine.verify(self.payment, self.offer)
            if not verified.valid:
                await to_thread(self.grants.drop, self.key, self.holder)
                return self._refused(verified.reason or "", verified.message)
        return await self._carry_on(mine, run)

    async def _given(self, grant: Grant, proved: int) -> Reply:
        """Sends a stored answer again."""
        if grant.reply is None:
            text = (
                "the answer was given and is not kept any more: answers above "
                f"{LONGEST_COPY} bytes are kept for {LONG_COPY_SECONDS:.0f} s"
            )
            return conflict(reasons.NOT_KEPT, text)
        if proved != grant.proved:  # each challenge works once
            used = replace(grant, proved=proved)
            if not await to_thread(self.grants.put, used, grant.holder, grant.proved):
                return later({"error": reasons.IN_PROGRESS})
        return self._with_receipt(grant.reply, grant.receipt)

    def _proof(self, grant: Grant) -> int | None:
        """Returns the new value of ``grant.proved`` if the caller is the payer, else None.

        A challenge must be newer than the last answered challenge. So each challenge works only
        once.
        """
        secret = proofs.secret_digest(self.payment)
        if secret and compare_digest(secret, grant.secret):
            return grant.proved
        same = compare_digest(proofs.payload_digest(self.payment), grant.payload)
        if grant.phase is Phase.BEGUN and same:
            return grant.proved
        header = self.request.headers.get(proofs.SIGN_IN_HEADER.lower())
        if header is None or grant.phase is Phase.BEGUN:
            return None
        now = int(time.time() * 1_000)
        made = proofs.answered(header, grant.claim, self.payment, self.url, now)
        return made if made is not None and made > grant.proved else None

    def _stranger(self, grant: Grant) -> Reply:
        text = (
            "this payment was presented before, and nothing here proves that you are its payer: "
            f"repeat it with its {proofs.IDENTIFIER}, or sign the challenge and send it in "
            f"{proofs.SIGN_IN_HEADER}; to buy again, sign a new payment"
        )
        now = int(time.time() * 1_000)
        asked = proofs.challenge(grant.claim, self.payment, self.url, now)
        more = {"extensions": {proofs.SIGN_IN: asked}}
        if grant.receipt:
            more["transaction"] = decode_header(grant.receipt).get("transaction", "")
        return conflict(reasons.NOT_PROVED, text, more)

    # --- selling ----------------------------------------------------------------------------------

    async def _carry_on(self, grant: Grant, run: Run) -> Reply:
        """Continues the sale of a grant that this process holds; releases the grant on errors."""
        try:
            with self.renewal.of(self.key, self.holder):
                return await self._sell(grant, run)
        except _Lost:
            return later({"error": reasons.IN_PROGRESS})
        except BaseException:
            known = await to_thread(self.grants.get, self.key)
            if known is not None:
                await to_thread(self.grants.put, replace(known, holder=""), self.holder)
            raise

    async def _sell(self, grant: Grant, run: Run) -> Reply:
        """Settles and runs the handler, in the order that the sale defines."""
        reply, again = grant.reply, grant.phase is Phase.SETTLING
        if grant.phase is Phase.BEGUN:
            if reply is None and not self.upfront:
                reply = await self._ran(run)
                if reply.status >= FAILURE:
                    await to_thread(self.grants.drop, self.key, self.holder)
                    return reply
            grant = await self._keep(grant, phase=Phase.SETTLING, reply=reply)
        if grant.phase is Phase.SETTLING:
            settled = await self._settled(grant)
            if again and not (settled.success or settled.final):
                # The failure belongs to the current attempt. An earlier attempt may have moved the
                # money.
                text = f"an earlier settlement had no clear result; now: {settled.reason}"
                settled = replace(settled, reason=reasons.PENDING, message=text)
            receipt = encode_header(settled.show(self.payment.version))
            if settled.pending:
                await self._keep(grant, holder="")
                return self._with_receipt(later({"error": settled.reason}), receipt)
            if not settled.success:
                return await self._unsettled(grant, settled, receipt)
            grant = await self._keep(grant, phase=Phase.PAID, receipt=receipt)
        reply = reply or await self._ran(run)
        if reply.status < SERVER_FAILURE or not self.upfront:
            grant = await self._keep(grant, phase=Phase.GIVEN, reply=reply, holder="")
        else:
            await self._keep(grant, holder="")
        return self._with_receipt(reply, grant.receipt)

    async def _ran(self, run: Run) -> Reply:
        """Runs the handler. Raises ValueError for an answer that a server may refuse."""
        return sendable(await run(), self.request.method)

    async def _settled(self, grant: Grant) -> Settled:
        """Settles the payment, even if the client disconnects meanwhile."""
        task = asyncio.ensure_future(self.engine.settle(self.payment, self.offer, grant.claim))
        return await asyncio.shield(task)

    async def _unsettled(self, grant: Grant, settled: Settled, receipt: str) -> Reply:
        """Answers a failed settlement.

        If the nonce is used, money may have moved, so the grant is kept.
        """
        reason = settled.reason or reasons.SETTLE_ERROR
        if reason in reasons.SPENT:
            await self._keep(grant, holder="")
            if reason != reasons.DUPLICATE:
                text = "the payment was made, and the facilitator does not say for which request"
                return conflict(reason, f"{text}: ask the seller before you sign another")
        else:
            await to_thread(self.grants.drop, self.key, self.holder)
        receipts = RECEIPTS[self.payment.version], receipt
        return self._refused(reason, settled.message, receipts)

    async def _keep(self, grant: Grant, **changes: Any) -> Grant:
        """Stores a changed grant. Raises _Lost if another process has taken over the grant."""
        changed = replace(grant, since=time.time(), **changes)
        if not await to_thread(self.grants.put, changed, self.holder):
            log.warning("another process took over a payment: this one was stopped for too long")
            raise _Lost
        return changed

    # --- parts ------------------------------------------------------------------------------------

    def _refused(self, reason: str, message: str, receipt: tuple[str, str] | None = None) -> Reply:
        """Returns the 402, or a 409 if the payment was settled before.

        A client that gets a 402 signs a new payment, so it would pay twice.
        """
        if reason in reasons.SPENT:
            text = "this payment was settled before, for another request; sign a new payment"
            return conflict(reason, text)
        return self.required(reason, message, receipt)

    def _grant(self) -> Grant:
        now = time.time()
        return Grant(
            key=self.key,
            request=self._fingerprint(),
            payload=proofs.payload_digest(self.payment),
            secret=proofs.secret_digest(self.payment),
            claim=secrets.token_hex(16),
            holder=self.holder,
            since=now,
            expires=now + max(KEPT, float(self.offer.max_timeout)),
            offer=self.offer,
        )

    def _fingerprint(self) -> str:
        text = json.dumps([self.request.method, self.url]).encode() + b"\n" + self.request.body
        return hashlib.sha256(text).hexdigest()

    def _with_receipt(self, reply: Reply, receipt: str) -> Reply:
        """Adds the receipt, and keeps the answer out of shared caches."""
        name = RECEIPTS[self.payment.version]
        if not receipt:
            return reply
        kept = [header for header in reply.headers if header[0].lower() != name.lower()]
        kept = [header for header in kept if not _is_for_caches(header[0])]
        caching = [_QUOTED.sub("=", value) for key, value in kept if key.lower() == "cache-control"]
        words = {word.strip().lower() for value in caching for word in value.split(",")}
        if words.isdisjoint(PRIVATE):
            kept = [header for header in kept if header[0].lower() != "cache-control"]
            kept.append(("Cache-Control", ", ".join(PRIVATE)))
        return Reply(reply.status, [*kept, (name, receipt)], reply.body)


def _is_for_caches(name: str) -> bool:
    """Whether a header is an instruction to some caches only, for example to CDNs."""
    return any(fnmatchcase(name.lower(), pattern) for pattern in CACHE_HEADERS)


class _Lost(Exception):
    """Another process holds the grant."""


def key_of(payment: Payment, offer: Requirements) -> str:
    """Returns the key of a payment: a hash of chain, token, payer and nonce as bytes.

    Signatures are left out, because a signature can be encoded in several ways.
    """
    chain, token = offer.chain_id.to_bytes(32, "big"), bytes.fromhex(offer.asset[2:])
    return hashlib.sha256(chain + token + payment.payer + payment.nonce).hexdigest()


def as_json(status: int, body: Mapping[str, Any], headers: Sequence[tuple[str, str]] = ()) -> Reply:
    """Returns an answer in JSON."""
    text = json.dumps(body).encode()
    return Reply(status, [("Content-Type", "application/json"), *headers], text)


def later(body: Mapping[str, Any]) -> Reply:
    """Returns the 503 for a payment whose result is not known yet."""
    return as_json(503, body, [("Retry-After", "1"), ("Cache-Control", "no-store")])


def conflict(error: str, message: str, more: Mapping[str, Any] | None = None) -> Reply:
    """Returns the 409 for a payment that cannot pay for this request."""
    body = {"error": error, "message": message, **(more or {})}
    return as_json(409, body, [("Cache-Control", "no-store")])
