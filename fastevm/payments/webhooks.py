"""Webhooks as in the Standard Webhooks specification: signed, retried, in sequence for each order.

A notice is posted until the endpoint answers with 2xx. The next notice of the same order waits for
that answer; other orders and other endpoints do not wait. An endpoint may receive a notice more
than once, so receivers should ignore ids that they have seen.
"""

import asyncio
import base64
import binascii
import contextlib
import hashlib
import hmac
import json
import logging
import random
import secrets
import time
from asyncio import to_thread
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from fastevm.core.primitives.replace import replace
from fastevm.payments.amounts import text
from fastevm.payments.errors import InvalidTerms, PaymentError, UnknownOrder, VaultError
from fastevm.payments.metrics import Metrics
from fastevm.payments.outbox import Delivery, DeliveryState, Endpoint, Notice
from fastevm.payments.public_addresses import NotPublic, public_connector
from fastevm.payments.store import OutboxStore, Store
from fastevm.payments.store_key import check_key
from fastevm.payments.vault import Vault
from fastevm.rpc_client.asynchronous import reason_of
from fastevm.rpc_client.messages import shown_address

log: Final = logging.getLogger(__name__)

SECRET_PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32
LONGEST_URL: Final = 2_000
TOLERANCE: Final = 300  # seconds; maximum age of a timestamp at the receiver
POST_SECONDS: Final = 20.0
# seconds for which a sender leases a delivery; then another sender may try
LEASE_SECONDS: Final = 60.0
AT_ONCE: Final = 32
IDLE_SECONDS: Final = 1.0
# Seconds to wait after the first attempt, the second, and so on; the last value repeats.
SCHEDULE: Final = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
JITTER: Final = 0.2
GIVE_UP_AFTER: Final = 5 * 86_400.0  # seconds of failure until an endpoint is disabled
SLOW_DOWN: Final = (429, 502, 503, 504)
LONGEST_RETRY_AFTER: Final = 3_600.0
GONE: Final = 410  # the endpoint wants no more messages
TEST: Final = "webhook.test"  # type of a test message
REDIRECT: Final = "redirects are not followed: add the endpoint with the final URL"
HINTS: Final = {  # the usual cause of a status
    401: "does the receiver have the secret that --add or --rotate printed?",
    403: "does the receiver have the secret that --add or --rotate printed?",
    404: "is the path of the URL right?",
    405: "the receiver must accept POST",
}
NOT_PUBLIC_WHY: Final = "its address is not public"
UNDECRYPTABLE: Final = "its secret cannot be decrypted: add its key to the ring, or rotate it"
NOT_PUBLIC: Final = (
    "its address is not public; 'fastevm pay run --private' delivers to private addresses"
)


