"""Starts the demonstration's chain: a development node, accounts, and a dollar token.

The keys are those of the well-known test mnemonic. They are public, so never use this module in a
real shop.
"""

import asyncio
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.address import to_checksum_address

from fastevm.payments import NodeClient
from fastevm.payments.contracts import artifact

MNEMONIC: Final = "test test test test test test test test test test test junk"
SYMBOL: Final = "USDC"
TOKEN_NAME: Final = "USD Coin"
TOKEN_VERSION: Final = "2"
DECIMALS: Final = 6
ALLOWANCE: Final = 100 * 10**DECIMALS  # initial balance of each buyer

START_SECONDS: Final = 20.0  # timeout for the node to start listening
STOP_SECONDS: Final = 10.0
GAS: Final = 4_000_000
PRIORITY_FEE: Final = 10**9


def person(number: int) -> LocalAccount:
    """Returns an account of the mnemonic. The development chain funds the account."""
    Account.enable_unaudited_hdwallet_features()
    found: LocalAccount = Account.from_mnemonic(MNEMONIC, account_path=f"m/44'/60'/0'/0/{number}")
    return found


@dataclass(frozen=True, slots=True)
class People:
    """The accounts: the bank administers the token, the merchant sells, the buyers buy."""

    bank: LocalAccount
    merchant: LocalAccount
    buyers: dict[str, LocalAccount]

    @classmethod
    def of_mnemonic(cls) -> "People":
        buyers = {name: person(number) for number, name in enumerate(("Ada", "Ben", "Cleo"), 2)}
        return cls(bank=person(0), merchant=person(1), buyers=buyers)


class NodeProcess:
    """A development node in a separate process, on a free port."""

    def __init__(self, *, port: int = 0, options: Sequence[str] = ()) -> None:
        self.command = [
            sys.executable, "-m", "fastevm", "node", "--port", str(port),
            "--receipts", "preconfirmed", *options,
        ]  # fmt: skip
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Starts the node and returns its HTTP address. Raises RuntimeError if that fails."""
        self._process = await asyncio.create_subprocess_exec(
            *self.command, stdout=asyncio.subprocess.PIPE
        )
        try:
            async with asyncio.timeout(START_SECONDS):
                address = await self._read_address()
        except TimeoutError:
            address = None
        if address is None:
            await self.stop()
            raise RuntimeError("the node did not start; see its output above")
        self._reader = asyncio.create_task(self._drain())
        return f"http://{address}"

    async def stop(self) -> None:
        """Terminates the node and waits for its end."""
        if self._reader is not None:
            self._reader.cancel()
        if self._process is None or self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def _read_address(self) -> str | None:
        assert self._process is not None and self._process.stdout is not None
        while line := await self._process.stdout.readline():
            if found := re.search(r"Listening on (\S+)", line.decode()):
                return found[1]
        return None

    async def _drain(self) -> None:
        """Discards further output, so that the node never blocks on a full pipe."""
        assert self._process is not None and self._process.stdout is not None
        with suppress(asyncio.CancelledError):
            while await self._process.stdout.readline():
                pass


class Bank:
    """Deploys the token and sends transactions for its administrator and the buyers."""

    token_version = TOKEN_VERSION

    def __init__(self, node: NodeClient, people: People, chain_id: int) -> None:
        self.node = node
        self.people = people
        self.chain_id = chain_id
        self.contract = artifact("Token")
        self.token = ""
        # transactions are sent one after the other, so that account nonces do not collide
        self._one_at_a_time = asyncio.Lock()

    async def open(self) -> str:
        """Deploys the token, funds every buyer, and returns the token's address."""
        initcode = self.contract.initcode(TOKEN_NAME, SYMBOL, DECIMALS, self.people.bank.address)
        receipt = await self._send(self.people.bank, None, initcode)
        self.token = str(to_checksum_address(receipt["contractAddress"]))
        await self.fund()
        return self.token

    async def balance(self, holder: str) -> int:
        """Returns a holder's balance at the newest slice."""
        data = "0x" + self.contract.encode("balanceOf", holder).hex()
        answer = await self.node.call("eth_call", {"to": self.token, "data": data}, "pending")
        return int(answer, 16)

    async def pause(self) -> None:
        await self._do(self.people.bank, "pause")

    async def unpause(self) -> None:
        await self._do(self.people.bank, "unpause")

    async def block(self) -> None:
        for buyer in self.people.buyers.values():
            await self._do(self.people.bank, "blacklist", buyer.address)

    async def unblock(self) -> None:
        for buyer in self.people.buyers.values():
            await self._do(self.people.bank, "unBlacklist", buyer.address)

    async def fund(self) -> None:
        """Mints ``ALLOWANCE`` for each buyer."""
        for buyer in self.people.buyers.values():
            await self._do(self.people.bank, "mint", buyer.address, ALLOWANCE)

    async def empty(self) -> None:
        """Transfers all tokens of the buyers to the bank."""
        for buyer in self.people.buyers.values():
            if held := await self.balance(buyer.address):
                await self._do(buyer, "transfer", self.people.bank.address, held)

    async def _do(self, sender: LocalAccount, function: str, *arguments: Any) -> None:
        await self._send(sender, self.token, self.contract.encode(function, *arguments))

    async def _send(self, sender: LocalAccount, to: str | None, data: bytes) -> dict[str, Any]:
        """Sends a transaction and returns its receipt. Raises RuntimeError if it reverts."""
        async with self._one_at_a_time:
            count, price = await asyncio.gather(
                self.node.call("eth_getTransactionCount", sender.address, "pending"),
                self.node.call("eth_gasPrice"),
            )
            transaction: dict[str, Any] = {
                "chainId": self.chain_id,
                "nonce": int(count, 16),
                "gas": GAS,
                "maxFeePerGas": 2 * int(price, 16) + PRIORITY_FEE,
                "maxPriorityFeePerGas": PRIORITY_FEE,
                "data": data,
                "value": 0,
                **({} if to is None else {"to": to}),
            }
            signed = sender.sign_transaction(transaction)
            raw = "0x" + bytes(signed.raw_transaction).hex()
            receipt = await self.node.call("eth_sendRawTransactionSync", raw)
        if int(receipt["status"], 16) != 1:
            raise RuntimeError("the token reverted the transaction")
        return dict(receipt)
