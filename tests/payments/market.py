"""The test fixture for payments: a chain to control, its token, a merchant and payers."""

import json
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import rlp
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from fastevm.bench.node.launch import server_of
from fastevm.core.execution.types import Block
from fastevm.node import Mining, Node, dev_node
from fastevm.node.production import BlockAttributes, assemble_block
from fastevm.payments import (
    Authorization,
    Domain,
    KeySigner,
    Kind,
    Merchant,
    NodeClient,
    Order,
    Policy,
    Signature,
    Store,
    Terms,
    Vault,
    open_store,
    sign,
)
from fastevm.payments.calls import capture_data
from fastevm.payments.contracts import artifact
from fastevm.rpc.transport.server import Server

CHAIN_ID = 31_337
# Timestamp of the first block. The test sets the chain's clock.
START = 1_800_000_000
FUNDS = 10_000_000
VALUE = 1_000_000
ZERO_HASH = "0x" + "00" * 32
KEY = b"\x07" * 32  # key of the vault that encrypts signatures
GAS = 3_000_000


class Market:
    """A chain, its accounts, and the merchant's back end with its store."""

    def __init__(self, node: Node, server: Server, folder: Path, store_url: str) -> None:
        self.store_url = store_url
        self.node, self.server, self.folder = node, server, folder
        self.keys = [account.private_key for account in node.accounts]
        self.accounts = [Account.from_key(key) for key in self.keys]
        self.admin, self.shop, self.payer, self.stranger = self.accounts[:4]
        self.token = Domain("USD Coin", "2", CHAIN_ID, "0x" + "00" * 20)
        self.contracts: dict[str, Any] = {}
        self.clients: list[NodeClient] = []
        self.stores: list[Store] = []
        self.now = START

    # --- the chain --------------------------------------------------------------------------------

    def send(
        self,
        key: Any,
        to: str | None,
        data: bytes,
        *,
        mine: bool = True,
        value: int = 0,
        **more: Any,
    ) -> str:
        """Signs and submits a transaction of any account. Returns its hash."""
        account = key if hasattr(key, "sign_transaction") else Account.from_key(key)
        address = bytes.fromhex(account.address[2:])
        layer = self.node.chain.layer_of(self.node.chain.head.hash)
        waiting = self.node.pool.executable().get(address, {})
        nonce = max([layer.nonce(address) - 1, *waiting]) + 1
        fields = {
            "chainId": CHAIN_ID, "nonce": nonce, "gas": GAS, "value": value,
            "maxFeePerGas": 10**11, "maxPriorityFeePerGas": 10**9, "data": "0x" + data.hex(),
            **more,
        }  # fmt: skip
        if to is not None:
            fields["to"] = to
        raw = account.sign_transaction(fields).raw_transaction
        tx_hash = self.node.submit(bytes(raw))
        if mine:
            self.mine()
        return "0x" + tx_hash.hex()

    def mine(self, count: int = 1, *, seconds: int = 1) -> Block:
        """Mines blocks, each ``seconds`` after its parent. Returns the last block."""
        for _ in range(count):
            self.now = self.node.chain.head.header.timestamp + seconds
            (block,) = self.node.mine(1, timestamp=self.now)
        return block

    def begin(self) -> None:
        """Begins a block whose slices are closed on demand, and publishes its first slice."""
        self.node.producer.clock.set_next(self.now + 1)
        self.node.producer.publish(self.node.producer.begin(self.now + 1))

    def close_slice(self) -> None:
        """Publishes a slice with the transactions that are in the pool."""
        self.node.producer.fill(self.node.chain.head.header.gas_limit)
        self.node.producer.publish(self.node.producer.close_slice())

    def warp(self, timestamp: int) -> None:
        """Mines a block with this timestamp."""
        self.mine(seconds=timestamp - self.node.chain.head.header.timestamp)

    def rival(
        self, depth: int, transactions: Iterable[Iterable[Any]], *, mark: int = 1
    ) -> list[Block]:
        """Builds a competing branch from ``depth`` blocks below the head. Returns its blocks.

        ``transactions``: for each block of the branch, its transactions. Only a branch that is at
        least as long as the blocks that it replaces becomes canonical.
        """
        chain = self.node.chain
        parent = chain.block_by_number(chain.head.number - depth)
        assert parent is not None
        made = []
        for contents in transactions:
            attributes = BlockAttributes(
                timestamp=parent.header.timestamp + 1,
                coinbase=bytes([mark]) * 20,
                prev_randao=bytes(32),
                parent_beacon_block_root=bytes(32),
            )
            parent, _ = assemble_block(chain, parent, attributes, list(contents))
            self.node.add_block(parent)
            made.append(parent)
        self.now = self.node.chain.head.header.timestamp
        return made

    # --- the token --------------------------------------------------------------------------------

    def deploy(self, name: str, *arguments: Any) -> str:
        """Deploys a payment contract. Returns its address."""
        contract = artifact(name)
        tx_hash = self.send(self.admin, None, contract.initcode(*arguments))
        block, index = self.node.chain.locate(bytes.fromhex(tx_hash[2:])) or (None, 0)
        assert block is not None
        receipt = self.node.chain.receipts_of(block.hash)[index]
        assert receipt.status == 1, f"{name} was not deployed"
        address = str(self.contract_address(self.admin.address, block.transactions[index].nonce))
        self.contracts[name] = address
        return address

    @staticmethod
    def contract_address(creator: str, nonce: int) -> str:
        """Returns the address of the contract that ``creator`` deploys with this nonce."""
        digest = keccak(rlp.encode([bytes.fromhex(creator[2:]), nonce]))
        return str(to_checksum_address(digest[12:]))

    def open(self, *, balance: int = FUNDS) -> None:
        """Deploys the token and funds the payer."""
        address = self.deploy("Token", "USD Coin", "USDC", 6, self.admin.address)
        self.token = Domain("USD Coin", "2", CHAIN_ID, address)
        self.mint(self.payer.address, balance)

    def delegate(self, account: Any, to: str) -> None:
        """Makes an account delegate to the code of a contract (EIP-7702)."""
        signed = account.sign_authorization({"chainId": CHAIN_ID, "address": to, "nonce": 0})
        self.send(self.stranger, account.address, b"", authorizationList=[signed])

    def do(self, who: Any, function: str, *arguments: Any, mine: bool = True) -> str:
        """Sends a call of the token's function as ``who``."""
        data = artifact("Token").encode(function, *arguments)
        return self.send(who, self.token.token, data, mine=mine)

    def mint(self, to: str, amount: int) -> None:
        """Mints tokens as the admin."""
        self.do(self.admin, "mint", to, amount)

    async def balance(self, client: NodeClient, of: str, block: str = "latest") -> int:
        """Returns an account's token balance."""
        data = "0x" + artifact("Token").encode("balanceOf", of).hex()
        answer = await client.call("eth_call", {"to": self.token.token, "data": data}, block)
        return int(answer, 16)

    # --- the back end -----------------------------------------------------------------------------

    def client(self, *, feed: bool = False, early: bool = False) -> NodeClient:
        """Returns a client of the node.

        ``early``: it gets receipts of pre-confirmed transactions.
        """
        url = self.server.urls[1 if early else 0]
        client = NodeClient(url, url.replace("http", "ws") if feed else None)
        self.clients.append(client)
        return client

    def store(self) -> Store:
        """Opens the store, as every process of the back end does."""
        store = open_store(self.store_url)
        self.stores.append(store)
        return store

    def merchant(
        self,
        *,
        node: NodeClient | None = None,
        feed: bool = False,
        signer: Any = None,
        store: Store | None = None,
        emitters: Sequence[str] = (),
        **policy: Any,
    ) -> Merchant:
        """Returns a new back end, as after a restart of its process."""
        return Merchant(
            node or self.client(feed=feed),
            store or self.store(),
            Vault([KEY]),
            self.token,
            signer or KeySigner(self.shop.key),
            policy=Policy(**{"poll": 0.01, "capture_in": 5, "first_block": 0, **policy}),
            clock=lambda: self.now,
            emitters=emitters,
        )

    def terms(self, **changes: Any) -> Terms:
        """Returns payment terms that are valid at the current time. ``changes`` replace members."""
        usual = {
            "payer": self.payer.address,
            "recipient": self.shop.address,
            "value": VALUE,
            "valid_after": self.now - 60,
            "valid_before": self.now + 900,
            "nonce": os.urandom(32),
        }
        return Terms(**{**usual, **changes})

    def signed(self, order: Order | Authorization, key: Any = None) -> Signature:
        """Returns the payer's signature for an order. ``key`` replaces the payer."""
        authorization = order.authorization if isinstance(order, Order) else order
        return sign(authorization, (key or self.payer).key)

    def cancelled(self, order: Order) -> Signature:
        """Returns the payer's signature that cancels an order's authorization."""
        return sign(order.authorization.cancellation, self.payer.key)

    def capture_call(self, order: Order, signature: Signature) -> tuple[str, list[Any]]:
        """Returns an eth_call request that simulates the capture on ``pending``."""
        data = capture_data(order.authorization, signature)
        call = {"from": self.shop.address, "to": self.token.token, "data": "0x" + data.hex()}
        return "eth_call", [call, "pending"]

    def permit(self, spender: str, value: int, deadline: int) -> Signature:
        """Returns the payer's signature of an EIP-2612 permit with the nonce 0."""
        types = ("address owner", "address spender", "uint256 value", "uint256 nonce",
                 "uint256 deadline")  # fmt: skip
        members = [dict(zip(("type", "name"), kind.split(), strict=True)) for kind in types]
        values = (self.payer.address, spender, value, 0, deadline)
        typed = Authorization(self.token, self.terms()).typed_data()
        typed["types"] = {"EIP712Domain": typed["types"]["EIP712Domain"], "Permit": members}
        typed["primaryType"] = "Permit"
        typed["message"] = {
            item["name"]: value for item, value in zip(members, values, strict=True)
        }
        signable = encode_typed_data(full_message=typed)
        return Signature(bytes(self.payer.sign_message(signable).signature))

    def take(self, terms: Terms, who: Any, *, kind: Kind = Kind.RECEIVE, mine: bool = True) -> str:
        """Submits the payer's authorization for these terms as ``who``. Bypasses the back end."""
        authorization = Authorization(self.token, terms, kind)
        data = capture_data(authorization, sign(authorization, self.payer.key))
        return self.send(who, self.token.token, data, mine=mine)

    async def stored(self, merchant: Merchant, order_id: str = "order-1", **changes: Any) -> Order:
        """Drafts an order, signs its authorization as the payer, and stores the signature."""
        order = await merchant.draft(
            order_id, self.payer.address, VALUE, terms=self.terms(**changes)
        )
        return await merchant.accept(order_id, self.signed(order))

    async def close(self) -> None:
        """Closes all clients and stores."""
        for client in self.clients:
            await client.close()
        for store in self.stores:
            store.close()
        await self.server.stop()


