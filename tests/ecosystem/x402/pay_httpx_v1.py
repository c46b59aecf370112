"""Pays for a URL with the client of PyPI's x402 1.0: ``pay_httpx_v1.py URL``."""

import asyncio
import json
import os
import sys
import time

from eth_account import Account
from x402.clients.httpx import x402HttpxClient


async def main() -> None:
    account = Account.from_key(os.environ["PAYER_KEY"])
    async with x402HttpxClient(account=account, timeout=60) as http:
        started = time.perf_counter()
        answer = await http.get(sys.argv[1])
        reported = {
            "status": answer.status_code,
            "body": answer.text,
            "receipt": answer.headers.get("X-PAYMENT-RESPONSE"),
            "ms": round(1000 * (time.perf_counter() - started)),
        }
        print(json.dumps(reported), flush=True)


asyncio.run(main())
