"""Tests the paid API example: the command buys an answer; the page buys, captures and voids."""

import asyncio
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.browser import Browser, Page
from tests.max_wait import MAX_WAIT
from tests.shared_data import ROOT

LIMIT = 60  # time limit in seconds of one run


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "examples.paid_api", "--port", "0", *options]


@pytest.mark.parametrize("what", ["weather", "room"])
def test_the_command_buys_an_answer(what: str) -> None:
    done = subprocess.run(
        command("--once", what), cwd=ROOT, capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stderr
    assert "402: it costs" in done.stdout and "200 after" in done.stdout


@pytest.fixture
def url() -> Iterator[str]:
    """Runs the example. Provides the URL of its page."""
    program = subprocess.Popen(command(), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout is not None
        found = re.search(r"http://\S+", program.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        program.send_signal(signal.SIGTERM)
        program.wait(LIMIT)


async def says(page: Page, text: str) -> None:
    await page.until(f"document.querySelector('#holds').innerText.includes('{text}')")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs a browser")
async def test_the_page_buys_holds_captures_and_gives_back(url: str) -> None:
    async with Browser() as browser:
        page = await browser.page(url)
        await page.click('[data-buy="weather"]')
        await page.until("document.querySelectorAll('#steps li').length === 3")
        await page.until("document.querySelector('#steps').innerText.includes('sunny')")
        await page.click('[data-buy="room"]')
        await page.until("document.querySelector('#holds li')")
        # The money is held when the block with the payment is sealed.
        for _ in range(round(MAX_WAIT / 0.25)):
            if await page.value("!!document.querySelector('#holds [data-action=capture]')"):
                break
            await asyncio.sleep(0.25)
            await page.go(url)
        await page.click("#holds [data-action=capture]")
        await page.value("document.querySelector('dialog [name=amount]').value = '10'")
        await page.click("dialog .primary")
        await page.until(
            "document.querySelector('#holds').innerText.includes('10.00 USDC captured')"
        )
        await page.click("#holds [data-action=void]")
        await page.until("document.querySelector('#holds').innerText.includes('0.00 USDC held')")
        assert page.complaints == []
