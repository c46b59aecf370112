"""The token on a fastevm or anvil node in another process, reached only over JSON-RPC."""

import asyncio
from pathlib import Path
from typing import Any, Final

from eth_account import Account
from eth_utils.address import to_checksum_address

from fastevm.node.dev_accounts import dev_accounts
from fastevm.payments import (
    Domain,
    KeySigner,
    Merchant,
    NodeClient,
    Order,
    Policy,
    Store,
    Vault,
    open_store,
    sign,
)
from fastevm.payments.contracts import artifact

KEY: Final = b"\x07" * 32  # key of the vault that encrypts signatures
VALUE: Final = 1_000
# Seconds that authorizations are valid: mining a million blocks advances the clock by a million
# seconds.
LIFETIME: Final = 10**8
POLL_SECONDS: Final = 0.1


class Remote:
    """A chain with the token, the accounts of a development node, and a funded payer."""

    def __init__(self, client: NodeClient) -> None:
        self.client = client
        self.keys = [account.private_key for account in dev_accounts(3)]
        self.payer = Account.from_key(self.keys[2]).address
        self.chain_id = 0
        self.token = Domain("USD Coin", "2", 1, "0x" + "00" * 20)

    async def open(self, units: int) -> None:
        """Deploys the token and funds the payer."""
        self.chain_id = int(await self.client.call("eth_chainId"), 16)
        admin, contract = Account.from_key(self.keys[0]), artifact("Token")
        deploy = contract.initcode("USD Coin", "USDC", 6, admin.address)
        receipt = await self.sent(admin, None, deploy)
        token_address = str(to_checksum_address(receipt["contractAddress"]))
        self.token = Domain("USD Coin", "2", self.chain_id, token_address)
        await self.sent(admin, token_address, contract.encode("mint", self.payer, units))

    async def sent(self, who: Any, to: str | None, data: bytes) -> dict[str, Any]:
        """Sends a transaction and waits for its block. Returns the receipt."""
        count = await self.client.call("eth_getTransactionCount", who.address, "latest")
        fields = {
            "chainId": self.chain_id, "gas": 5_000_000, "value": 0, "data": "0x" + data.hex(),
            "nonce": int(count, 16),
            "maxFeePerGas": 10**11, "maxPriorityFeePerGas": 10**9,
            **({} if to is None else {"to": to_checksum_address(to)}),
        }  # fmt: skip
        raw = who.sign_transaction(fields).raw_transaction
        sent = await self.client.call("eth_sendRawTransaction", "0x" + bytes(raw).hex())
        while True:
            receipt = await self.client.call("eth_getTransactionReceipt", sent)
            if receipt is not None and int(receipt["blockHash"] or "0x0", 16):
                assert int(receipt["status"], 16) == 1
                found: dict[str, Any] = receipt
                return found
            await asyncio.sleep(POLL_SECONDS)

    def merchant(self, store: Store, node: NodeClient | None = None, **policy: Any) -> Merchant:
        """Returns the shop's back end with a policy."""
        return Merchant(
            node or self.client, store, Vault([KEY]), self.token, KeySigner(self.keys[1]),
            policy=Policy(**policy),
        )  # fmt: skip

    async def stored(self, merchant: Merchant, order_id: str) -> Order:
        """Drafts an order, signs it as the payer, and stores the signature."""
        order = await merchant.draft(order_id, self.payer, VALUE, lifetime=LIFETIME)
        return await merchant.accept(order_id, sign(order.authorization, self.keys[2]))


def file_store(folder: Path, name: str = "payments.db") -> Store:
    """Opens a store in a file."""
    return open_store(f"sqlite:///{folder / name}")
