"""``fastevm pay webhooks``: manages endpoints, lists pending deliveries, replays notices."""

import argparse
import sys
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
from fastevm.payments.webhooks import NOT_PUBLIC, add_endpoint, rotate_secret

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
        help="deliver what waits and new messages; --replay brings those written meanwhile",
    )
    what.add_argument(
        "--replay",
        nargs=2,
        metavar=("NAME", "NUMBER"),
        help="deliver again from this message on: the number of its webhook-id, such as evt_34",
    )


def run(arguments: argparse.Namespace) -> int:
    """Makes the requested change, or lists the endpoints."""
    store = shop_of(arguments, create=bool(arguments.add) and arguments.shop is not None)
    try:
        print(_done(store, arguments))
    finally:
        store.close()
    return 0


def _reason(status: str) -> str:
    return f"status {status}" if status.isdigit() else _OLD_REASONS.get(status, status)


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


def _done(store: Store, arguments: argparse.Namespace) -> str:
    if arguments.add:
        secret = add_endpoint(store, Vault.from_environment(), *arguments.add)
        host = URL(arguments.add[1]).host or ""  # normalised as for the connection
        if (":" in host or host.replace(".", "").isdigit()) and not is_public(host):
            print(f"{arguments.program}: note: {NOT_PUBLIC}", file=sys.stderr)
        return secret
    if arguments.rotate:
        return rotate_secret(store, Vault.from_environment(), arguments.rotate)
    for name, disabled in ((arguments.disable, True), (arguments.enable, False)):
        if name:
            store.change_endpoint(name, disabled=disabled)
            what = _messages(len(store.deliveries(name, DeliveryState.WAITING)))
            if disabled:
                return f"{name} is disabled; {what} kept until it is enabled"
            return f"{name} is enabled; {what} will be delivered, while 'fastevm pay run' runs"
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
