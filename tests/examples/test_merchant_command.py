"""Tests that ``python -m examples.merchant`` starts all its processes and stops them again."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from examples.merchant.command import options_of
from tests.max_wait import MAX_WAIT

ROOT = Path(__file__).parents[2]
COMMAND = "python -m examples.merchant"
LINES = 5  # lines of the banner: shop, merchant, node, token, orders


async def urls_of(process: asyncio.subprocess.Process) -> dict[str, str]:
    assert process.stdout is not None
    async with asyncio.timeout(MAX_WAIT):
        lines = [(await process.stdout.readline()).decode() for _ in range(LINES)]
    found = [re.fullmatch(r"(\w+) +(\S+)\n", line) for line in lines]
    return {item[1]: item[2] for item in found if item}


async def test_it_serves_both_pages_and_leaves_nothing_behind() -> None:
    makefile, readme = ((ROOT / name).read_text() for name in ("Makefile", "README.md"))
    assert f"$(BIN)/{COMMAND} $(ARGS)" in makefile and "make merchant" in readme
    process = await asyncio.create_subprocess_exec(
        sys.executable, *COMMAND.split()[1:], "--port", "0", cwd=ROOT, stdout=subprocess.PIPE
    )
    try:
        urls = await urls_of(process)
        assert list(urls) == ["Shop", "Merchant", "Node", "Token", "Orders"]
        async with aiohttp.ClientSession() as session:
            listing = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "fastevm", "pay", "list", "--store", urls["Orders"],
                cwd=ROOT, stderr=subprocess.PIPE,
            )  # fmt: skip
            assert b"the store has no order yet" in (await listing.communicate())[1]
            for name in ("Shop", "Merchant"):
                async with session.get(urls[name]) as answer:
                    assert answer.status == 200
                    assert "Slow Roast" in await answer.text()
            call = {"jsonrpc": "2.0", "id": 1, "method": "eth_getCode"}
            call["params"] = [urls["Token"], "pending"]
            async with session.post(urls["Node"], json=call) as answer:
                assert len((await answer.json())["result"]) > 2
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), MAX_WAIT) == 0
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.get(urls["Node"])
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_signal_to_the_whole_group_ends_it_quietly() -> None:
    """Ctrl-C in a terminal signals all processes, so the node may end before the others."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *COMMAND.split()[1:], "--port", "0", cwd=ROOT, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        await urls_of(process)
        os.killpg(process.pid, signal.SIGTERM)
        _, errors = await asyncio.wait_for(process.communicate(), MAX_WAIT)
        assert process.returncode == 0
        assert b"Unclosed" not in errors and b"Traceback" not in errors, errors.decode()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def test_a_port_that_is_taken_ends_it_with_a_sentence() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *COMMAND.split()[1:], "--port", str(port),
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        async with asyncio.timeout(MAX_WAIT):
            _, complaint = await process.communicate()
    assert process.returncode == 1
    assert "examples.merchant: " in complaint.decode()
    assert "--port 0 for any free" in complaint.decode()
    assert "Traceback" not in complaint.decode()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org"])
def test_keys_that_everybody_has_are_not_served_to_others(
    host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        options_of(["--host", host])
    assert "not a loopback address" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [["--port", "65536"], ["--port", "-1"], ["--confirmations", "0"], ["--block-time", "fast"]],
)
def test_numbers_that_make_no_sense_are_refused_with_their_reach(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        options_of(wrong)
    assert ": expected " in capsys.readouterr().err


def test_options_have_the_shown_defaults() -> None:
    assert options_of([]).port == 8080
    assert options_of(["--host", "::1", "--confirmations", "5"]).confirmations == 5
