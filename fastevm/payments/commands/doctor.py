"""``fastevm pay doctor``: checks node, chain, token, keys, gas, clock and store.

A check that cannot be made is reported as a finding too. If the node, the signer, the store key or
an order is missing, the remaining checks still run.
"""

import argparse
import asyncio
import contextlib
import os
import time
from asyncio import to_thread
from typing import Any, Final, NamedTuple

from fastevm.payments.calls import call_data, separator_data
from fastevm.payments.chain import FEE_CALLS, Chain, head_of, quote_of
from fastevm.payments.commands.shared import (
    SIGNER_VARIABLE,
    Monies,
    account,
    add_node,
    check_shop,
    domain_of,
    no_shop,
    node_of,
    signer_of,
    store_of,
    stranger,
)
from fastevm.payments.commands.webhooks import next_delivery
from fastevm.payments.erc6492 import MULTICALL
from fastevm.payments.errors import InvalidTerms, NodeRefusal, PaymentError, VaultError
from fastevm.payments.events import Checkpoint
from fastevm.payments.merchant import Merchant
from fastevm.payments.node import NodeClient
from fastevm.payments.outbox import DeliveryState
from fastevm.payments.policy import Policy
from fastevm.payments.restarts import lost_chain
from fastevm.payments.signer import KeySigner
from fastevm.payments.store import Store, every_order
from fastevm.payments.store_key import OPEN, SAMPLE, WRONG_KEY, holds_key, opens
from fastevm.payments.vault import KEY_LENGTH, KEY_VARIABLE, Vault
from fastevm.payments.x402.program import SIGNER_VARIABLE as FACILITATOR_VARIABLE

LATE_BLOCKS: Final = 10  # a node counts as behind after so many block times without a new block
CLOCK_SECONDS: Final = 30  # seconds by which the newest block may be ahead of the clock
CAPTURE_GAS: Final = 150_000
LEAST_CAPTURES: Final = 10  # captures for which the account must be able to pay the gas
STUCK_SECONDS: Final = 600.0
LAG_SECONDS: Final = 60.0
MOST_TRIED: Final = 1_000  # maximum number of encrypted values that the check decrypts


class Finding(NamedTuple):
    """The result of one check."""

    name: str
    ok: bool
    detail: str


