"""Common code of the subcommands: options, selection of store and shop, and the merchant."""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from fastevm.payments.authorization import Domain
from fastevm.payments.errors import InvalidTerms, PaymentError
from fastevm.payments.merchant import Merchant
from fastevm.payments.node import NodeClient
from fastevm.payments.policy import TAGS, Policy
from fastevm.payments.signer import KeySigner
from fastevm.payments.store import Store, every_order, open_store
from fastevm.payments.tokens import Token
from fastevm.payments.vault import KEY_VARIABLE, Vault

STORE_VARIABLE: Final = "FASTEVM_PAYMENTS_STORE"
NODE_VARIABLE: Final = "FASTEVM_PAYMENTS_NODE"
SIGNER_VARIABLE: Final = "FASTEVM_PAYMENTS_SIGNER"
DEFAULT_STORE: Final = "sqlite:///payments.db"
DEFAULT_NODE: Final = "http://127.0.0.1:8545"


def add_store(parser: argparse.ArgumentParser) -> None:
    """Adds the options of every command."""
    parser.add_argument(
        "--store", metavar="URL", default=os.environ.get(STORE_VARIABLE, DEFAULT_STORE),
        help=f"sqlite:///path or postgresql://host/name (${STORE_VARIABLE}, {DEFAULT_STORE})",
    )  # fmt: skip
    parser.add_argument(
        "--shop", metavar="NAME", help="chain/token/recipient; required if the store has several"
    )


def add_node(parser: argparse.ArgumentParser) -> None:
    """Adds the options of commands that need a node and may send transactions."""
    add_store(parser)
    parser.add_argument(
        "--node", metavar="URL", default=os.environ.get(NODE_VARIABLE, DEFAULT_NODE),
        help=f"URL of the node (${NODE_VARIABLE}, {DEFAULT_NODE})",
    )  # fmt: skip
    parser.add_argument(
        "--depth", default="1", metavar="N", help="confirmations, safe or finalized (default: 1)"
    )
    parser.epilog = f"${SIGNER_VARIABLE} is the signing key, ${KEY_VARIABLE} the store's keys."


def shop_of(arguments: argparse.Namespace) -> Store:
    """Opens the store of the selected shop. Raises InvalidTerms if the selection is ambiguous."""
    store = open_store(arguments.store)
    if arguments.shop is not None:
        return store.scoped(arguments.shop)
    shops = [name for name in store.shops() if not name.startswith("x402/")]
    if len(shops) != 1:
        store.close()
        known = ", ".join(shops) or "none"
        raise InvalidTerms(f"--shop is required: the store has {len(shops)} shops: {known}")
    return store.scoped(shops[0])


def signer_of() -> KeySigner:
    """Returns the signer of the key in the environment. Raises InvalidTerms if it is not set."""
    key = os.environ.get(SIGNER_VARIABLE, "")
    if not key:
        raise InvalidTerms(f"{SIGNER_VARIABLE} is not set: set it to the signing key")
    return KeySigner(key)


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
async def merchant_of(arguments: argparse.Namespace) -> AsyncIterator[Merchant]:
    """Opens the merchant of the selected shop."""
    store = shop_of(arguments)
    node = NodeClient(arguments.node)
    try:
        shop = getattr(store, "shop", arguments.shop)
        domain, recipient = await domain_of(store, shop, node)
        depth = arguments.depth if arguments.depth in TAGS else int(arguments.depth)
        async with Merchant(
            node, store, Vault.from_environment(), domain, signer_of(),
            policy=Policy(depth=depth), recipient=recipient,
        ) as merchant:  # fmt: skip
            yield merchant
    finally:
        await node.close()
        store.close()


def acting(arguments: argparse.Namespace, act: Callable[[Merchant], Awaitable[str]]) -> int:
    """Runs ``act`` with the merchant and prints its text. Returns 1 on an error."""

    async def run() -> str:
        async with merchant_of(arguments) as merchant:
            return await act(merchant)

    try:
        print(asyncio.run(run()))
    except PaymentError as error:
        print(f"fastevm pay: {error}", file=sys.stderr)
        return 1
    return 0


def shown_time(seconds: float) -> str:
    """Formats a time in UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
