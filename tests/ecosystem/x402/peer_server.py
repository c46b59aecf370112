"""Serves a paid resource with PyPI x402's middleware: ``peer_server.py FACILITATOR PORT
PAY_TO``.
"""

import sys

import uvicorn
from fastapi import FastAPI
from x402 import x402ResourceServer
from x402.http import FacilitatorConfig, HTTPFacilitatorClient
from x402.http.middleware.fastapi import PaymentMiddlewareASGI
from x402.mechanisms.evm.exact import register_exact_evm_server

facilitator, port, pay_to = sys.argv[1], int(sys.argv[2]), sys.argv[3]
server = x402ResourceServer(HTTPFacilitatorClient(FacilitatorConfig(url=facilitator)))
register_exact_evm_server(server)
accepts = {"scheme": "exact", "payTo": pay_to, "price": "$0.01", "network": "eip155:84532"}
app = FastAPI()
app.add_middleware(
    PaymentMiddlewareASGI, routes={"GET /weather": {"accepts": accepts}}, server=server
)


@app.get("/weather")
async def weather() -> dict:
    return {"weather": "sunny"}


uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
