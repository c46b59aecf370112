"""``fastevm pay facilitator``: verifies and settles x402 payments for other programs over HTTP."""

import argparse
import asyncio
import contextlib
import ipaddress
import logging
import os
from typing import Final

from aiohttp import web

from fastevm.payments.authorization import Kind, address
from fastevm.payments.commands.serve import port
from fastevm.payments.commands.shared import listen, node_of, seconds, signer_of, store_of
from fastevm.payments.errors import InvalidTerms, PaymentError
from fastevm.payments.escrow import V1_1
from fastevm.payments.node import NodeClient
from fastevm.payments.policy import Policy
from fastevm.payments.signer import KeySigner
from fastevm.payments.tokens import KNOWN, Token, WrongToken
from fastevm.payments.vault import KEY_VARIABLE, Vault
from fastevm.payments.x402.auth_capture import AuthCapture
from fastevm.payments.x402.chain_settler import ChainSettler, Rules
from fastevm.payments.x402.facilitator import Facilitator
from fastevm.payments.x402.http import application, check_token

SIGNER_VARIABLE: Final = "FASTEVM_FACILITATOR_KEY"
TOKEN_VARIABLE: Final = "FASTEVM_FACILITATOR_TOKEN"
PORT: Final = 4020


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the program's options."""
    parser.epilog = (
        f"{SIGNER_VARIABLE}: private key of the account that pays the gas, used for nothing "
        f"else. {KEY_VARIABLE}: keys that encrypt the store. {TOKEN_VARIABLE}: bearer "
        "token that callers must send, if set."
    )
    parser.add_argument(
        "--node",
        action="append",
        required=True,
        metavar="URL",
        help="URL of a node; repeat for each chain",
    )
    parser.add_argument(
        "--asset", action="append", default=[], metavar="ADDRESS|SYMBOL",
        help="a token to accept (default: USDC and EURC of known chains)",
    )  # fmt: skip
    parser.add_argument(
        "--store", default="sqlite:///facilitator.db", metavar="URL", help="default: %(default)s"
    )
    parser.add_argument("--host", default="127.0.0.1", help="default: %(default)s")
    parser.add_argument("--port", type=port, default=PORT, help=f"default {PORT}; 0 for any")
    parser.add_argument(
        "--pay-to",
        action="append",
        metavar="ADDRESS",
        help="accept only these recipients; repeatable (default: all, if --host is loopback)",
    )
    parser.add_argument(
        "--factory", action="append", default=[], metavar="ADDRESS",
        help="a factory that may deploy payers' wallets (ERC-6492)",
    )  # fmt: skip
    parser.add_argument(
        "--canonical", action="store_true",
        help="wait for a canonical block; do not answer after pre-confirmation",
    )  # fmt: skip
    parser.add_argument(
        "--settle-for", type=seconds, default=Rules().settle_for, metavar="SECONDS",
        help="how many seconds /settle waits before it answers settlement_pending"
        " (default: %(default)g)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Serves until interrupted."""
    token = _token()
    rules = _rules(arguments, guarded=token is not None)
    signer = signer_of(SIGNER_VARIABLE)
    vault = Vault.from_environment()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(arguments, rules, signer, vault, token))
    return 0


def _token() -> str | None:
    """Returns the bearer token, None if no token is set. Raises InvalidTerms for a bad token."""
    token = os.environ.get(TOKEN_VARIABLE)
    if token is not None:
        check_token(token, TOKEN_VARIABLE)
    return token


def _rules(arguments: argparse.Namespace, *, guarded: bool) -> Rules:
    """Returns the rules. Raises InvalidTerms for a public facilitator without restrictions.

    If ``guarded``, callers must send a token.
    """
    recipients = None
    if arguments.pay_to is not None:
        recipients = frozenset(address(recipient, "--pay-to") for recipient in arguments.pay_to)
    if recipients is None and not guarded and not _loopback(arguments.host):
        raise InvalidTerms(
            f"--host {arguments.host} is public: anybody could spend this account's gas; "
            f"pass --pay-to or set {TOKEN_VARIABLE}"
        )
    return Rules(
        recipients=recipients,
        factories=tuple(address(factory, "--factory") for factory in arguments.factory),
        settle_for=arguments.settle_for,
        preconfirmed=not arguments.canonical,
    )


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _serve(
    arguments: argparse.Namespace,
    rules: Rules,
    signer: KeySigner,
    vault: Vault,
    token: str | None,
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        store = stack.enter_context(
            contextlib.closing(store_of(arguments.store, hint="pass --store"))
        )
        settlers: dict[int, ChainSettler] = {}
        for url in arguments.node:
            node = node_of(url)
            stack.push_async_callback(node.close)
            tokens = await _tokens(node, arguments.asset)
            made = ChainSettler(node, store, vault, signer, tokens, policy=Policy(), rules=rules)
            if settlers.setdefault(made.chain_id, made) is not made:
                raise InvalidTerms(f"--node: two nodes have the chain id {made.chain_id}")
            await made.transactions.check_key()
            served = ", ".join(f"{token.symbol} {token.domain.token}" for token in tokens)
            print(f"Chain {made.chain_id}: {served}", flush=True)
        serving = list(settlers.values())
        schemes = [AuthCapture()] if await _has_escrow(serving) else []
        if not schemes:
            print(f"No escrow at {V1_1.escrow}: holds (auth-capture) are not offered", flush=True)
        app = application(Facilitator(serving, schemes), token)
        runner = web.AppRunner(app, access_log=None)
        stack.push_async_callback(runner.cleanup)
        port = await listen(runner, arguments.host, arguments.port)
        print(f"Listening on http://{arguments.host}:{port} as {signer.address}", flush=True)
        await asyncio.Event().wait()


async def _has_escrow(settlers: list[ChainSettler]) -> bool:
    """Whether a chain has the escrow of ``auth-capture`` at its published address."""
    asked = [await settler.ask([("eth_getCode", [V1_1.escrow, "latest"])]) for settler in settlers]
    return any(code not in ("0x", None) for (code,) in asked)


async def _tokens(node: NodeClient, wanted: list[str]) -> list[Token]:
    """Returns the tokens to accept on a node's chain: ``wanted``, or all known tokens if empty."""
    chain_id = int(await node.call("eth_chainId"), 16)
    names = wanted or [row.symbol for row in KNOWN if row.chain_id == chain_id]
    if not names:
        raise InvalidTerms(f"--asset: no known token on chain {chain_id}, pass an address")
    found = []
    for name in names:
        try:
            token = await Token.of(node, name)
            if Kind.TRANSFER not in token.kinds:
                raise WrongToken(f"{name} on chain {chain_id} has no EIP-3009, which x402 needs")
            found.append(token)
        except PaymentError as error:
            if wanted:
                raise
            logging.getLogger(__name__).warning("token %s is skipped: %s", name, error)
    if not found:
        raise InvalidTerms(f"--asset: chain {chain_id} has none of {', '.join(names)}")
    return found
