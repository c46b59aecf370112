"""Pays with PyPI's x402 client on httpx."""

import asyncio
import json
import sys

from eth_account import Account
from x402 import x402Client
from x402.http.clients.httpx import x402HttpxClient
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact.register import register_exact_evm_client


async def main() -> None:
    asked = json.load(sys.stdin)
    payer = x402Client()
    register_exact_evm_client(payer, EthAccountSigner(Account.from_key(asked["key"])))
    gate = asyncio.Semaphore(asked["at_once"])
    async with x402HttpxClient(payer, timeout=300) as client:

        async def buy(url: str) -> None:
            async with gate:
                answer = await client.get(url)
                reported = {"url": url, "status": answer.status_code, "body": answer.text}
                print(json.dumps(reported), flush=True)

        await asyncio.gather(*map(buy, asked["urls"]))


asyncio.run(main())
