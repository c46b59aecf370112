"""Makes a development chain with a token, nested calls and a revert, for the explorer to show."""

from dataclasses import dataclass
from typing import Any, Final

from fastevm.core.primitives.hex import hex_bytes
from fastevm.payments.contracts import artifact
from fastevm.rpc_client.blocking import JsonRpcClient
from tests.max_wait import MAX_WAIT

GAS: Final = hex(3_000_000)
TOKEN, MULTICALL, WALLET = artifact("Token"), artifact("Multicall"), artifact("Wallet")
MINTED: Final = 5_000_000_000
PAID: Final = 12_500_000


@dataclass(frozen=True)
class Scene:
    """The addresses of the contracts, the hashes of the transactions, and the senders."""

    accounts: list[str]
    token: str
    multicall: str
    wallet: str
    transfer: str
    nested: str
    reverted: str


def raw(address: str) -> bytes:
    return bytes.fromhex(address[2:])


class Stage:
    """Sends transactions from the node's accounts, and mines them."""

    def __init__(self, url: str) -> None:
        self.client = JsonRpcClient(url, timeout=MAX_WAIT)
        self.accounts: list[str] = self.client.call("eth_accounts")

    def send(self, data: bytes, to: str | None = None, *, sender: int = 0, value: int = 0) -> str:
        """Sends a transaction from an account of the node. Returns its hash."""
        body = {"from": self.accounts[sender], "data": hex_bytes(data), "gas": GAS}
        body |= {"value": hex(value)} | ({} if to is None else {"to": to})
        tx_hash: str = self.client.call("eth_sendTransaction", body)
        return tx_hash

    def mine(self) -> None:
        self.client.call("evm_mine")

    def receipt(self, tx_hash: str) -> Any:
        return self.client.call("eth_getTransactionReceipt", tx_hash)

    def deployed(self, data: bytes) -> str:
        """Deploys a contract. Returns its address."""
        tx_hash = self.send(data)
        self.mine()
        address: str = self.receipt(tx_hash)["contractAddress"]
        return address

    def play(self) -> Scene:
        """Deploys the contracts, sends the transactions, and mines all.

        Returns what the pages show.
        """
        owner, buyer = raw(self.accounts[0]), raw(self.accounts[1])
        token = self.deployed(TOKEN.initcode("USD Coin", "USDC", 6, owner))
        multicall = self.deployed(MULTICALL.initcode())
        wallet = self.deployed(WALLET.initcode(owner))
        for holder in (owner, buyer, raw(wallet), raw(multicall)):
            self.send(TOKEN.encode("mint", holder, MINTED), token)
        self.mine()
        transfer = self.send(TOKEN.encode("transfer", buyer, PAID), token)
        self.send(b"", self.accounts[3], sender=2, value=10**18)
        self.mine()
        nested = self.send(self.calls_in_calls(raw(token), raw(multicall)), wallet)
        self.mine()
        reverted = self.send(TOKEN.encode("transfer", buyer, MINTED), token, sender=5)
        self.mine()
        return Scene(self.accounts, token, multicall, wallet, transfer, nested, reverted)

    def calls_in_calls(self, token: bytes, multicall: bytes) -> bytes:
        """Returns calldata for the wallet, whose multicall calls the token and itself."""
        pays = [
            (token, False, TOKEN.encode("transfer", raw(account), PAID))
            for account in self.accounts[2:5]
        ]
        reads = [
            (token, False, TOKEN.encode("balanceOf", raw(account)))
            for account in self.accounts[2:5]
        ]
        fails = [(token, True, TOKEN.encode("transfer", bytes(20), PAID))]
        inner = MULTICALL.encode("aggregate3", [*pays, *reads])
        outer = MULTICALL.encode("aggregate3", [(multicall, False, inner), *reads[:1], *fails])
        return WALLET.encode("execute", multicall, 0, outer)
