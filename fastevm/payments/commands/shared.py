"""Common code of the subcommands: options, selection of store and shop, and the merchant."""

import argparse
import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from fastevm.payments.authorization import Domain
from fastevm.payments.errors import InvalidTerms, PaymentError, StoreError, StoreUnavailable
from fastevm.payments.merchant import Merchant
from fastevm.payments.node import NodeClient
from fastevm.payments.policy import TAGS, Policy
from fastevm.payments.signer import KeySigner
from fastevm.payments.store import Store, every_order, open_store
from fastevm.payments.tokens import Money, Token, known
from fastevm.payments.vault import KEY_VARIABLE, Vault

STORE_VARIABLE: Final = "FASTEVM_PAYMENTS_STORE"
NODE_VARIABLE: Final = "FASTEVM_PAYMENTS_NODE"
SIGNER_VARIABLE: Final = "FASTEVM_PAYMENTS_SIGNER"
DEFAULT_STORE: Final = "sqlite:///payments.db"
DEFAULT_NODE: Final = "http://127.0.0.1:8545"
ASK_SECONDS: Final = 3.0  # for a node that only knows how to show amounts

_SHOP: Final = re.compile(r"\d{1,78}/0x[0-9a-fA-F]{40}/0x[0-9a-fA-F]{40}")


def add_store(parser: argparse.ArgumentParser) -> None:
    """Adds the options of every command."""
    parser.add_argument(
        "--store", metavar="URL", default=os.environ.get(STORE_VARIABLE, DEFAULT_STORE),
        help=f"sqlite:///path or postgresql://host/name (${STORE_VARIABLE}, {DEFAULT_STORE})",
    )  # fmt: skip
    parser.add_argument(
        "--shop", metavar="NAME", help="chain/token/recipient; required if the store has several"
    )


def add_amounts(parser: argparse.ArgumentParser) -> None:
    """Adds the options of commands that show or take amounts."""
    add_store(parser)
    _add_url(parser)
    parser.add_argument("--raw", action="store_true", help="amounts in base units of the token")


def _add_url(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--node", metavar="URL", default=os.environ.get(NODE_VARIABLE, DEFAULT_NODE),
        help=f"URL of the node (${NODE_VARIABLE}, {DEFAULT_NODE})",
    )  # fmt: skip


def add_node(parser: argparse.ArgumentParser) -> None:
    """Adds the options of commands that need a node and may send transactions."""
    if not any(action.dest == "node" for action in parser._actions):
        add_store(parser)
        _add_url(parser)
    parser.add_argument(
        "--depth", default="1", type=depth, metavar="N",
        help="confirmations, safe or finalized (default: 1)",
    )  # fmt: skip
    parser.epilog = f"${SIGNER_VARIABLE} is the signing key, ${KEY_VARIABLE} the store's keys."


def depth(value: str) -> int | str:
    """Parses ``--depth``."""
    if value in TAGS:
        return value
    if not (value.isascii() and value.isdigit() and 1 <= int(value) <= 1_000_000):
        raise argparse.ArgumentTypeError(
            f"invalid value {value!r}: expected a number >= 1, {' or '.join(TAGS)}"
        )
    return int(value)


def seconds(value: str) -> float:
    """Parses a number of seconds."""
    try:
        found = float(value)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1e9:
        raise argparse.ArgumentTypeError(f"invalid value {value!r}: expected seconds >= 0")
    return found


