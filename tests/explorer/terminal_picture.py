"""Draws the terminal for the README: ``python -m tests.explorer.terminal_picture FILE``.

A development node runs a few token transactions. Its coloured terminal output becomes an SVG.
"""

from __future__ import annotations

import html
import io
import re
import sys
from pathlib import Path
from typing import Final

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.keccak import keccak256
from fastevm.node import Mining, dev_node
from fastevm.rpc.terminal.options import TerminalOptions
from fastevm.rpc.terminal.terminal import Terminal

COLOURS: Final = {
    "1": "#ffffff", "2": "#8b949e", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341",
    "36": "#79c0ff",
}  # fmt: skip
# Width of a character, height of a line, margin, and height of the title bar, in pixels.
CELL, LINE, MARGIN, BAR = 7.8, 19, 18, 30
COLUMNS: Final = 118
ESCAPE: Final = re.compile(r"\x1b\[(\d+)m(.*?)\x1b\[0m")
TOKEN: Final = bytes.fromhex("5fbdb2315678afecb367f032d93f642f64180aa3")
# The token emits Transfer(from, to, value) if the value is below 100. Otherwise it reverts with
# ERC20InsufficientBalance(from, 100, value).
SELECTOR: Final = keccak256(b"ERC20InsufficientBalance(address,uint256,uint256)")[:4]
TRANSFER: Final = keccak256(b"Transfer(address,address,uint256)")


def token_code() -> bytes:
    """Returns the code of the token. Its calldata: a selector, the receiver, and the value."""
    check = bytes.fromhex("606460243510")  # LT(value, 100)
    revert = (
        bytes.fromhex("63") + SELECTOR + bytes.fromhex("60e01b5f52")  # PUSH4, SHL 224, MSTORE 0
        + bytes.fromhex("336004526064602452602435604452")  # from, 100, value
        + bytes.fromhex("60645ffd")  # REVERT of 100 bytes
    )  # fmt: skip
    transfer = (
        bytes.fromhex("5b6024355f52600435337f") + TRANSFER  # JUMPDEST, value, receiver, sender
        + bytes.fromhex("60205fa3")  # LOG3
        + bytes.fromhex("60015f5260205ff3")  # true
    )  # fmt: skip
    jump = bytes([0x60, len(check) + 3 + len(revert), 0x57])
    return check + jump + revert + transfer


def call(signature: str, to: bytes, value: int) -> bytes:
    return keccak256(signature.encode())[:4] + to.rjust(32, b"\0") + value.to_bytes(32)


def recorded() -> str:
    """Runs the node. Returns its terminal output with escape sequences."""
    node = dev_node(accounts=2, mining=Mining.INSTANT, timestamp=1_700_000_000)
    node.development.amend({"0x" + TOKEN.hex(): {"code": token_code().hex()}})
    out = io.StringIO()
    terminal = Terminal(TerminalOptions(coloured=True), out)
    terminal.start(node)
    payer, payee = node.accounts
    transfers = (
        (payee.address, b"", 15 * 10**17),
        (TOKEN, call("transfer(address,uint256)", payee.address, 25), 0),
        (TOKEN, call("transfer(address,uint256)", payee.address, 700), 0),
    )
    for nonce, (to, data, value) in enumerate(transfers):
        made = Transaction.build(
            to=to, data=data, value=value, nonce=nonce, gas_limit=200_000, chain_id=31_337,
            max_fee_per_gas=10**10, max_priority_fee_per_gas=1,
        )  # fmt: skip
        node.submit(made.sign(payer.private_key).raw)
    terminal.stop()
    return out.getvalue()


def picture(text: str) -> str:
    """Draws a terminal with this text. Returns the SVG."""
    lines = ["\x1b[32m$\x1b[0m fastevm dev", *text.rstrip().splitlines()]
    width, height = COLUMNS * CELL + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN + BAR
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" '
        f'width="{width:g}" height="{height}" role="img">',
        "<title>The terminal of fastevm dev</title>",
        f'<rect width="{width:g}" height="{height}" rx="10" fill="#0d1117"/>',
        *(f'<circle cx="{MARGIN + 18 * at}" cy="{MARGIN}" r="6" fill="{colour}"/>'
          for at, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))),
        '<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="13" '
        'fill="#c9d1d9" xml:space="preserve">',
    ]  # fmt: skip
    for number, line in enumerate(lines):
        parts.append(f'<text x="{MARGIN}" y="{BAR + MARGIN + LINE * number}">{spans(line)}</text>')
    return "\n".join([*parts, "</g></svg>", ""])


def spans(line: str) -> str:
    """Returns a line with its colours as SVG. Long lines are cut off."""
    shown, at, room = [], 0, COLUMNS
    for found in [*ESCAPE.finditer(line), None]:
        until = len(line) if found is None else found.start()
        pieces = [(None, line[at:until])]
        if found is not None:
            pieces.append((COLOURS[found[1]], found[2]))
            at = found.end()
        for colour, text in pieces:
            cut = html.escape(text[:room]).replace(" ", "\u00a0")  # SVG collapses repeated spaces
            room -= len(text[:room])
            shown.append(cut if colour is None else f'<tspan fill="{colour}">{cut}</tspan>')
    return "".join(shown)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(recorded()))
