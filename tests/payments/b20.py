"""The fixture of B20 tests: a Base chain with a native stablecoin, and a merchant."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eth_utils.crypto import keccak

from fastevm.bench.node.launch import server_of
from fastevm.node import Mining, dev_node
from fastevm.payments import Authorization, Domain, Kind, Merchant, Order, Signature, sign
from fastevm.payments.calls import call_data
from fastevm.payments.contracts.b20 import address_of, stablecoin
from fastevm.payments.permits import deployment_of

from .market import CHAIN_ID, FUNDS, START, VALUE, Market

POLICIES = "0x8453000000000000000000000000000000000002"
NAME = "Laptop Dollar"
BLOCKLIST = 0  # policy type: the listed accounts are blocked
TRANSFER = 0  # number of the token feature that can be paused


class B20Market(Market):
    """A market on a Base chain. The admin mints, pauses and sets policies of the token.

    The payer begins with ``FUNDS``.
    """

    other = ""  # address of a second token with the same admin
    fork = "cobalt"

    def open(self, *, balance: int = FUNDS) -> None:
        """Creates two tokens, deploys the collector and funds the payer."""
        self.other = self.create("Other Dollar", "OUSD")
        self.token = Domain(NAME, "1", CHAIN_ID, self.create(NAME, "LUSD"))
        self.mint(self.payer.address, balance)
        self.send(self.admin, *deployment_of(self.shop.address, self.shop.address))

    def create(self, name: str, symbol: str) -> str:
        """Creates a stablecoin. Returns its address."""
        self.send(self.admin, *stablecoin(name, symbol, self.admin.address))
        found = address_of(self.admin.address, symbol)
        layer = self.node.chain.layer_of(self.node.chain.head.hash)
        assert layer.code(bytes.fromhex(found[2:])) == b"\xef"
        return found

    def do(self, who: Any, function: str, *arguments: Any, mine: bool = True) -> str:
        """Calls a function of the token by its signature."""
        return self.send(who, self.token.token, call_data(function, *arguments), mine=mine)

    def mint(self, to: str, amount: int) -> None:
        """Mints tokens."""
        self.do(self.admin, "mint(address,uint256)", to, amount)

    def mine(self, count: int = 1, *, seconds: int = 2) -> Any:
        """Mines blocks.

        With Denim's rules the chain sets their timestamps, earlier they are 2 s apart.
        """
        if self.fork == "denim":
            blocks = self.node.mine(count)
            self.now = blocks[-1].header.timestamp
            return blocks[-1]
        return super().mine(count, seconds=seconds)

    def replace(self, depth: int, contents: dict[int, Sequence[Any]] | None = None) -> None:
        """Replaces the newest ``depth`` blocks with as many new blocks, and mines one more.

        ``contents``: the transactions of the new blocks. All other transactions of the replaced
        blocks are lost.
        """
        self.node.development.required().rewriting.reorganise(depth, contents or {})
        self.mine()

    def forbid(self, account: str, scope: str) -> None:
        """Gives the token a policy that blocks an account in a scope, such as sending."""
        data = call_data(
            "createPolicyWithAccounts(address,uint8,address[])",
            self.admin.address, BLOCKLIST, [account],
        )  # fmt: skip
        block = self.located(self.send(self.admin, POLICIES, data))
        (topics,) = {
            log.topics for log in self.receipts(block)[-1].logs if log.address[0] == 0x84
            and log.topics[0] == keccak(text="PolicyCreated(uint64,address,uint8)")
        }  # fmt: skip
        scoped = keccak(text=f"TRANSFER_{scope}_POLICY")
        policy = int.from_bytes(topics[1], "big")
        self.do(self.admin, "updatePolicy(bytes32,uint64)", scoped, policy)

    def allow(self, scope: str) -> None:
        """Removes the token's policy for a scope."""
        scoped = keccak(text=f"TRANSFER_{scope}_POLICY")
        self.do(self.admin, "updatePolicy(bytes32,uint64)", scoped, 0)

    def located(self, tx_hash: str) -> Any:
        """Returns the block that contains a transaction, or None."""
        block, _ = self.node.chain.locate(bytes.fromhex(tx_hash[2:])) or (None, 0)
        return block

    def receipts(self, block: Any) -> list[Any]:
        """Returns the receipts of a block."""
        return list(self.node.chain.receipts_of(block.hash))

    # --- payments ---------------------------------------------------------------------------------

    async def permitted(
        self, merchant: Merchant, order_id: str = "order-1", value: int = VALUE, **more: Any
    ) -> Order:
        """Drafts an order, signs its permit as the payer, and stores the signature."""
        order = await merchant.draft(order_id, self.payer.address, value, kind=Kind.PERMIT, **more)
        return await merchant.accept(order_id, self.permit_of(order))

    def permit_of(self, order: Order) -> Signature:
        """Returns the payer's signature of the permit that an order needs."""
        return sign(order.authorization, self.payer.key)

    def submit_permit(self, authorization: Authorization, signature: Signature, who: Any) -> None:
        """Submits a permit as a stranger who knows its signature."""
        permit, terms = authorization.permit, authorization.terms
        assert permit is not None
        self.do(
            who, "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)",
            terms.payer, permit.spender, terms.value, authorization.deadline, *signature.vrs,
        )  # fmt: skip

    def pay(self, order: Order, value: int, *, who: Any = None, token: str | None = None,
            mine: bool = True) -> str:  # fmt: skip
        """Sends ``value`` to the order's recipient with the order's memo, usually as the payer."""
        terms = order.authorization.terms
        data = call_data(
            "transferWithMemo(address,uint256,bytes32)", terms.recipient, value, terms.nonce
        )
        return self.send(who or self.payer, token or self.token.token, data, mine=mine)


async def b20_market(folder: Path, *, fork: str = "cobalt", store_url: str = "") -> B20Market:
    """Builds a market on a Base chain that makes blocks on demand."""
    node = dev_node(op_fork=fork, mining=Mining.MANUAL, timestamp=START - 12)
    server = server_of(node, "preconf", "preconf/preconfirmed", threads=2)
    await server.start()
    made = B20Market(node, server, folder, store_url or f"sqlite:///{folder / 'payments.db'}")
    made.fork = fork
    made.open()
    return made
