"""Tests the site that `make docs` builds: search results, copied code, and axe's accessibility."""

import functools
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import pytest_asyncio

from .browser import Browser, Page, executable, needs_axe
from .shared_data import ROOT

SITE = ROOT / "build/site"
PHONE = {"width": 390, "height": 844}
PAGES = (
    "", "start/installation/", "start/configuration/", "payments/webhooks/", "fork/",
    "reference/json-rpc/eth/", "tutorials/follow-preconfirmations/",
)  # fmt: skip
TOPICS = {
    "refund": "payments/refunds/",
    "webhook": "payments/webhooks/",
    "x402": "payments/x402-sellers/",
    "FASTEVM_PAYMENTS_KEY": "payments/keys/",
    "Merchant": "reference/payments/",
    "Paywall": "reference/payments/",
    "reconcile": "payments/reconciliation/",
    "eth_simulateV1": "reference/json-rpc/eth/",
    "fastevm.toml": "start/configuration/",
}
"""Word -> a page that a search for the word must find."""

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        not (SITE / "search/search_index.json").is_file(), reason="needs the site: `make docs`"
    ),
]
needs_browser = pytest.mark.skipif(
    executable() is None, reason="no Chromium here (Debian: apt-get install chromium)"
)


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with Browser() as running:
        yield running


async def opened(browser: Browser, url: str, **size: int) -> Page:
    page = await browser.page(url, ready=False, **size)
    await page.ask("Page.navigate", url=url)
    await page.until(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")
    return page


@pytest.mark.parametrize(("word", "location"), TOPICS.items())
async def test_the_search_has_the_word_on_its_page(word: str, location: str) -> None:
    docs = json.loads((SITE / "search/search_index.json").read_text())["docs"]
    found = [
        doc["location"] for doc in docs if word.lower() in (doc["title"] + doc["text"]).lower()
    ]
    assert any(each.startswith(location) for each in found)


@needs_browser
async def test_a_console_is_copied_without_prompt_and_output(browser: Browser, url: str) -> None:
    page = await opened(browser, url + "start/installation/")
    copied = await page.value(
        "(() => { const code = document.querySelector('.language-console code');"
        " code.setAttribute('data-md-copying', ''); return code.innerText.trim() })()"
    )
    assert copied == ".venv/bin/fastevm --version"


@needs_browser
async def test_no_page_is_wider_than_a_phone(browser: Browser, url: str) -> None:
    for path in PAGES:
        page = await opened(browser, url + path, **PHONE)
        assert await page.value("document.documentElement.scrollWidth") <= PHONE["width"], path


@needs_axe
@needs_browser
@pytest.mark.slow
async def test_axe_finds_nothing(browser: Browser, url: str) -> None:
    for size in ({}, PHONE):
        for theme in ("light", "dark"):
            for path in PAGES:
                page = await opened(browser, url + path, **size)
                feature = {"name": "prefers-color-scheme", "value": theme}
                await page.ask("Emulation.setEmulatedMedia", features=[feature])
                await page.ask("Page.reload")
                await page.until("document.readyState === 'complete'")
                assert await page.violations() == [], (path, theme, size)


async def test_the_list_for_language_models_has_every_page() -> None:
    listed = re.findall(r"^- \[[^]]+\]\(([^)]*)\)", (SITE / "llms.txt").read_text(), re.MULTILINE)
    pages = {path.parent.relative_to(SITE) for path in SITE.rglob("index.html")}
    assert {Path(address) for address in listed} == pages
    assert len(listed) == len(pages)