class Watcher:
    """Stands in for the signer of a shop that has no signing key. Signing raises InvalidTerms."""

    def __init__(self, address: str) -> None:
        self.address = address

    async def sign_transaction(self, fields: dict[str, Any]) -> bytes:
        """Raises InvalidTerms."""
        raise InvalidTerms(f"{SIGNER_VARIABLE} is not set")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_node(parser)
    parser.add_argument(
        "--spender",
        type=account,
        metavar="ADDRESS",
        help="check that this contract has an allowance of the recipient",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the findings. Returns 1 if one of them fails."""
    found = asyncio.run(findings(arguments))
    for finding in found:
        print(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name:<10}  {finding.detail}")
    return 0 if all(finding.ok for finding in found) else 1


async def findings(arguments: argparse.Namespace) -> list[Finding]:
    """Runs all checks that are possible. Raises InvalidTerms for an option that is invalid."""
    check_shop(arguments.shop)
    async with contextlib.AsyncExitStack() as stack:
        node = node_of(arguments.node)
        stack.push_async_callback(node.close)
        found, store = await to_thread(_opened, arguments)
        if store is not None:
            stack.callback(store.close)
        shop = arguments.shop or ("" if store is None else store.shop)
        vault = _vault(found)
        signer = _signer(found, FACILITATOR_VARIABLE if _sold(shop) else SIGNER_VARIABLE, shop)
        chain_id = await _chain_id(found, node, shop)
        if store is not None and vault is not None and shop:
            found.append(await to_thread(_store_key, store, vault))
        if _sold(shop) and store is not None:
            found += await _facilitator(node, store, signer, chain_id)
        elif shop and store is not None:
            found += await _shop(arguments, node, store, vault, signer, chain_id)
        elif chain_id is not None:
            found += await _head(node, Chain(node, chain_id, Policy()))
            found += [] if signer is None else [await _gas(node, signer.address, Policy())]
        return found + (await to_thread(_rows, store) if store is not None and shop else [])


def _sold(shop: str) -> bool:
    """Whether the shop belongs to a facilitator or a paywall, not to a merchant."""
    return shop.startswith("x402/")


# --- settings -------------------------------------------------------------------------------------


def _opened(arguments: argparse.Namespace) -> tuple[list[Finding], Store | None]:
    """Opens the store, scoped to the selected shop. Returns findings and the store.

    ``Store.shop`` is empty if ``--shop`` is missing and the store has no shop or several shops.
    """
    try:
        store = store_of(arguments.store, create=False)
    except PaymentError as error:
        return [Finding("store", False, str(error))], None
    try:
        if arguments.shop:
            return [], store.scoped(arguments.shop)
        every = store.shops()
        shops = [name for name in every if not _sold(name)] or every
        if len(shops) == 1:
            return [], store.scoped(shops[0])
        return [Finding("store", not shops, no_shop(shops))], store
    except PaymentError as error:
        store.close()
        return [Finding("store", False, str(error))], None


def _vault(found: list[Finding]) -> Vault | None:
    try:
        return Vault.from_environment()
    except VaultError as error:
        found.append(Finding("store key", False, str(error)))
        return None


def _signer(found: list[Finding], variable: str, shop: str) -> KeySigner | None:
    if _sold(shop) and variable not in os.environ:  # the paywall's own process may have the key
        return None
    try:
        return signer_of(variable)
    except InvalidTerms as error:
        found.append(Finding("signer", False, str(error)))
        return None


def _store_key(store: Store, vault: Vault) -> Finding:
    """Checks whether the key ring has the store's key and decrypts the store's values."""
    if not holds_key(store, vault):
        return Finding("store key", False, WRONG_KEY)
    values = dict.fromkeys(store.sealed(SAMPLE))
    for order in every_order(store, OPEN):
        if order.sealed is not None and len(values) < MOST_TRIED:
            values[order.sealed, order.seal_context] = None
    opened = sum(opens(vault, *value) for value in values)
    detail = f"{KEY_VARIABLE} decrypts {opened} of {len(values)} encrypted values"
    return Finding("store key", opened == len(values), detail)


# --- the chain ------------------------------------------------------------------------------------


async def _chain_id(found: list[Finding], node: NodeClient, shop: str) -> int | None:
    """Returns the node's chain id; None if there is no answer or the shop has another chain."""
    try:
        answer = await node.call("eth_chainId")
        chain_id = int(answer, 16)
    except (PaymentError, TypeError, ValueError) as error:
        why = str(error) if isinstance(error, PaymentError) else "it shows no chain id"
        found.append(Finding("node", False, f"{why}: pass --node"))
        return None
    parts = shop.split("/")
    wanted = parts[1] if _sold(shop) else parts[0]
    if wanted and wanted != str(chain_id):
        detail = f"the node has {chain_id}, the shop {wanted}: pass --node"
        found.append(Finding("chain id", False, detail))
        return None
    found.append(Finding("chain id", True, str(chain_id)))
    return chain_id


async def _head(node: NodeClient, chain: Chain, merchant: Merchant | None = None) -> list[Finding]:
    """Checks whether the node is up to date, and on the chain of the merchant's orders."""
    try:
        head = head_of(await node.call("eth_getBlockByNumber", "latest", False))
        call = None if head is None else chain.pace_call(head)
        if head is not None and call is not None:
            chain.pace(head, await node.call(call[0], *call[1]))
    except PaymentError as error:
        return [Finding("node", False, str(error))]
    if head is None:
        return [Finding("node", False, "no latest block")]
    points: list[Checkpoint] = []
    if merchant is not None:
        points = await to_thread(merchant.store.checkpoints, merchant.scanner.scope)
        try:
            lost = await lost_chain(merchant)
        except PaymentError as error:
            return [Finding("node", False, str(error))]
        if lost is not None:
            return [Finding("chain", False, lost.text)]
    behind = max(0, points[0].number - head.number) if points else 0
    age, pace = time.time() - head.timestamp, chain.block_seconds
    fresh = age <= LATE_BLOCKS * pace + CLOCK_SECONDS
    detail = f"block {head.number}, {age:.0f} s old, {behind} behind the newest block seen"
    return [
        Finding("node lag", fresh and not behind, detail),
        Finding("clock", age >= -CLOCK_SECONDS, f"{-age:.0f} s behind the chain's"
                if age < 0 else "not behind the chain's"),
    ]  # fmt: skip


async def _gas(node: NodeClient, sender: str, policy: Policy) -> Finding:
    """Checks whether the sender has gas for ``LEAST_CAPTURES`` captures."""
    try:
        funds, *fees = await node.batch([("eth_getBalance", [sender, "latest"]), *FEE_CALLS])
        if isinstance(funds, NodeRefusal):
            raise funds
        captures = int(funds, 16) // (
            policy.gas_limit(CAPTURE_GAS) * quote_of(fees, policy).cap or 1
        )
    except PaymentError as error:
        return Finding("gas", False, str(error))
    detail = f"{sender} has {ether(int(funds, 16))} ether, gas for {captures} captures"
    return Finding("gas", captures >= LEAST_CAPTURES, detail)


