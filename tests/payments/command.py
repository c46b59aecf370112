"""Runs ``fastevm pay`` in the test process, for the shop of a market."""

import asyncio
import base64
from collections.abc import Callable

import pytest

from fastevm.__main__ import main

from .market import KEY, Market

Command = Callable[..., "asyncio.Future[tuple[int, str]]"]


def command_of(
    market: Market, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Returns a function that runs a ``fastevm pay`` command in a thread.

    The function returns the exit code and the output.
    """
    monkeypatch.setenv("FASTEVM_PAYMENTS_KEY", base64.b64encode(KEY).decode())
    monkeypatch.setenv("FASTEVM_PAYMENTS_SIGNER", "0x" + bytes(market.shop.key).hex())
    monkeypatch.setenv("FASTEVM_PAYMENTS_STORE", market.store_url)
    monkeypatch.setenv("FASTEVM_PAYMENTS_NODE", market.server.urls[0])

    async def run(*words: str) -> tuple[int, str]:
        code = await asyncio.to_thread(main, ["pay", *words])
        output = capsys.readouterr()
        return code, output.out + output.err

    return run  # type: ignore[return-value]