def new_secret() -> str:
    """Returns a random endpoint secret, in the format that the receiver configures."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Returns a value of the header ``webhook-signature``. Raises InvalidTerms for a bad secret."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidTerms("secret: expected whsec_ and base64") from None
    if not key:
        raise InvalidTerms("secret: it is empty, so anybody could sign")
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def verified(
    secret: str, headers: Any, body: bytes, *, now: float | None = None, tolerance: int = TOLERANCE
) -> bool:
    """Returns whether a webhook's signature is valid. Receivers call it.

    Compares in constant time. ``headers`` maps names in any case to text. It may be a mapping or
    the headers of any framework, such as Flask's, which have ``items()`` but are no mapping. Raises
    InvalidTerms if the secret is empty or cannot be decoded, if the headers have no ``items()``, or
    if the body is not bytes.
    """
    if not callable(getattr(headers, "items", None)):
        raise InvalidTerms(f"headers: expected a mapping, found {type(headers).__name__}")
    if not isinstance(body, bytes):
        raise InvalidTerms(f"body: expected the bytes of the request, found {type(body).__name__}")
    if not isinstance(secret, str):
        raise InvalidTerms(f"secret: expected text, found {type(secret).__name__}")
    named = {str(name).lower(): value for name, value in headers.items()}
    try:
        message_id, timestamp = str(named["webhook-id"]), int(named["webhook-timestamp"])
        signatures = str(named["webhook-signature"])
    except (KeyError, ValueError, TypeError):
        return False
    if not (message_id.isascii() and signatures.isascii()):
        return False
    if abs((time.time() if now is None else now) - timestamp) > tolerance:
        return False
    expected = signature(secret, message_id, timestamp, body)
    return any(
        hmac.compare_digest(part.encode(), expected.encode()) for part in signatures.split(" ")
    )


def body_of(notice: Notice) -> bytes:
    """Returns the posted JSON: type, time, and the complete new state."""
    at = datetime.fromtimestamp(notice.at, UTC).isoformat(timespec="milliseconds")
    data = {**notice.data, "sequence": notice.sequence}
    content = {"type": notice.type, "timestamp": at.replace("+00:00", "Z"), "data": data}
    return json.dumps(content, separators=(",", ":")).encode()


# --- endpoints ------------------------------------------------------------------------------------


def add_endpoint(store: Store, vault: Vault, name: str, url: str) -> str:
    """Adds an endpoint for new notices. Returns its signing secret, which is shown only once.

    Raises VaultError if the vault lacks the store's key; so does :func:`rotate_secret`.
    """
    text(name, "endpoint", longest=100, least=1)
    text(url, "url", longest=LONGEST_URL, least=1)
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise InvalidTerms("url: expected http or https")
    check_key(store, vault)
    secret = new_secret()
    made = Endpoint(id=name, url=url, sealed=b"", shop=store.shop)
    sealed = vault.seal(secret.encode(), made.seal_context)
    store.add_endpoint(replace(made, sealed=sealed))
    return secret


def rotate_secret(store: Store, vault: Vault, name: str) -> str:
    """Gives an endpoint a new secret and returns it. Raises UnknownOrder for an unknown endpoint.

    Until the next rotation, notices are signed with both the new and the old secret.
    """
    found = next((endpoint for endpoint in store.endpoints() if endpoint.id == name), None)
    if found is None:
        raise UnknownOrder(f"no endpoint has the id {name!r}")
    check_key(store, vault)
    secret = new_secret()
    sealed = vault.seal(secret.encode(), found.seal_context)
    store.change_endpoint(name, sealed=sealed, previous=found.sealed)
    return secret


# --- sending --------------------------------------------------------------------------------------


class Attempt(NamedTuple):
    """The result of one request: the HTTP status, or 0 and the reason why there was no answer."""

    status: int = 0
    why: str = ""
    retry_after: float | None = None  # seconds

    @property
    def ok(self) -> bool:
        """Whether the endpoint has accepted the message."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The HTTP status, or the reason why there is none."""
        return str(self.status) if self.status else self.why

    @property
    def shown(self) -> str:
        """The text for people, with the usual cause of some statuses."""
        if not self.status:
            return NOT_PUBLIC if self.why == NOT_PUBLIC_WHY else self.why
        hint = HINTS.get(self.status, REDIRECT if 300 <= self.status < 400 else "")
        return f"status {self.status} ({hint})" if hint else f"status {self.status}"


