"""FOR DEMONSTRATIONS ONLY: signs for the buyers with private keys that are public.

This is the server side of ``static/demo-wallet.js``, so that the demonstration works in a browser
without a wallet. Never use it in a real shop.
"""

from typing import Any

from aiohttp import web
from eth_account.messages import encode_typed_data
from eth_account.signers.local import LocalAccount

from examples.merchant.requests import BadRequest, body_of


class DemoWallet:
    """Two routes: list the buyers' accounts, and sign with one of them."""

    def __init__(self, accounts: dict[str, LocalAccount], chain_id: int) -> None:
        self.accounts = accounts
        self.chain_id = chain_id
        self._by_address = {account.address.lower(): account for account in accounts.values()}

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/demo-wallet/accounts", self.list_accounts),
            web.post("/demo-wallet/sign", self.sign),
        ]

    async def list_accounts(self, _: web.Request) -> web.Response:
        """Returns the accounts that the wallet can sign for."""
        named = [{"name": n, "address": a.address} for n, a in self.accounts.items()]
        return web.json_response({"chainId": hex(self.chain_id), "accounts": named})

    async def sign(self, request: web.Request) -> web.Response:
        """Returns the result of ``eth_signTypedData_v4``: 65 bytes as 0x-hex."""
        body = await body_of(request, account=str, typedData=dict)
        account = self._by_address.get(body["account"].lower())
        if account is None:
            raise BadRequest("the test wallet has no such account")
        signature = account.sign_message(self._message(body["typedData"])).signature
        return web.json_response({"signature": "0x" + bytes(signature).hex()})

    def _message(self, typed: dict[str, Any]) -> Any:
        if typed.get("domain", {}).get("chainId") != self.chain_id:
            raise BadRequest("the test wallet signs for the development chain only")
        try:
            return encode_typed_data(full_message=typed)
        except Exception:  # eth-account raises various exceptions for invalid typed data
            raise BadRequest("expected EIP-712 typed data") from None
