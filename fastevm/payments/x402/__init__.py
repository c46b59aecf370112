"""x402 for sellers: a facilitator, a paywall for web servers, and a payer for programs.

`ChainSettler` settles payments on one chain, `Facilitator` on several. `Paywall` charges for the
answers of aiohttp, ASGI or WSGI applications. ``fastevm pay facilitator`` serves a facilitator over
HTTP.
"""

from fastevm.payments.x402.aiohttp_server import payment_middleware
from fastevm.payments.x402.asgi import PaymentMiddleware
from fastevm.payments.x402.chain_settler import ChainSettler, Rules
from fastevm.payments.x402.facilitator import Engine, Facilitator
from fastevm.payments.x402.grants import FileGrants, Grant, Grants, MemoryGrants, Phase, Reply
from fastevm.payments.x402.http import application
from fastevm.payments.x402.messages import (
    Malformed,
    Payment,
    Requirements,
    Settled,
    Verified,
)
from fastevm.payments.x402.payer import NothingToPay, Payer, PaymentPending
from fastevm.payments.x402.paywall import Paywall, Sale
from fastevm.payments.x402.purchase import Request
from fastevm.payments.x402.reasons import Refused, Unavailable
from fastevm.payments.x402.remote import RemoteFacilitator
from fastevm.payments.x402.wsgi import LoopThread
from fastevm.payments.x402.wsgi import PaymentMiddleware as WsgiPaymentMiddleware

__all__ = [
    "ChainSettler",
    "Engine",
    "Facilitator",
    "FileGrants",
    "Grant",
    "Grants",
    "LoopThread",
    "Malformed",
    "MemoryGrants",
    "NothingToPay",
    "Payer",
    "Payment",
    "PaymentMiddleware",
    "PaymentPending",
    "Paywall",
    "Phase",
    "Refused",
    "RemoteFacilitator",
    "Reply",
    "Request",
    "Requirements",
    "Rules",
    "Sale",
    "Settled",
    "Unavailable",
    "Verified",
    "WsgiPaymentMiddleware",
    "application",
    "payment_middleware",
]