class Sender:
    """Delivers pending notices; any number of processes may do so concurrently.

    ``private`` allows endpoints with private addresses, such as loopback.
    """

    def __init__(
        self,
        store: OutboxStore,
        vault: Vault,
        *,
        private: bool = False,
        metrics: Metrics | None = None,
        schedule: Sequence[float] = SCHEDULE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store, self.vault, self.private = store, vault, private
        self.metrics, self.schedule = metrics or Metrics(), tuple(schedule)
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Closes the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def run(self) -> None:
        """Delivers until cancelled; errors are logged, counted and retried."""
        watch = None
        try:
            while True:
                try:
                    if watch is None:
                        watch = await to_thread(self.store.watch)
                    if not await self.once():
                        await to_thread(watch.wait, IDLE_SECONDS)
                except Exception as error:  # the sender must keep running
                    watch = None
                    self.metrics.count("webhooks_total", outcome=type(error).__name__)
                    log.warning("webhooks are not sent: %s", type(error).__name__)
                    await asyncio.sleep(IDLE_SECONDS)
        finally:
            await self.close()

    async def once(self) -> int:
        """Delivers what is due now, one notice per order. Returns the number of attempts."""
        found = await to_thread(self.store.claim_deliveries, LEASE_SECONDS, AT_ONCE)
        endpoints = {endpoint.id: endpoint for endpoint in await to_thread(self.store.endpoints)}
        results = await asyncio.gather(
            *(self._deliver(delivery, endpoints.get(delivery.endpoint)) for delivery in found),
            return_exceptions=True,
        )
        failures: dict[str, list[str]] = {}
        for delivery, result in zip(found, results, strict=True):
            if isinstance(result, str):
                failures.setdefault(delivery.endpoint, []).append(result)
        for endpoint, (first, *others) in failures.items():
            more = f" (and {len(others)} more of this pass)" if others else ""
            target = shown_address(endpoints[endpoint].url)
            log.warning("webhook endpoint %s at %s: %s%s", endpoint, target, first, more)
        for result in results:  # after all were tried
            if isinstance(result, BaseException):
                raise result
        return len(found)

    async def test(self, name: str) -> Attempt:
        """Posts a signed message of type ``webhook.test`` to an endpoint; returns the result.

        The message belongs to no order, and is not repeated if it fails. Raises UnknownOrder for an
        unknown endpoint.
        """
        known = {endpoint.id: endpoint for endpoint in await to_thread(self.store.endpoints)}
        if name not in known:
            raise UnknownOrder(f"no endpoint has the id {name!r}")
        notice = Notice(
            number=0, shop=known[name].shop, order_id="", sequence=0, type=TEST,
            at=self._clock(), data={"order": ""},
        )  # fmt: skip
        # each test has another id, so that no receiver ignores it
        return await self._post(notice, known[name], f"test_{secrets.token_hex(8)}")

    async def _deliver(self, delivery: Delivery, endpoint: Endpoint | None) -> str | None:
        """Makes one attempt. Returns what to log if it failed."""
        if endpoint is None or endpoint.disabled:  # disabled after the delivery was claimed
            await to_thread(self.store.delivered, delivery, DeliveryState.WAITING, "disabled")
            return None
        result = await self._post(delivery.notice, endpoint)
        self.metrics.count("webhooks_total", outcome="delivered" if result.ok else "failed")
        if result.ok:
            await to_thread(self._arrived, delivery, endpoint, result.status)
            return None
        if result.status == GONE:
            await to_thread(self.store.change_endpoint, endpoint.id, disabled=True)
            await to_thread(self.store.delivered, delivery, DeliveryState.WAITING, result.text)
            return f"it answered 410 Gone and is disabled: --enable {endpoint.id} enables it again"
        return await to_thread(self._failed, delivery, endpoint, result)

    def _arrived(self, delivery: Delivery, endpoint: Endpoint, status: int) -> None:
        self.store.delivered(delivery, DeliveryState.DONE, str(status))
        if endpoint.failing_since is not None:
            self.store.change_endpoint(endpoint.id, failing_since=None)

    def _failed(self, delivery: Delivery, endpoint: Endpoint, result: Attempt) -> str:
        """Schedules the next attempt. Returns what to log."""
        now = self._clock()
        wait = self.schedule[min(delivery.attempts, len(self.schedule)) - 1]
        wait *= 1 + JITTER * random.random()
        if result.retry_after is not None:
            wait = max(wait, min(result.retry_after, LONGEST_RETRY_AFTER))
        self.store.delivered(delivery, DeliveryState.WAITING, result.text, now + wait)
        notice = delivery.notice
        text = (
            f"attempt {delivery.attempts} to deliver {notice.id} ({notice.type}) failed:"
            f" {result.shown}; next attempt in {wait:.0f} s"
        )
        if endpoint.failing_since is None:
            self.store.change_endpoint(endpoint.id, failing_since=now)
        elif now - endpoint.failing_since > GIVE_UP_AFTER:
            self.store.change_endpoint(endpoint.id, disabled=True)
            return f"{text}; it has failed for days and is disabled"
        return f"{text}, or now with --retry {endpoint.id}"

    def _secrets(self, endpoint: Endpoint) -> list[str]:
        """Returns the secret and, if it can be decrypted, the previous secret.

        Raises VaultError if the current secret cannot be decrypted.
        """
        found = [self.vault.open(endpoint.sealed, endpoint.seal_context).decode()]
        if endpoint.previous is not None:
            with contextlib.suppress(VaultError):
                found.append(self.vault.open(endpoint.previous, endpoint.seal_context).decode())
        return found

    async def _post(self, notice: Notice, endpoint: Endpoint, message_id: str = "") -> Attempt:
        """Posts a notice. Returns the result even if the request fails or is not made."""
        message_id = message_id or notice.id
        body, timestamp = body_of(notice), int(self._clock())
        try:
            parts = [
                signature(secret, message_id, timestamp, body) for secret in self._secrets(endpoint)
            ]
        except VaultError as error:
            log.error("webhook endpoint %s: its secret cannot be decrypted: %s", endpoint.id, error)
            return Attempt(why=UNDECRYPTABLE)
        headers = {
            "content-type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(parts),
        }
        try:
            async with (
                asyncio.timeout(POST_SECONDS),
                self._connected().post(
                    endpoint.url, data=body, headers=headers, allow_redirects=False
                ) as response,
            ):
                return Attempt(response.status, retry_after=_retry_after(response))
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            if _is_refused(error):
                return Attempt(why=NOT_PUBLIC_WHY)
            return Attempt(why=_why(error))

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = (
                aiohttp.TCPConnector(limit=AT_ONCE) if self.private else public_connector(AT_ONCE)
            )
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session


def _why(error: Exception) -> str:
    """Describes why there was no answer, without the URL, which may contain a secret."""
    if isinstance(error, TimeoutError):
        return f"no answer within {POST_SECONDS:.0f} s"
    if isinstance(error, aiohttp.ClientSSLError):
        return "no TLS connection"
    return f"no answer: {reason_of(error)}"


def _is_refused(error: BaseException | None) -> bool:
    """Whether an error, or an error wrapped in it, says that the address is not public."""
    while error is not None:
        if isinstance(error, NotPublic):
            return True
        error = error.__cause__ or error.__context__
    return False


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    if response.status not in SLOW_DOWN:
        return None
    header = response.headers.get("retry-after", "")
    return float(header) if header.isascii() and header.isdigit() else None


# --- the stream -----------------------------------------------------------------------------------


async def stream(
    store: OutboxStore, after: int | None = None, *, order_id: str | None = None
) -> AsyncGenerator[Notice, None]:
    """Yields the notices that all processes write, forever, each once and in order.

    ``after`` is the number of the last notice seen. The default yields only new notices. Waits
    while the store is unavailable.
    """
    watch = None
    try:
        while True:
            with contextlib.suppress(PaymentError):
                if watch is None:
                    watch = await to_thread(store.watch)
                if after is None:
                    after = await to_thread(store.newest_notice)
                while page := await to_thread(store.notices, after, order_id=order_id):
                    for notice in page:
                        after = notice.number
                        yield notice
                await to_thread(watch.wait, IDLE_SECONDS)
                continue
            watch = None
            await asyncio.sleep(IDLE_SECONDS)
    finally:
        if watch is not None:
            watch.close()