async def market(
    folder: Path, *, live: bool = False, store_url: str = "", **options: Any
) -> Market:
    """Builds a market with blocks on demand. ``live``: with regular slices and blocks instead."""
    if live:
        node = dev_node(**{"block_time_ms": 1500, "slice_interval_ms": 100, **options})
    else:
        node = dev_node(mining=Mining.MANUAL, timestamp=START - 10, **options)
    server = server_of(node, "preconf", "preconf/preconfirmed", threads=2)
    await server.start()
    made = Market(node, server, folder, store_url or f"sqlite:///{folder / 'payments.db'}")
    made.open()
    if live:
        made.now = int(time.time())
    return made


def canonical_transfers(node: Node, token: str) -> list[tuple[str, str, int, str]]:
    """Returns every transfer of the token in canonical blocks: sender, recipient, amount, hash."""
    transfer = bytes.fromhex("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")
    found = []
    for number in range(node.chain.head.number + 1):
        block = node.chain.block_by_number(number)
        assert block is not None
        for transaction, receipt in zip(
            block.transactions, node.chain.receipts_of(block.hash), strict=True
        ):
            for log in receipt.logs:
                if log.address.hex() == token[2:].lower() and log.topics[0] == transfer:
                    sender, recipient = ("0x" + topic[12:].hex() for topic in log.topics[1:])
                    amount = int.from_bytes(log.data, "big")
                    found.append((sender, recipient, amount, "0x" + transaction.hash.hex()))
    return found


def shown(value: Any) -> str:
    """Returns a value as JSON, for assertion messages."""
    return json.dumps(value, default=str, indent=1)
