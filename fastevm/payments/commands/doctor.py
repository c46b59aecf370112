"""``fastevm pay doctor``: checks node, chain, token, keys, gas, clock and store."""

import argparse
import asyncio
import time
from asyncio import to_thread
from itertools import islice
from typing import Final, NamedTuple

from fastevm.payments.calls import call_data, separator_data
from fastevm.payments.chain import FEE_CALLS, head_of, quote_of
from fastevm.payments.commands.shared import (
    KEY_SAMPLE,
    OPEN,
    add_node,
    merchant_of,
    signatures_of,
    stranger,
    undecryptable,
)
from fastevm.payments.erc6492 import MULTICALL
from fastevm.payments.errors import NodeRefusal
from fastevm.payments.merchant import Merchant
from fastevm.payments.store import every_order
from fastevm.payments.vault import KEY_VARIABLE

LATE_BLOCKS: Final = 10  # block times without a new block
CLOCK_SECONDS: Final = 30  # how far the newest block may be ahead of the clock
CAPTURE_GAS: Final = 150_000
LEAST_CAPTURES: Final = 10  # the account must have gas for so many
STUCK_SECONDS: Final = 600.0
LAG_SECONDS: Final = 60.0
MOST_TRIED: Final = 1_000  # signatures of open orders that are decrypted


class Finding(NamedTuple):
    """The result of one check."""

    name: str
    ok: bool
    detail: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_node(parser)
    parser.add_argument(
        "--spender",
        metavar="ADDRESS",
        help="check that this contract has an allowance of the recipient",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the findings. Returns 1 if one of them fails."""

    async def look() -> list[Finding]:
        async with merchant_of(arguments, check=False) as merchant:
            return await findings(merchant, arguments.spender)

    found = asyncio.run(look())
    for finding in found:
        print(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name:<10}  {finding.detail}")
    return 0 if all(finding.ok for finding in found) else 1


async def findings(merchant: Merchant, spender: str | None = None) -> list[Finding]:
    """Runs all checks."""
    node, domain, sender = merchant.node, merchant.token, merchant.signer.address
    chain_id, newest, code, separator, funds, multicall, *fees = await node.batch(
        [
            ("eth_chainId", []),
            ("eth_getBlockByNumber", ["latest", False]),
            ("eth_getCode", [domain.token, "latest"]),
            ("eth_call", [{"to": domain.token, "data": _hex(separator_data())}, "latest"]),
            ("eth_getBalance", [sender, "latest"]),
            ("eth_getCode", [MULTICALL, "latest"]),
            *FEE_CALLS,
        ]
    )
    same = isinstance(chain_id, str) and int(chain_id, 16) == domain.chain_id
    shown = int(chain_id, 16) if isinstance(chain_id, str) else "none"
    seen = str(shown) if same else f"the node has {shown}, the shop {domain.chain_id}: pass --node"
    found = [Finding("chain id", same, seen)]
    found += await to_thread(_keys, merchant)
    if not same:  # nothing that this node says is about the shop
        return found + await to_thread(_store, merchant)
    found += await _head(merchant, newest)
    good = isinstance(code, str) and len(code) > 2
    found.append(Finding("token", good, f"{domain.token} {'has code' if good else 'has no code'}"))
    same = separator == "0x" + domain.separator.hex()
    detail = f"{domain.name!r}, version {domain.version!r}"
    found.append(
        Finding("domain", same, detail if same else f"the token's domain is not {detail} any more")
    )
    quote = quote_of(fees, merchant.policy)
    captures = int(funds, 16) // (merchant.policy.gas_limit(CAPTURE_GAS) * quote.cap or 1)
    detail = f"{sender} has {ether(int(funds, 16))} ether, gas for {captures} captures"
    found.append(Finding("gas", captures >= LEAST_CAPTURES, detail))
    there = isinstance(multicall, str) and len(multicall) > 2
    detail = "Multicall3 is deployed" if there else "no Multicall3: captures are not batched"
    found.append(Finding("batches", there or merchant.policy.batch == 1, detail))
    found.append(await _collector(merchant))
    if spender is not None:
        found.append(await _allowance(merchant, spender))
    return found + await to_thread(_store, merchant)


async def _head(merchant: Merchant, newest: object) -> list[Finding]:
    head = None if isinstance(newest, NodeRefusal) else head_of(newest)
    if head is None:
        return [Finding("node", False, "no latest block")]
    points = await to_thread(merchant.store.checkpoints, merchant.scanner.scope)
    behind = max(0, points[0].number - head.number) if points else 0
    call = merchant.chain.pace_call(head)
    if call is not None:
        merchant.chain.pace(head, await merchant.node.call(call[0], *call[1]))
    age, pace = time.time() - head.timestamp, merchant.chain.block_seconds
    fresh = age <= LATE_BLOCKS * pace + CLOCK_SECONDS
    detail = f"block {head.number}, {age:.0f} s old, {behind} behind the newest block seen"
    return [
        Finding("node lag", fresh and not behind, detail),
        Finding("clock", age >= -CLOCK_SECONDS, f"{-age:.0f} s behind the chain's"
                if age < 0 else "not behind the chain's"),
    ]  # fmt: skip


async def _collector(merchant: Merchant) -> Finding:
    """Whether the permit collector is deployed, or no open order needs it."""
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


async def _allowance(merchant: Merchant, spender: str) -> Finding:
    data = call_data("allowance(address,address)", merchant.recipient, spender)
    call = {"to": merchant.token.token, "data": _hex(data)}
    units = int(await merchant.node.call("eth_call", call, "latest"), 16)
    return Finding("allowance", units > 0, f"{spender} may take {units} units")


def ether(wei: int) -> str:
    """Formats an amount of wei in ether, rounded down to six decimals."""
    return f"{wei // 10**12 / 10**6:,.6f}"


def _keys(merchant: Merchant) -> list[Finding]:
    """Whether the store's key decrypts it, and whether the signer can do what its orders need."""
    store, vault = merchant.store, merchant.vault
    sealed = [*islice(signatures_of(store, OPEN), MOST_TRIED)]
    sealed += [*islice(signatures_of(store, None), KEY_SAMPLE)] if not sealed else []
    sealed += [(item.sealed, item.seal_context) for item in store.endpoints()]
    tried, failed, why = undecryptable(vault, sealed)
    detail = f"{KEY_VARIABLE} decrypts {tried - failed} of {tried} signatures and secrets"
    if failed and "ring" not in why:
        detail += f": {why}"
    elif failed:
        detail += ": add the store's key after the newest key, separated by a comma"
    return [Finding("store key", not failed, detail), _signer(merchant)]


def _signer(merchant: Merchant) -> Finding:
    """Whether the signer's account can capture the open orders and is the shop's."""
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


def _store(merchant: Merchant) -> list[Finding]:
    store, now = merchant.store, time.time()
    oldest = {state: count[2] for state, count in store.counts().items() if state.in_flight}
    age = max((now - changed_at for changed_at in oldest.values()), default=0.0)
    waiting, since = store.backlog()
    lag = now - since if waiting else 0.0
    list(store.orders(limit=1_000))
    return [
        Finding("in flight", age < STUCK_SECONDS, f"oldest waiting for {age:.0f} s"),
        Finding("outbox", lag < LAG_SECONDS, f"{waiting} waiting, oldest for {lag:.0f} s"),
        Finding("rows", not store.unreadable, f"{len(store.unreadable)} unreadable"),
    ]


def _hex(data: bytes) -> str:
    return "0x" + data.hex()