async def _facilitator(
    node: NodeClient, store: Store, signer: KeySigner | None, chain_id: int | None
) -> list[Finding]:
    """Runs the checks for the payments of a facilitator or paywall."""
    sent = await to_thread(lambda: [item.sender for item in store.submissions(waiting=False)])
    sender = signer.address if signer is not None else sent[-1] if sent else ""
    if signer is None:
        detail = f"{FACILITATOR_VARIABLE} is not set"
        detail += f"; {sender} sent the newest transaction" if sender else ""
        found = [Finding("signer", True, detail)]
    else:
        strange = bool(sent) and sender not in sent
        detail = (
            f"{sender} sent {'no transaction' if strange else 'the transactions'} of this store"
        )
        found = [Finding("signer", not strange, detail if sent else sender)]
    if chain_id is not None:
        found += await _head(node, Chain(node, chain_id, Policy()))
        found += [await _gas(node, sender, Policy())] if sender else []
    return found


async def _shop(
    arguments: argparse.Namespace,
    node: NodeClient,
    store: Store,
    vault: Vault | None,
    signer: KeySigner | None,
    chain_id: int | None,
) -> list[Finding]:
    """Runs the checks for a merchant's shop."""
    try:
        domain, recipient = await domain_of(store, store.shop, node)
    except PaymentError as error:
        unknown = "the shop has no order yet, and its token cannot be read"
        return [Finding("token", False, f"{unknown}: {error}")] if chain_id is not None else []
    merchant = Merchant(
        node,
        store,
        # a placeholder: the checks neither encrypt nor decrypt with it
        vault or Vault([bytes(KEY_LENGTH)]),
        domain,
        signer or Watcher(recipient),
        policy=Policy(depth=arguments.depth),
        recipient=recipient,
    )
    found = [] if signer is None else [await to_thread(_can_capture, merchant)]
    if chain_id is not None:
        found += await _head(node, merchant.chain, merchant)
        try:
            found += await _contracts(arguments, merchant)
        except PaymentError as error:
            found.append(Finding("token", False, str(error)))
        found += [] if signer is None else [await _gas(node, signer.address, merchant.policy)]
    return found


async def _contracts(arguments: argparse.Namespace, merchant: Merchant) -> list[Finding]:
    """Checks whether the chain has the shop's token and the contracts that the shop uses."""
    domain = merchant.token
    code, separator, multicall = await merchant.node.batch(
        [
            ("eth_getCode", [domain.token, "latest"]),
            ("eth_call", [{"to": domain.token, "data": _hex(separator_data())}, "latest"]),
            ("eth_getCode", [MULTICALL, "latest"]),
        ]
    )
    good = isinstance(code, str) and len(code) > 2
    found = [Finding("token", good, f"{domain.token} {'has code' if good else 'has no code'}")]
    same = separator == "0x" + domain.separator.hex()
    detail = f"{domain.name!r}, version {domain.version!r}"
    found.append(
        Finding("domain", same, detail if same else f"the token's domain is not {detail} any more")
    )
    there = isinstance(multicall, str) and len(multicall) > 2
    detail = "Multicall3 is deployed" if there else "no Multicall3: captures are not batched"
    found.append(Finding("batches", there or merchant.policy.batch == 1, detail))
    found.append(await _collector(merchant))
    if arguments.spender is not None:
        found.append(await _allowance(arguments, merchant, arguments.spender))
    return found


