"""Serves PyPI x402's facilitator class on three routes: ``peer_facilitator.py NODE PORT``.

The environment contains the private key.
"""

import os
import sys

import uvicorn
from fastapi import FastAPI, Request
from x402 import x402Facilitator
from x402.mechanisms.evm import FacilitatorWeb3Signer
from x402.mechanisms.evm.exact import register_exact_evm_facilitator
from x402.schemas import PaymentPayload, PaymentRequirements

node, port = sys.argv[1], int(sys.argv[2])
facilitator = x402Facilitator()
signer = FacilitatorWeb3Signer(private_key=os.environ["FACILITATOR_KEY"], rpc_url=node)
register_exact_evm_facilitator(facilitator, signer, networks="eip155:84532")
app = FastAPI()


@app.post("/verify")
async def verify(request: Request) -> dict:
    reported = await request.json()
    answer = await facilitator.verify(
        PaymentPayload.model_validate(reported["paymentPayload"]),
        PaymentRequirements.model_validate(reported["paymentRequirements"]),
    )
    return answer.model_dump(by_alias=True, exclude_none=True)


@app.post("/settle")
async def settle(request: Request) -> dict:
    reported = await request.json()
    answer = await facilitator.settle(
        PaymentPayload.model_validate(reported["paymentPayload"]),
        PaymentRequirements.model_validate(reported["paymentRequirements"]),
    )
    return answer.model_dump(by_alias=True, exclude_none=True)


@app.get("/supported")
async def supported() -> dict:
    return facilitator.get_supported().model_dump(by_alias=True, exclude_none=True)


uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
