"""Sets up a development chain with the id of Base Sepolia, USDC, escrow, facilitator and payer.

The keys belong to the well-known test mnemonic, so they are public.
"""

import secrets
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

from examples.merchant.chain import NodeProcess, person
from fastevm.payments import KeySigner, NodeClient, Policy, Vault, open_store
from fastevm.payments.contracts.placing import give_tokens, place_escrow, place_token
from fastevm.payments.erc6492 import MULTICALL
from fastevm.payments.escrow import V1_1
from fastevm.payments.tokens import Token, known
from fastevm.payments.vault import KEY_LENGTH
from fastevm.payments.x402 import ChainSettler, Facilitator, Payer, Paywall, Requirements, Sale
from fastevm.payments.x402.auth_capture import AuthCapture

CHAIN_ID: Final = 84_532
TOKEN_STORE: Final = "0x5701E05701E05701E05701e05701e05701E05701"
ALLOWANCE: Final = 100_000_000  # the payer's initial balance, token units
WEATHER, ROOM = "0.01", "25"
TILL, PAYER, SHOP = 2, 1, 3  # accounts of the mnemonic


@dataclass(frozen=True, slots=True)
class Town:
    """The parts of the demonstration."""

    node: NodeClient
    token: Token
    settler: ChainSettler
    facilitator: Facilitator
    paywall: Paywall
    payer: Payer
    shop: str


async def build(exit_: AsyncExitStack, folder: str) -> Town:
    """Starts all parts; ``exit_`` stops them."""
    process = NodeProcess(options=["--chain-id", str(CHAIN_ID)])
    node = NodeClient(await process.start())
    exit_.push_async_callback(process.stop)
    exit_.push_async_callback(node.close)
    row = known(CHAIN_ID, "USDC")
    assert row is not None
    admin, buyer = person(0).address, person(PAYER)
    await place_token(
        node, row.address, name=row.name, symbol=row.symbol, decimals=row.decimals, admin=admin
    )
    await place_escrow(node, V1_1, TOKEN_STORE, MULTICALL)
    await give_tokens(node, row.address, buyer.address, ALLOWANCE)
    await node.call("evm_mine")
    token = await Token.of(node, "USDC")
    store = open_store(f"sqlite:///{folder}/till.db")
    exit_.callback(store.close)
    vault = Vault([secrets.token_bytes(KEY_LENGTH)])
    settler = ChainSettler(
        node, store, vault, KeySigner(person(TILL).key), [token], policy=Policy()
    )
    facilitator = await exit_.enter_async_context(Facilitator([settler], [AuthCapture()]))
    shop = person(SHOP).address
    wall = Paywall(facilitator, sales(token, settler.account, shop))
    payer = Payer(buyer.key, {row.address: ALLOWANCE})
    return Town(node, token, settler, facilitator, wall, payer, shop)


def sales(token: Token, operator: str, shop: str) -> dict[str, Any]:
    """Returns the priced routes: the weather for a cent, a room with a hold."""
    domain = {"name": token.domain.name, "version": token.domain.version}

    def offer(price: str, scheme: str, **extra: Any) -> Requirements:
        return Requirements(
            scheme=scheme, chain_id=token.domain.chain_id, asset=token.domain.token, pay_to=shop,
            amount=token.units(price), extra={**domain, **extra},
        )  # fmt: skip

    hold = {
        "captureAuthorizer": operator,
        "captureDeadlineSeconds": 86_400,
        "refundDeadlineSeconds": 30 * 86_400,
        "feeRecipient": "0x" + "00" * 20,
        "minFeeBps": 0,
        "maxFeeBps": 0,
        "captureMode": "deferred",
    }
    return {
        "GET /api/weather": Sale([offer(WEATHER, "exact")], "The weather", "application/json"),
        "GET /api/room": Sale(
            [offer(ROOM, "auth-capture", **hold)], "A room, charged at check-out",
            "application/json",
        ),
    }  # fmt: skip