async def _collector(merchant: Merchant) -> Finding:
    """Checks the permit collector, which must be deployed if an open order needs it."""
    code = await merchant.node.call("eth_getCode", merchant.collector, "latest")
    if code != "0x":
        return Finding("collector", True, f"{merchant.collector} is deployed")

    def needed() -> bool:
        orders = every_order(merchant.store, OPEN)
        return any(order.authorization.permit is not None for order in orders)

    if await to_thread(needed):
        detail = f"none at {merchant.collector}: run 'fastevm pay collector'"
        return Finding("collector", False, detail)
    return Finding("collector", True, "not deployed: no open order has a permit")


async def _allowance(arguments: argparse.Namespace, merchant: Merchant, spender: str) -> Finding:
    data = call_data("allowance(address,address)", merchant.recipient, spender)
    call = {"to": merchant.token.token, "data": _hex(data)}
    units = int(await merchant.node.call("eth_call", call, "latest"), 16)
    domain = merchant.token
    money = await to_thread(Monies(arguments).of, domain)
    return Finding("allowance", units > 0, f"{spender} may take {money.text(units)}")


def ether(wei: int) -> str:
    """Formats an amount of wei in ether, rounded down to six decimals."""
    return f"{wei // 10**12 / 10**6:,.6f}"


# --- the store ------------------------------------------------------------------------------------


def _can_capture(merchant: Merchant) -> Finding:
    """Checks whether the signer belongs to the shop and can capture the shop's open orders."""
    signer, recipient = merchant.signer.address, merchant.recipient
    if signer == recipient:
        return Finding("signer", True, f"{signer} is the recipient")
    wrong = f"{signer} is not the recipient {recipient}"
    orders = every_order(merchant.store, OPEN)
    barred = sum(1 for order in orders if merchant.refusal_of_signer(order) is not None)
    if barred:
        return Finding("signer", False, f"{wrong}: it cannot capture {barred} open orders")
    if stranger(merchant):
        return Finding("signer", False, f"{wrong} and sent no transaction of this shop")
    return Finding("signer", True, f"{signer} sends the transactions of {recipient}")


def _outbox_cause(store: Store) -> str:
    """Explains why messages wait: the failed attempt of each endpoint, or no running sender."""
    causes = []
    for endpoint in store.endpoints():
        oldest = store.deliveries(endpoint.id, DeliveryState.WAITING, limit=1)
        if oldest and not endpoint.disabled:
            causes.append(f"{endpoint.id}: {next_delivery(oldest[0])}")
    never = "; no attempt yet: 'fastevm pay run' sends them, and must run"
    if causes and all("failed" not in cause for cause in causes):
        return never
    return "".join(f"; {cause}" for cause in causes)


def _rows(store: Store) -> list[Finding]:
    now = time.time()
    oldest = {state: count[2] for state, count in store.counts().items() if state.in_flight}
    age = max((now - changed_at for changed_at in oldest.values()), default=0.0)
    waiting, since = store.backlog()
    lag = now - since if waiting else 0.0
    why = _outbox_cause(store) if waiting else ""
    list(store.orders(limit=1_000))
    return [
        Finding("in flight", age < STUCK_SECONDS, f"oldest waiting for {age:.0f} s"),
        Finding("outbox", lag < LAG_SECONDS, f"{waiting} waiting, oldest for {lag:.0f} s{why}"),
        Finding("rows", not store.unreadable, f"{len(store.unreadable)} unreadable"),
    ]


def _hex(data: bytes) -> str:
    return "0x" + data.hex()