def shop_of(arguments: argparse.Namespace, *, create: bool = False) -> Store:
    """Opens the store of the selected shop; ``create``: also one that does not exist.

    Raises InvalidTerms if the selection is ambiguous or the store cannot be opened.
    """
    if arguments.shop is not None and _SHOP.fullmatch(arguments.shop) is None:
        raise InvalidTerms(f"--shop {arguments.shop!r}: expected chain/token/recipient")
    try:
        store = open_store(arguments.store, create=create)
    except StoreUnavailable:
        raise
    except StoreError as error:
        raise InvalidTerms(f"{error}: pass --store or set {STORE_VARIABLE}") from None
    if arguments.shop is not None:
        return store.scoped(arguments.shop)
    shops = [name for name in store.shops() if not name.startswith("x402/")]
    if not shops:
        store.close()
        raise InvalidTerms("the store has no order yet: a shop begins with its first draft")
    if len(shops) != 1:
        store.close()
        known = ", ".join(shops) or "none"
        raise InvalidTerms(f"--shop is required: the store has {len(shops)} shops: {known}")
    return store.scoped(shops[0])


def signer_of(variable: str = SIGNER_VARIABLE) -> KeySigner:
    """Returns the signer of the key in a variable. Raises InvalidTerms, without the key."""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise InvalidTerms(f"{variable} is not set: set it to a private key, 64 hex digits")
    try:
        return KeySigner(key)
    except InvalidTerms:
        raise InvalidTerms(
            f"{variable}: expected a private key of 64 hex digits, found {len(key)} characters"
        ) from None


def money_of(arguments: argparse.Namespace, store: Store) -> Money:
    """Returns how to show the shop's amounts; in units if the node does not know the token."""
    chain_id, token, _ = str(getattr(store, "shop", arguments.shop)).split("/")
    if arguments.raw:
        return Money("", 0)
    row = known(int(chain_id), token)
    if row is not None:
        return Money(row.symbol, row.decimals)

    async def ask() -> Money:
        node = NodeClient(arguments.node)
        try:
            async with asyncio.timeout(ASK_SECONDS):
                found = await Token.of(node, token)
        finally:
            await node.close()
        if str(found.domain.chain_id) != chain_id:
            raise InvalidTerms(f"it is on chain {found.domain.chain_id}, not {chain_id}")
        return found.money

    try:
        return asyncio.run(ask())
    except (PaymentError, TimeoutError) as error:
        why = str(error) or "no answer"
        print(
            f"fastevm pay: amounts are in base units: token {token} could not be read: {why}",
            file=sys.stderr,
        )
        return Money("", 0)


async def domain_of(store: Store, shop: str, node: NodeClient) -> tuple[Domain, str]:
    """Returns token and recipient of a shop, from its first order or from the chain."""
    chain_id, token, recipient = shop.split("/")
    for order in every_order(store):
        return order.authorization.domain, recipient
    found = await Token.of(node, token)
    if str(found.domain.chain_id) != chain_id:
        raise InvalidTerms(f"--shop: the node has chain id {found.domain.chain_id}, not {chain_id}")
    return found.domain, recipient


@asynccontextmanager
async def merchant_of(
    arguments: argparse.Namespace, *, create: bool = False
) -> AsyncIterator[Merchant]:
    """Opens the merchant of the selected shop; ``create``: also in a store that is new."""
    store = shop_of(arguments, create=create)
    try:
        node = NodeClient(arguments.node)
    except ValueError as error:
        raise InvalidTerms(f"--node: {error}") from None
    try:
        shop = getattr(store, "shop", arguments.shop)
        domain, recipient = await domain_of(store, shop, node)
        async with Merchant(
            node, store, Vault.from_environment(), domain, signer_of(),
            policy=Policy(depth=arguments.depth), recipient=recipient,
        ) as merchant:  # fmt: skip
            yield merchant
    finally:
        await node.close()
        store.close()


def acting(
    arguments: argparse.Namespace,
    act: Callable[[Merchant], Awaitable[tuple[str, bool]]],
    *,
    create: bool = False,
) -> int:
    """Runs ``act`` with the merchant and prints its text. Returns 0 if it succeeded, else 1.

    ``create``: the store may be new.
    """

    async def run() -> tuple[str, bool]:
        async with merchant_of(arguments, create=create) as merchant:
            return await act(merchant)

    text, done = asyncio.run(run())
    print(text)
    return 0 if done else 1


def shown_time(seconds: float) -> str:
    """Formats a time in UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
