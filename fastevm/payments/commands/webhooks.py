"""``fastevm pay webhooks``: manages endpoints, lists pending deliveries, replays notices."""

import argparse
import asyncio
import sys
import time
from typing import Final

from yarl import URL

from fastevm.payments.amounts import integer
from fastevm.payments.commands.shared import add_store, shop_of, shown_time
from fastevm.payments.errors import InvalidTerms, UnknownOrder
from fastevm.payments.orders import PAGE
from fastevm.payments.outbox import Delivery, DeliveryState
from fastevm.payments.public_addresses import is_public
from fastevm.payments.store import Store
from fastevm.payments.vault import Vault
from fastevm.payments.webhooks import (
    NOT_PUBLIC,
    Attempt,
    Sender,
    add_endpoint,
    rotate_secret,
)
from fastevm.rpc_client.messages import shown_address

# Texts that earlier versions stored if there was no answer.
_OLD_REASONS: Final = {"": "no answer", "none": "no answer"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_store(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--add",
        nargs=2,
        metavar=("NAME", "URL"),
        help="add an endpoint; prints its secret, only now",
    )
    what.add_argument("--rotate", metavar="NAME", help="print a new secret; the old one signs too")
    what.add_argument(
        "--disable", metavar="NAME", help="deliver nothing; what waits is kept until --enable"
    )
    what.add_argument(
        "--enable",
        metavar="NAME",
        help="deliver what waits, now, and new messages; --replay brings those written meanwhile",
    )
    what.add_argument(
        "--test",
        metavar="NAME",
        help="deliver a message of type webhook.test now; shows the result",
    )
    what.add_argument("--retry", metavar="NAME", help="deliver what waits now, not when it is due")
    what.add_argument(
        "--replay",
        nargs=2,
        metavar=("NAME", "NUMBER"),
        help="deliver again from this message on: the number of its webhook-id, such as evt_34",
    )
    parser.add_argument(
        "--private", action="store_true", help="with --test: allow a private address"
    )


def run(arguments: argparse.Namespace) -> int:
    """Makes the requested change, or lists the endpoints. Returns 1 if a test message failed."""
    if arguments.private and not arguments.test:
        raise InvalidTerms("--private: only --test delivers; pass it to 'fastevm pay run' too")
    store = shop_of(arguments, create=bool(arguments.add) and arguments.shop is not None)
    try:
        if arguments.test:
            return asyncio.run(_test(store, arguments))
        print(_done(store, arguments))
    finally:
        store.close()
    return 0


async def _test(store: Store, arguments: argparse.Namespace) -> int:
    """Delivers a test message and prints the result. Returns 0 if it arrived, else 1."""
    name = arguments.test
    sender = Sender(store, Vault.from_environment(), private=arguments.private)
    begun = time.monotonic()
    try:
        result = await sender.test(name)
    finally:
        await sender.close()
    milliseconds = 1_000 * (time.monotonic() - begun)
    url = next(endpoint.url for endpoint in store.endpoints() if endpoint.id == name)
    outcome = "accepted" if result.ok else "did not accept"
    print(f"{name} at {shown_address(url)} {outcome} the test message: {result.shown}")
    if not result.status:
        return 1
    print(f"It answered after {milliseconds:.0f} ms.")
    return 0 if result.ok else 1


def _reason(status: str) -> str:
    if status.isdigit():
        return Attempt(int(status)).shown
    return _OLD_REASONS.get(status, status)


def next_delivery(delivery: Delivery) -> str:
    """Describes a waiting message: its id, why its last attempt failed, and when it is due."""
    text = f"{delivery.notice.id} ({delivery.notice.type})"
    if delivery.attempts:
        text += f", attempt {delivery.attempts} failed: {_reason(delivery.status)}"
    return f"{text}, due {shown_time(delivery.due)}"


def _check_message(store: Store, number: int) -> None:
    """Raises UnknownOrder if the shop has no message of this number."""
    found = store.notices(number - 1, limit=1)
    if not found or found[0].number != number:
        newest = store.newest_notice()
        hint = f"the newest is evt_{newest}" if newest else "it has none yet"
        raise UnknownOrder(f"--replay: the shop has no message evt_{number}: {hint}")


def _messages(count: int) -> str:
    """Returns ``1 message`` or ``3 messages``, or ``at least N messages`` for a full page."""
    if count == 1:
        return "1 message"
    return f"{count} messages" if count != PAGE else f"at least {count} messages"


def _due_now(store: Store, name: str) -> str:
    """Makes waiting messages due now. Returns what happens next."""
    count = store.hasten(name)
    if not count:
        return "no message waits for it; --test sends it one"
    return (
        f"{_messages(count)} {'is' if count == 1 else 'are'} due now; 'fastevm pay run' delivers"
        " them in order, and logs each failure"
    )


def _done(store: Store, arguments: argparse.Namespace) -> str:
    if arguments.add:
        secret = add_endpoint(store, Vault.from_environment(), *arguments.add)
        # the host as aiohttp normalises it for the connection
        host = URL(arguments.add[1]).host or ""
        if (":" in host or host.replace(".", "").isdigit()) and not is_public(host):
            print(f"{arguments.program}: note: {NOT_PUBLIC}", file=sys.stderr)
        return secret
    if arguments.rotate:
        return rotate_secret(store, Vault.from_environment(), arguments.rotate)
    for name, disabled in ((arguments.disable, True), (arguments.enable, False)):
        if name:
            store.change_endpoint(name, disabled=disabled)
            if disabled:
                what = _messages(len(store.deliveries(name, DeliveryState.WAITING)))
                return f"{name} is disabled; {what} kept until it is enabled"
            return f"{name} is enabled; {_due_now(store, name)}"
    if arguments.retry:
        return f"{arguments.retry}: {_due_now(store, arguments.retry)}"
    if arguments.replay:
        name, first = arguments.replay
        number = first.removeprefix("evt_")
        if not (number.isascii() and number.isdigit()):
            raise InvalidTerms(
                f"--replay: expected the number of a webhook-id, such as evt_34, found {first!r}"
            )
        first_number = integer(number, "--replay")
        _check_message(store, first_number)
        count = store.replay(name, first_number)
        return f"{_messages(count)} will be delivered again, while 'fastevm pay run' runs"
    lines = []
    for endpoint in store.endpoints():
        waiting = store.deliveries(endpoint.id, DeliveryState.WAITING)
        state = "disabled" if endpoint.disabled else "failing" if endpoint.failing_since else "ok"
        url = URL(endpoint.url).with_user(None)  # without a password
        lines.append(f"{endpoint.id}  {state}  {len(waiting)} waiting  {url}")
        if waiting and not endpoint.disabled:
            lines.append(f"    next: {next_delivery(waiting[0])}")
    return "\n".join(lines) or "no endpoints"
