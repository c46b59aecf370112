"""Runs the demonstration on a chain of Base. A native stablecoin replaces the token contract."""

from typing import Any, Final

from eth_utils.crypto import keccak

from examples.merchant.chain import ALLOWANCE, SYMBOL, TOKEN_NAME, Bank
from fastevm.payments.calls import call_data
from fastevm.payments.contracts.b20 import address_of, stablecoin

POLICIES: Final = "0x8453000000000000000000000000000000000002"
POLICY_CREATED: Final = "0x" + keccak(text="PolicyCreated(uint64,address,uint8)").hex()
SENDERS: Final = keccak(text="TRANSFER_SENDER_POLICY")
BLOCKLIST: Final = 0  # type of a policy
ALLOW_ALL: Final = 0  # id of a policy
TRANSFERS: Final = 0  # number of the token's feature that the demonstration pauses
TOKEN_VERSION: Final = "1"


class NativeBank(Bank):
    """Sends the transactions of the administrator of a B20 token."""

    token_version = TOKEN_VERSION
    _policy: int | None = None  # id of the policy that blocks the buyers, created on first use

    async def open(self) -> str:
        """Creates the token, funds every buyer, and returns the token's address."""
        bank = self.people.bank
        await self._send(bank, *stablecoin(TOKEN_NAME, SYMBOL, bank.address))
        self.token = address_of(bank.address, SYMBOL)
        await self.fund()
        return self.token

    async def pause(self) -> None:
        await self._administer("pause(uint8[])", [TRANSFERS])

    async def unpause(self) -> None:
        await self._administer("unpause(uint8[])", [TRANSFERS])

    async def block(self) -> None:
        if self._policy is None:
            bank = self.people.bank
            buyers = [buyer.address for buyer in self.people.buyers.values()]
            create = "createPolicyWithAccounts(address,uint8,address[])"
            receipt = await self._send(
                bank, POLICIES, call_data(create, bank.address, BLOCKLIST, buyers)
            )
            made = next(log for log in receipt["logs"] if log["topics"][0] == POLICY_CREATED)
            self._policy = int(made["topics"][1], 16)
        await self._administer("updatePolicy(bytes32,uint64)", SENDERS, self._policy)

    async def unblock(self) -> None:
        await self._administer("updatePolicy(bytes32,uint64)", SENDERS, ALLOW_ALL)

    async def fund(self) -> None:
        """Mints ``ALLOWANCE`` for each buyer."""
        for buyer in self.people.buyers.values():
            await self._administer("mint(address,uint256)", buyer.address, ALLOWANCE)

    async def _administer(self, function: str, *arguments: Any) -> None:
        await self._send(self.people.bank, self.token, call_data(function, *arguments))
