"""A page about a transaction, like a block explorer's page, for the development chain."""

import html
import re
from typing import Any, Final

from aiohttp import web

from examples.merchant.chain import DECIMALS, SYMBOL
from examples.merchant.requests import BadRequest
from fastevm.payments import NodeClient
from fastevm.payments.events import Event, read_log

HASH: Final = re.compile(r"0x[0-9a-fA-F]{64}")
NO_BLOCK: Final = 0
PAGE: Final = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Transaction {short}</title>
  <link rel="icon" href="/static/icon.svg">
  <link rel="stylesheet" href="/static/style.css">
</head>
<body data-ready="yes">
  <header><p class="brand">Slow Roast</p><nav aria-label="Pages"><a href="/">Shop</a>
    <a href="/merchant">Merchant</a></nav></header>
  <main><h1>Transaction</h1><p><code>{hash}</code></p>
    <p><span class="chip" data-tone="{tone}">{state}</span></p>
    <dl class="terms">{rows}</dl>
    <h2>Money that it moved</h2>{transfers}</main>
  <div class="bar"><p class="hint">Read from the node of this demonstration.</p></div>
</body>
</html>
"""


class Explorer:
    """Serves transaction pages. ``outside``: URL of an explorer to redirect to instead."""

    def __init__(self, node: NodeClient, token: str, outside: str | None = None) -> None:
        self.node, self.token, self.outside = node, token, outside

    async def page(self, request: web.Request) -> web.Response:
        """Returns a transaction's page, or 404 if the node does not know the transaction."""
        wanted = request.match_info["hash"]
        if not HASH.fullmatch(wanted):
            raise BadRequest("expected a transaction hash")
        if self.outside is not None:
            raise web.HTTPFound(f"{self.outside.rstrip('/')}/tx/{wanted}")
        receipt, sent = await self.node.batch(
            [("eth_getTransactionReceipt", [wanted]), ("eth_getTransactionByHash", [wanted])]
        )
        if not isinstance(sent, dict):
            raise web.HTTPNotFound(text="The node does not know this transaction.")
        found = receipt if isinstance(receipt, dict) else None
        return web.Response(text=self._written(wanted, sent, found), content_type="text/html")

    def _written(self, wanted: str, sent: dict[str, Any], receipt: dict[str, Any] | None) -> str:
        state, tone = _state(receipt)
        rows = {"From": _code(sent["from"]), "To": _code(sent.get("to") or "a new contract")}
        if receipt is not None:
            rows["Block"] = str(int(receipt["blockNumber"], 16))
            rows["Gas used"] = f"{int(receipt['gasUsed'], 16):,}"
            fee = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
            rows["Fee"] = f"{fee / 10**18:.8f} ETH"
        shown = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows.items())
        return PAGE.format(
            short=html.escape(wanted[:10]), hash=html.escape(wanted), tone=tone, state=state,
            rows=shown, transfers=self._transfers(receipt),
        )  # fmt: skip

    def _transfers(self, receipt: dict[str, Any] | None) -> str:
        found = [read_log(raw) for raw in (receipt or {}).get("logs", ())]
        lines = [
            f"<li>{log.number('amount') / 10**DECIMALS:.2f} {SYMBOL} from"
            f" {_code(log.text('sender'))} to {_code(log.text('recipient'))}</li>"
            for log in found
            if log is not None and log.event is Event.TRANSFER and log.address == self.token
        ]
        return f'<ul class="trail">{"".join(lines)}</ul>' if lines else "<p>None.</p>"


def _state(receipt: dict[str, Any] | None) -> tuple[str, str]:
    if receipt is None:
        return "Waiting for a block", "wait"
    if int(receipt["status"], 16) == 0:
        return "Failed", "bad"
    canonical = int(receipt["blockHash"] or "0x0", 16) != NO_BLOCK
    return ("In a block", "good") if canonical else ("Pre-confirmed", "wait")


def _code(text: str) -> str:
    return f"<code>{html.escape(text)}</code>"
