"""Common code of the subcommands: options, selection of store and shop, and the merchant.

A command that sends transactions or encrypts data begins with a check that the store's key is in an
environment variable. A command that sends transactions also checks that the node has the shop's
chain id.
"""

import argparse
import asyncio
import os
import re
import sys
from asyncio import to_thread
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from aiohttp import web
from eth_utils.address import to_checksum_address

from fastevm.payments.authorization import Domain, address
from fastevm.payments.errors import (
    InvalidTerms,
    PaymentError,
    StoreError,
    StoreUnavailable,
)
from fastevm.payments.merchant import Merchant
from fastevm.payments.node import NodeClient
from fastevm.payments.policy import TAGS, Policy
from fastevm.payments.restarts import lost_chain
from fastevm.payments.signatures import key_bytes
from fastevm.payments.signer import KeySigner
from fastevm.payments.store import Store, every_order, open_store
from fastevm.payments.store_key import check_key
from fastevm.payments.tokens import Money, Token, known
from fastevm.payments.vault import KEY_VARIABLE, Vault
from fastevm.rpc_client.asynchronous import reason_of

STORE_VARIABLE: Final = "FASTEVM_PAYMENTS_STORE"
NODE_VARIABLE: Final = "FASTEVM_PAYMENTS_NODE"
SIGNER_VARIABLE: Final = "FASTEVM_PAYMENTS_SIGNER"
STORE_HINT: Final = f"pass --store or set {STORE_VARIABLE}"
DEFAULT_STORE: Final = "sqlite:///payments.db"
DEFAULT_NODE: Final = "http://127.0.0.1:8545"
X402_COMMANDS: Final = "list, show, export, doctor and rotate-keys"
ASK_SECONDS: Final = 3.0  # seconds; timeout for reading a token's symbol and decimals from the node


class OnlySold(InvalidTerms):
    """Raised if a command needs a merchant's shop, but the selected shop is a facilitator's."""


_SHOP: Final = re.compile(r"\d{1,78}/0x[0-9a-fA-F]{40}/0x[0-9a-fA-F]{40}")
_X402: Final = re.compile(r"x402/\d{1,78}")  # the payments of a facilitator or paywall


