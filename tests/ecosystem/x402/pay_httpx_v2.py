"""Pays for a URL with the client of PyPI's x402 2.x: ``pay_httpx_v2.py URL [TIMES]``."""

import asyncio
import json
import os
import sys
import time

from eth_account import Account
from x402 import x402Client
from x402.http.clients import x402HttpxClient
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact import register_exact_evm_client


async def main() -> None:
    client = x402Client()
    register_exact_evm_client(client, EthAccountSigner(Account.from_key(os.environ["PAYER_KEY"])))
    times = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    async with x402HttpxClient(client, timeout=60) as http:
        for _ in range(times):
            started = time.perf_counter()
            answer = await http.get(sys.argv[1])
            reported = {
                "status": answer.status_code,
                "body": answer.text,
                "receipt": answer.headers.get("PAYMENT-RESPONSE"),
                "ms": round(1000 * (time.perf_counter() - started)),
            }
            print(json.dumps(reported), flush=True)


asyncio.run(main())
