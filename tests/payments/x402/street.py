"""The x402 fixture: a chain with Base Sepolia's id and USDC, a facilitator, a shop and payers."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from eth_account import Account

from fastevm import simulate
from fastevm.node import Node, dev_node
from fastevm.payments import KeySigner, NodeClient, Policy, Vault, open_store
from fastevm.payments.contracts.placing import give_tokens, place_escrow, place_token
from fastevm.payments.erc6492 import MULTICALL
from fastevm.payments.escrow import V1_1
from fastevm.payments.tokens import Token, known
from fastevm.payments.x402 import ChainSettler, Payer, Payment, Requirements, Rules
from fastevm.payments.x402.messages import Json
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.transport.server import Listener, Server

# The chain id of Base Sepolia.
CHAIN_ID = 84_532
FUNDS = 1_000_000_000
PRICE = 10_000
# The escrow's token stores are clones of this contract.
STORE = "0x5701E05701E05701E05701e05701e05701E05701"
KEY = b"\x07" * 32


def usdc() -> str:
    row = known(CHAIN_ID, "USDC")
    assert row is not None
    return row.address


@dataclass
class Street:
    """The chain, accounts and facilitators of a test."""

    node: Node
    server: Server
    folder: Path
    token: Token
    client: NodeClient
    open: list[Any] = field(default_factory=list)

    @property
    def accounts(self) -> list[Any]:
        return [Account.from_key(account.private_key) for account in self.node.accounts]

    @property
    def payer(self) -> Any:
        return self.accounts[1]

    @property
    def shop(self) -> Any:
        return self.accounts[3]

    def settler(
        self, account: int = 2, store: str = "facilitator.db", **rules: Any
    ) -> ChainSettler:
        made = open_store(f"sqlite:///{self.folder / store}")
        self.open.append(made)
        return ChainSettler(
            self.client,
            made,
            Vault([KEY]),
            KeySigner(self.accounts[account].key),
            [self.token],
            policy=Policy(poll=0.01),
            rules=Rules(**{"tend_every": 0.2, "close_for": 0.0, **rules}),
        )

    def offer(self, **changes: Any) -> Requirements:
        usual = {
            "scheme": "exact",
            "chain_id": CHAIN_ID,
            "asset": usdc(),
            "pay_to": self.shop.address,
            "amount": PRICE,
            "extra": {"name": "USDC", "version": "2"},
        }
        return Requirements(**{**usual, **changes})

    def buyer(self, index: int = 1) -> Payer:
        return Payer(self.accounts[index].key, {usdc(): FUNDS})

    def payment(self, offer: Requirements, version: int = 2, **changes: Any) -> Payment:
        payload = {**self.buyer().payload(offer), **changes}
        return read_payment(offer, payload, version)

    def hold(self, operator: str, **changes: Any) -> Requirements:
        """Returns an offer in which the money is held, and ``operator`` captures it later."""
        extra = {
            "name": "USDC",
            "version": "2",
            "captureAuthorizer": operator,
            "captureDeadlineSeconds": 3_600,
            "refundDeadlineSeconds": 86_400,
            "feeRecipient": "0x" + "00" * 20,
            "minFeeBps": 0,
            "maxFeeBps": 0,
            "captureMode": "deferred",
        }
        extra |= changes.pop("extra", {})
        return self.offer(scheme="auth-capture", extra=extra, **changes)

    async def balance(self, of: str) -> int:
        data = "0x70a08231" + of[2:].lower().rjust(64, "0")
        return int(await self.client.call("eth_call", {"to": usdc(), "data": data}, "pending"), 16)

    async def close(self) -> None:
        await self.client.close()
        for item in self.open:
            item.close()
        await self.server.stop()


def read_payment(offer: Requirements, payload: Json, version: int = 2) -> Payment:
    message: Json = {"x402Version": version, "payload": payload}
    if version == 2:
        message["accepted"] = offer.show()
    else:
        message |= {"scheme": "exact", "network": "base-sepolia"}
    return Payment.read(message)


async def street(folder: Path, *, block_ms: int = 1_000, slice_ms: int = 100) -> Street:
    """Builds a `Street`. By default a block comes every second, and a slice every 100 ms."""
    node = dev_node(chain_id=CHAIN_ID, block_time_ms=block_ms, slice_interval_ms=slice_ms)
    dialect = DIALECTS["preconf"].with_receipts("preconfirmed")
    server = Server(node, simulate, [Listener(dialect, port=0)], threads=2)
    await server.start()
    client = NodeClient(server.urls[0])
    accounts = [Account.from_key(account.private_key) for account in node.accounts]
    await place_token(
        client, usdc(), name="USDC", symbol="USDC", decimals=6, admin=accounts[0].address
    )
    await place_escrow(client, V1_1, STORE, MULTICALL)
    for account in accounts:
        await give_tokens(client, usdc(), account.address, FUNDS)
    await client.call("evm_mine")
    return Street(node, server, folder, await Token.of(client, "USDC"), client)


class Served:
    """Serves an aiohttp application on a free port."""

    def __init__(self, app: web.Application) -> None:
        self._runner = web.AppRunner(app, access_log=None)
        self.url = ""

    async def __aenter__(self) -> "Served":
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._runner.cleanup()


def now() -> int:
    return int(time.time())