def add_store(parser: argparse.ArgumentParser) -> None:
    """Adds the options of every command."""
    parser.add_argument(
        "--store", metavar="URL", default=os.environ.get(STORE_VARIABLE, DEFAULT_STORE),
        help=f"sqlite:///path or postgresql://host/name (${STORE_VARIABLE}, {DEFAULT_STORE})",
    )  # fmt: skip
    parser.add_argument(
        "--shop",
        metavar="NAME",
        type=shop_name,
        help="chain/token/recipient, or x402/chain; required if the store has several",
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


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """Adds ``--timeout`` of commands that wait for the chain."""
    parser.add_argument(
        "--timeout", type=seconds, default=60.0, metavar="SECONDS",
        help="how many seconds to wait for the chain (default: %(default)g)",
    )  # fmt: skip


def account(value: str) -> str:
    """Parses an address; returns it with its checksum."""
    try:
        return address(value, "address")
    except InvalidTerms as error:
        reason = str(error).removeprefix("address: ")
        raise argparse.ArgumentTypeError(f"invalid value {value!r}: {reason}") from None


def store_of(url: str, *, create: bool = True, hint: str = STORE_HINT) -> Store:
    """Opens the store at ``--store``. Raises InvalidTerms, or StoreUnavailable.

    ``hint`` says how to select another store.
    """
    try:
        return open_store(url, create=create)
    except StoreUnavailable:
        raise
    except StoreError as error:
        if not create and "does not exist" in str(error):
            hint += ", or take the first order, which creates it"
        raise InvalidTerms(f"{error}: {hint}") from None


async def listen(runner: web.AppRunner, host: str, port: int) -> int:
    """Listens and returns the port. Raises InvalidTerms if that is not possible."""
    if runner.server is None:
        await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        raise InvalidTerms(f"cannot listen on {host}:{port}: {reason_of(error)}") from None
    found: int = runner.addresses[0][1]
    return found


def node_of(url: str) -> NodeClient:
    """Returns a client of the node at ``--node``. Raises InvalidTerms for an invalid URL."""
    try:
        return NodeClient(url)
    except InvalidTerms as error:
        raise InvalidTerms(f"--{error}") from None


def shop_of(arguments: argparse.Namespace, *, create: bool = False, x402: bool = False) -> Store:
    """Opens the store at the selected shop; ``create`` creates a missing store.

    ``x402`` also accepts ``x402/CHAIN``, the payments of a facilitator or paywall. Raises
    InvalidTerms if the selection is ambiguous or the store cannot be opened.
    """
    shop = arguments.shop
    if shop is not None and _X402.fullmatch(shop) is not None and not x402:
        raise OnlySold(
            f"--shop {shop}: only {X402_COMMANDS} accept payments of a facilitator or paywall"
        )
    check_shop(shop)
    store = store_of(arguments.store, create=create)
    if shop is not None:
        if not create:
            _check_known(store, shop)
        return store.scoped(shop)
    every = store.shops()
    shops = [name for name in every if not name.startswith("x402/")] or (every if x402 else [])
    if not shops and every:
        store.close()
        raise OnlySold(
            f"the store has only payments of a facilitator or paywall: {X402_COMMANDS} accept them"
        )
    if len(shops) != 1:
        store.close()
        raise InvalidTerms(no_shop(shops))
    return store.scoped(shops[0])


def _check_known(store: Store, shop: str) -> None:
    """Closes the store and raises InvalidTerms if the store does not have this shop."""
    found, shops = store.scoped(shop), store.shops()
    if shop not in shops and not found.endpoints() and found.key_check() is None:
        store.close()
        known = f"it has {', '.join(shops)}" if shops else "it has no order yet"
        raise InvalidTerms(f"--shop {shop}: the store has no such shop: {known}")


def shop_name(text: str) -> str:
    """Returns a shop's name as the store spells it: with checksummed addresses."""
    if _SHOP.fullmatch(text) is None:
        return text  # `check_shop` reports a name that has another form
    chain_id, *addresses = text.split("/")
    return "/".join((str(int(chain_id)), *map(to_checksum_address, addresses)))


def check_shop(shop: str | None) -> None:
    """Raises InvalidTerms unless ``--shop`` is missing or has the form of a shop's name."""
    if shop is not None and _SHOP.fullmatch(shop) is None and _X402.fullmatch(shop) is None:
        raise InvalidTerms(
            f"--shop {shop!r}: expected chain/token/recipient or x402/chain,"
            " where token and recipient are addresses"
        )


def no_shop(shops: Sequence[str]) -> str:
    """Explains why no shop is selected: the store has none, or several."""
    if not shops:
        return (
            "the store has no order yet: name the shop with --shop chain/token/recipient, where"
            " token and recipient are addresses"
        )
    return f"--shop is required: the store has {len(shops)} shops: {', '.join(shops)}"


def signer_of(variable: str = SIGNER_VARIABLE) -> KeySigner:
    """Returns a signer with the key in an environment variable.

    Raises InvalidTerms if the variable has no valid key. The text does not show the key.
    """
    key = os.environ.get(variable)
    if key is None:
        raise InvalidTerms(f"{variable} is not set: set it to a private key, 64 hex digits")
    return KeySigner(key_bytes(key, variable))


class Monies:
    """Finds how to format amounts: as decimals, or in base units if the node lacks the token."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._known: dict[tuple[int, str], Money] = {}

    def of(self, domain: Domain) -> Money:
        """Returns the format for amounts of an order's token."""
        return self.at(domain.chain_id, domain.token)

    def at(self, chain_id: int, token: str) -> Money:
        """Returns the format for amounts of a token."""
        if getattr(self._arguments, "raw", False):  # not all commands have the option
            return Money("", 0)
        key = chain_id, token.lower()
        if key not in self._known:
            self._known[key] = _money(self._arguments.node, chain_id, token)
        return self._known[key]


def money_of(arguments: argparse.Namespace, store: Store) -> Money:
    """Returns the format for amounts of the token of a merchant's shop."""
    chain_id, token, _ = str(getattr(store, "shop", arguments.shop)).split("/")
    return Monies(arguments).at(int(chain_id), token)


def _money(url: str, chain_id: int, token: str) -> Money:
    row = known(chain_id, token)
    if row is not None:
        return Money(row.symbol, row.decimals)

    async def ask() -> Money:
        node = node_of(url)
        try:
            async with asyncio.timeout(ASK_SECONDS):
                found = await Token.of(node, token)
        finally:
            await node.close()
        if found.domain.chain_id != chain_id:
            raise InvalidTerms(f"the node is on chain {found.domain.chain_id}, not {chain_id}")
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


async def check_chain(node: NodeClient, shop: str) -> None:
    """Raises InvalidTerms if the node's chain id is not that of the shop."""
    wanted = shop.split("/")[0]
    found = int(await node.call("eth_chainId"), 16)
    if str(found) != wanted:
        raise InvalidTerms(
            f"--node: the node's chain id is {found}, the shop's is {wanted}: pass another"
            f" node or set {NODE_VARIABLE}"
        )


@asynccontextmanager
async def merchant_of(
    arguments: argparse.Namespace, *, create: bool = False
) -> AsyncIterator[Merchant]:
    """Opens the merchant of the selected shop; with ``create``, the store may be new.

    Raises InvalidTerms if the node's chain id is not that of the shop, and VaultError if the key in
    the environment is not the store's key.
    """
    store = shop_of(arguments, create=create)
    try:
        node = node_of(arguments.node)
        try:
            shop = getattr(store, "shop", arguments.shop)
            vault = Vault.from_environment()
            await check_chain(node, shop)
            await to_thread(check_key, store, vault)
            domain, recipient = await domain_of(store, shop, node)
            async with Merchant(
                node, store, vault, domain, signer_of(),
                policy=Policy(depth=arguments.depth), recipient=recipient,
            ) as merchant:  # fmt: skip
                yield merchant
        finally:
            await node.close()
    finally:
        store.close()


def stranger(merchant: Merchant) -> bool:
    """Whether the signer is neither the shop's recipient nor a sender of its transactions."""
    signer = merchant.signer.address
    return signer != merchant.recipient and not merchant.store.submissions(sender=signer)


def acting(
    arguments: argparse.Namespace,
    act: Callable[[Merchant], Awaitable[tuple[str, bool]]],
    *,
    create: bool = False,
) -> int:
    """Runs ``act`` with the merchant and prints its text. Returns 0 if it succeeded, else 1.

    With ``create``, the store may be new.
    """

    async def run() -> tuple[str, bool]:
        async with merchant_of(arguments, create=create) as merchant:
            if lost := await lost_chain(merchant):
                raise InvalidTerms(f"--node: {lost.text}")
            try:
                text, done = await act(merchant)
            except PaymentError as error:
                error.args = (await _spelled(arguments, merchant, str(error)),)
                raise
            return await _spelled(arguments, merchant, text), done

    text, done = asyncio.run(run())
    print(text)
    return 0 if done else 1


async def _spelled(arguments: argparse.Namespace, merchant: Merchant, message: str) -> str:
    """Converts the amounts in a message from base units of the shop's token to decimals."""
    if " units" not in message:
        return message
    money = await to_thread(money_of, arguments, merchant.store)
    return money.spelled(message)


def shown_time(seconds: float) -> str:
    """Formats a time in UTC, to the second. After the year 9999, formats it as Unix seconds."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"Unix time {int(seconds)}"
