"""What the commands share: where orders are, which shop, and a merchant for those that act."""

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
    """The options of every command."""
    parser.add_argument(
        "--store", metavar="URL", default=os.environ.get(STORE_VARIABLE, DEFAULT_STORE),
        help=f"sqlite:///path or postgresql://host/name (${STORE_VARIABLE}, {DEFAULT_STORE})",
    )  # fmt: skip
    parser.add_argument(
        "--shop", metavar="NAME", help="chain/token/recipient; needed where a store has several"
    )


def add_node(parser: argparse.ArgumentParser) -> None:
    """The options of a command that asks the chain, and may send transactions."""
    add_store(parser)
    parser.add_argument(
        "--node", metavar="URL", default=os.environ.get(NODE_VARIABLE, DEFAULT_NODE),
        help=f"where the node answers (${NODE_VARIABLE}, {DEFAULT_NODE})",
    )  # fmt: skip
    parser.add_argument(
        "--depth", default="1", metavar="N", help="blocks, or safe, or finalized (default: 1)"
    )
    parser.epilog = f"The key that signs is in ${SIGNER_VARIABLE}, the store's in ${KEY_VARIABLE}."


def shop_of(arguments: argparse.Namespace) -> Store:
    """The store as the wanted shop sees it; InvalidTerms when it is not clear which one."""
    store = open_store(arguments.store)
    if arguments.shop is not None:
        return store.scoped(arguments.shop)
    shops = [one for one in store.shops() if not one.startswith("x402/")]
    if len(shops) != 1:
        store.close()
        known = ", ".join(shops) or "none"
        raise InvalidTerms(f"--shop: the store has {len(shops)} shops: {known}")
    return store.scoped(shops[0])


def signer_of() -> KeySigner:
    """The key in the environment; InvalidTerms without one."""
    key = os.environ.get(SIGNER_VARIABLE, "")
    if not key:
        raise InvalidTerms(f"{SIGNER_VARIABLE} is not set: it holds the key that signs")
    return KeySigner(key)


async def domain_of(store: Store, shop: str, node: NodeClient) -> tuple[Domain, str]:
    """The token and the recipient of a shop: from its first order, or from the chain."""
    chain_id, token, recipient = shop.split("/")
    for order in every_order(store):
        return order.authorization.domain, recipient
    found = await Token.of(node, token)
    if str(found.domain.chain_id) != chain_id:
        raise InvalidTerms(f"--shop: the node's chain is {found.domain.chain_id}, not {chain_id}")
    return found.domain, recipient


@asynccontextmanager
async def merchant_of(arguments: argparse.Namespace) -> AsyncIterator[Merchant]:
    """The back end of the wanted shop."""
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
    """Do something with the merchant, and print what it says; 1 when it is refused."""

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
    """A moment in UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
