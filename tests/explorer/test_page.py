"""Tests the explorer in a browser: what its pages show, and what users can do."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import ClientSession, web

from fastevm.bench.node.launch import ServerThread
from fastevm.node import Mining, dev_node
from fastevm.rpc.contract_files import ContractFiles
from fastevm.rpc.explorer.alone import ExplorerServer
from tests.browser import Browser, Page, executable, needs_axe
from tests.shared_data import ROOT
from tests.unit.rpc.test_methods_explanations import (
    HELLO,
    INNER,
    INNER_CODE,
    OUTER,
    OUTER_CODE,
)
from tests.unit.rpc.test_methods_explanations import write as write_artifact

from .scene import MINTED, PAID, TOKEN, WALLET, Scene, Stage

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        executable() is None, reason="no Chromium here (Debian: apt-get install chromium)"
    ),
]

ARTIFACTS = ROOT / "fastevm/payments/contracts/artifacts"
HOST = "127.0.0.1"
PHONE = {"width": 390, "height": 844}
GOLD = "0x00000000000000000000000000000000c0ffee00"
COUNTER = "0x00000000000000000000000000000000c0ffee01"
# Increments slot 0 if there is calldata, otherwise returns slot 0.
COUNTER_CODE = "0x36600c575f546001015f55005b5f545f5260205ff3"
HOSTILE = "<img src=x onerror=document.title='taken'>"


@dataclass
class Shown:
    """A node that mines on demand, with the contracts and transactions of the scene."""

    url: str
    stage: Stage
    scene: Scene


@pytest.fixture(scope="module")
def shown() -> Iterator[Shown]:
    with ServerThread(dev_node(mining=Mining.MANUAL)) as server:
        stage = Stage(server.url())
        yield Shown(server.url(), stage, stage.play())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def started() -> AsyncIterator[Browser]:
    async with Browser() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def browser(started: Browser) -> AsyncIterator[Browser]:
    yield started
    await started.close_pages()


async def opened(browser: Browser, url: str, route: str = "/", **size: int) -> Page:
    page = await browser.page(f"{url}/#{route}", **size)
    await page.until("document.querySelector('h1') && !document.querySelector('[aria-busy]')")
    return page


async def visit(page: Page, route: str) -> None:
    """Opens a route of the explorer and waits until the page is complete."""
    await page.value(f"location.hash = {json.dumps(route)}")
    name = " ".join(part for part in route.split("/")[1:3]) or "home"
    await page.until(
        f"document.body.dataset.page === {json.dumps(name)}"
        " && !document.querySelector('[aria-busy]')"
    )


async def says(page: Page, *texts: str, where: str = "main") -> None:
    """Waits until a part of the page contains all texts. ``where``: selects the part."""
    found = f"(document.querySelector({json.dumps(where)})?.innerText ?? '')"
    for text in texts:
        await page.until(f"{found}.includes({json.dumps(text)})")


async def card(page: Page, title: str) -> str:
    return await page.text(f'section[aria-label="{title}"]')


async def fill(page: Page, selector: str, text: str) -> None:
    await page.value(f"document.querySelector({json.dumps(selector)}).value = {json.dumps(text)}")


async def test_slices_and_blocks_appear_as_they_come(browser: Browser) -> None:
    with ServerThread(dev_node(block_time_ms=600, slice_interval_ms=100)) as server:
        page = await opened(browser, server.url())
        stage = Stage(server.url())
        await says(page, "a slice every 100 ms", "median")
        await page.until("document.querySelectorAll('.cells li').length === 6")
        tx_hash = await asyncio.to_thread(
            stage.send, b"", stage.accounts[3], sender=2, value=5 * 10**18
        )
        row = f"document.querySelector('.transaction a[href=\"#/tx/{tx_hash}\"]')"
        await page.until(f"{row}?.closest('li').dataset.state === 'sealed'")
        await says(page, "account 2", "account 3", "5 ETH", "10,005 ETH")
        before = await page.value("document.querySelectorAll('.rows')[0].innerText")
        await page.until(
            f"document.querySelectorAll('.rows')[0].innerText !== {json.dumps(before)}"
        )
        plotted = await page.value("document.querySelector('.plot .bar').getAttribute('d').length")
        assert plotted > 0
        assert page.complaints == []


async def test_watched_values_change_with_the_slices(browser: Browser) -> None:
    with ServerThread(dev_node(block_time_ms=600, slice_interval_ms=100)) as server:
        stage = Stage(server.url())
        await asyncio.to_thread(stage.client.call, "anvil_setCode", COUNTER, COUNTER_CODE)
        page = await opened(browser, server.url(), "/watch")
        await watch_value(page, COUNTER, "count() returns (uint256)")
        await page.until("document.querySelector('.watched .value')?.innerText === '0'")
        await watch_value(page, stage.accounts[3], "")
        await says(page, "2 values, updated with every slice.", "10,000 ETH", "account 3")
        await asyncio.to_thread(stage.send, b"", COUNTER)
        await asyncio.to_thread(stage.send, b"", stage.accounts[3], value=10**18)
        await says(page, "1 change, block", "10,001 ETH")
        assert await page.value("document.querySelector('.watched .value').innerText") == "1"
        await visit(page, "/pool")
        await visit(page, "/watch")
        await says(page, "2 values, updated with every slice.", "10,001 ETH")
        await page.click(".watched li:first-child button")
        await says(page, "1 value, updated with every slice.")
        await watch_value(page, "nobody", "")
        await says(page, "expected an address")
        await watch_value(page, COUNTER, "count(uint256")
        await says(page, "a bracket is not closed")
        for values in ("5", "[5", "{}"):
            await watch_value(page, COUNTER, "count(uint256) returns (uint256)", values)
            await says(page, "expected the arguments as a JSON list")
        await watch_value(page, COUNTER, "count(uint256) returns (uint256)", "[9007199254740993]")
        await says(page, "does not fit")  # a number in JSON would be rounded
        await watch_value(page, COUNTER, "count(uint256) returns (uint256)", '["9007199254740993"]')
        await says(page, "count(9007199254740993)", "2 values, updated")
        assert page.complaints == []


async def watch_value(page: Page, address: str, function: str, values: str = "") -> None:
    """Fills in and submits the form of the page Watch."""
    await fill(page, "#watch-address", address)
    await fill(page, "#watch-function", function)
    await fill(page, "#watch-values", values)
    await page.click("form.abi .primary")


async def watch_every_function(page: Page, address: str) -> None:
    """Watches a balance of the token, and its functions without arguments."""
    await visit(page, f"/address/{address}")
    await fill(page, "#contract-abi", json.dumps(TOKEN.abi))
    await page.click(".abi .primary")
    await visit(page, "/watch")
    await watch_value(page, address, "")
    await says(page, "totalSupply()", "USDC", "updated with every slice")


async def test_a_function_of_a_contract_is_watched_from_its_page(
    browser: Browser, shown: Shown
) -> None:
    page = await opened(browser, shown.url, f"/address/{shown.scene.token}")
    await fill(page, "#contract-abi", "function totalSupply() view returns (uint256)")
    await page.click(".abi .primary")
    await page.click('button[aria-label="Watch totalSupply"]')
    await says(page, "Watched")
    await visit(page, "/watch")
    await says(page, "totalSupply()", f"{4 * MINTED // 10**6:,} USDC", "1 value, updated")


async def test_a_transaction_shows_its_input_logs_calls_and_changes(
    browser: Browser, shown: Shown
) -> None:
    page = await opened(browser, shown.url, f"/tx/{shown.scene.transfer}")
    text = await card(page, "Input")
    assert "transfer(address,uint256)" in text and f"{PAID:,}" in text and "account 1" in text
    assert "success" in await page.text(".title")
    log = await card(page, "1 log")
    assert "Transfer" in log and f"{PAID:,}" in log
    await says(page, "12.5 USDC", where='section[aria-label="Input"]')
    await says(page, "12.5 USDC", where='section[aria-label="1 log"]')
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", await card(page, "Summary"))
    changes = await card(page, "State before and after")
    assert f"{MINTED:,}" in changes and f"{MINTED - PAID:,}" in changes and "nonce" in changes
    assert await page.value("document.querySelectorAll('.flame .bar').length") == 1
    assert page.complaints == []


async def test_calls_are_a_flame_graph_for_mouse_and_keyboard(
    browser: Browser, shown: Shown
) -> None:
    page = await opened(browser, shown.url, f"/tx/{shown.scene.nested}")
    await says(page, "11 calls")
    bars = json.loads(
        await page.value(
            "JSON.stringify([...document.querySelectorAll('.flame .bar')].map((bar) => "
            "[bar.ariaLevel, parseFloat(bar.style.left), parseFloat(bar.style.width)]))"
        )
    )
    assert bars[0] == ["1", 0, 100] and len(bars) == 11
    inner = [width for level, _, width in bars if level == "2"]
    assert 0 < sum(inner) < 100
    await page.value("document.querySelector('.flame .bar').focus()")
    await page.press("ArrowDown", 40)
    await says(page, "aggregate3", where=".chosen")
    await page.press("ArrowDown", 40)
    await page.press("ArrowDown", 40)
    await says(page, "transfer(address,uint256)", f"{PAID:,}", where=".chosen")
    await page.click(".chosen button")  # zooms in
    assert await page.value("document.querySelectorAll('.flame .bar').length") == 1
    failed = "document.querySelectorAll('.flame .bar[data-failed]').length"
    await page.click(".chosen button")  # zooms out
    assert await page.value(failed) == 1


async def test_calls_are_a_list_with_values_and_results(browser: Browser, shown: Shown) -> None:
    page = await opened(browser, shown.url, f"/tx/{shown.scene.nested}")
    await says(page, "List of 11 calls")
    rows = json.loads(
        await page.value(
            "JSON.stringify([...document.querySelectorAll('.calls li')].map((e) => e.innerText))"
        )
    )
    assert len(rows) == 11 and "aggregate3(calls: [[" in rows[1]
    assert any("transfer(to: 0x" in row and f"{PAID:,}" in row for row in rows)
    assert any("balanceOf(" in row and "→" in row for row in rows)
    assert any("✕" in row for row in rows)


async def test_failures_are_marked_in_every_list(browser: Browser, shown: Shown) -> None:
    page = await opened(browser, shown.url)
    scene = shown.scene
    block = int(shown.stage.receipt(scene.reverted)["blockNumber"], 16)
    for route in ("/", "/transactions", f"/block/{block}", f"/address/{scene.accounts[5]}"):
        await visit(page, route)
        row = f"document.querySelector('a[href=\"#/tx/{scene.reverted}\"]')?.closest('li, tr')"
        await page.until(f"{row}?.querySelector('.outcome.bad')?.ariaLabel === 'failed'")
    await page.until("document.querySelectorAll('.outcome.bad').length === 1")


async def test_older_blocks_and_transactions_have_pages(browser: Browser) -> None:
    with ServerThread(dev_node(mining=Mining.MANUAL)) as server:
        stage = Stage(server.url())
        first = stage.send(b"", stage.accounts[3], value=1)
        stage.client.call("anvil_mine", hex(30))
        for number in range(30):
            stage.send(b"", stage.accounts[3], value=10**18 + number)
            stage.mine()
        page = await opened(browser, server.url(), "/blocks")
        await says(page, "Blocks 60 to 36")
        await page.click(".title .buttons a:last-child")
        await says(page, "Blocks 35 to 11")
        await page.click(".title .buttons a:last-child")
        await says(page, "Blocks 10 to 0")
        await visit(page, "/transactions")
        assert await page.value("document.querySelectorAll('tbody tr').length") == 25
        await page.click(".title .buttons a:last-child")
        await page.until(f"document.querySelector('a[href=\"#/tx/{first}\"]')")
        assert await page.value("document.querySelectorAll('tbody tr').length") == 6
        assert page.complaints == []


async def test_names_and_abis_come_from_the_files_of_the_node(browser: Browser) -> None:
    served = ServerThread(dev_node(mining=Mining.MANUAL))
    served.server.contracts = ContractFiles([ARTIFACTS])
    with served:
        stage = Stage(served.url())
        scene = stage.play()
        page = await opened(browser, served.url())
        await says(page, "Wallet", "execute")
        await visit(page, f"/address/{scene.token}")
        await says(page, "ABI of Token, from the files of the node.", "USD Coin")
        await visit(page, f"/tx/{scene.nested}")
        await says(page, "Multicall.aggregate3", "Wallet.execute")


async def test_the_console_and_the_source_of_a_failure_are_shown(
    browser: Browser, tmp_path: Path
) -> None:
    write_artifact(tmp_path, "Inner", INNER_CODE)
    write_artifact(tmp_path, "Outer", OUTER_CODE)
    served = ServerThread(dev_node(mining=Mining.INSTANT))
    served.server.contracts = ContractFiles([tmp_path / "out"])
    with served:
        stage = Stage(served.url())
        for address, code in ((INNER, INNER_CODE), (OUTER, OUTER_CODE)):
            stage.client.call("anvil_setCode", address, "0x" + code)
        tx_hash = stage.send(bytes.fromhex(HELLO[2:]), OUTER)
        page = await opened(browser, served.url("geth"), f"/tx/{tx_hash}")
        await says(page, "hello", where='section[aria-label="Console"]')
        await says(
            page, "src/Outer.sol:12", "src/Inner.sol:15", "line 15",
            where='section[aria-label="Source of the failure"]',
        )  # fmt: skip


async def test_the_history_has_the_names_of_an_abi_that_is_given(
    browser: Browser, shown: Shown
) -> None:
    page = await opened(browser, shown.url, f"/address/{shown.scene.wallet}")
    history = 'section[aria-label="History"]'
    assert "executeNow" not in await card(page, "History")
    selector = (await asyncio.to_thread(
        shown.stage.client.call, "eth_getTransactionByHash", shown.scene.nested
    ))["input"][:10]  # fmt: skip
    await says(page, selector, where=history)
    signature = next(
        f"{each['name']}({','.join(parameter['type'] for parameter in each['inputs'])})"
        for each in WALLET.abi
        if each.get("name") == "execute"
    )
    await fill(page, "#contract-abi", signature)
    await page.click(".abi .primary")
    await says(page, "execute", where=history)


@needs_axe
async def test_axe_finds_nothing(browser: Browser, shown: Shown) -> None:
    scene = shown.scene
    routes = ("/", "/pool", "/accounts", "/watch", "/blocks", "/transactions", "/block/4",
              f"/tx/{scene.nested}", f"/tx/{scene.reverted}", f"/address/{scene.token}",
              f"/address/{scene.accounts[0]}")  # fmt: skip
    for size in ({}, PHONE):
        for theme in ("light", "dark"):
            page = await opened(browser, shown.url, **size)
            await page.value(f"document.documentElement.dataset.theme = {theme!r}")
            await watch_every_function(page, scene.token)
            for route in routes:
                await visit(page, route)
                assert await page.violations() == [], (route, theme, size)


async def test_a_revert_shows_its_reason(browser: Browser, shown: Shown) -> None:
    page = await opened(browser, shown.url, f"/tx/{shown.scene.reverted}")
    assert "failed" in await page.text(".title")
    assert "ERC20: transfer amount exceeds balance" in await card(page, "Summary")


async def test_the_search_finds_hashes_numbers_addresses_and_names(
    browser: Browser, shown: Shown
) -> None:
    page = await opened(browser, shown.url)
    block = shown.stage.client.call("eth_getBlockByNumber", "0x2", False)["hash"]
    for text, route in (
        (shown.scene.nested, f"#/tx/{shown.scene.nested}"),
        (block, f"#/block/{block}"),
        ("1", "#/block/1"),
        (shown.scene.token, f"#/address/{shown.scene.token}"),
        ("account 4", f"#/address/{shown.scene.accounts[4]}"),
        ("multicall3", "#/address/0xca11bde05977b3631167028862be2a173976ca11"),
    ):
        await page.press("/", 191)
        await page.until("document.activeElement.id === 'query'")
        await fill(page, "#query", text)
        await page.press("Enter", 13)
        await page.until(f"location.hash === {json.dumps(route)}")
    await fill(page, "#query", "nobody")
    await page.value("document.querySelector('#search').requestSubmit()")
    await page.until("document.querySelector('#query').validationMessage.includes('nobody')")


async def test_a_block_lists_its_transactions(browser: Browser, shown: Shown) -> None:
    page = await opened(browser, shown.url, "/block/5")
    text = await card(page, "2 transactions")
    assert "transfer" in text and "21,000" in text and "1 ETH" in text
    await page.click(".title .buttons a:last-child")
    await says(page, "Block 6", "1 transaction")
    await visit(page, "/block/999")
    await says(page, "No such block")


async def test_the_faucet_pays(browser: Browser, shown: Shown) -> None:
    page = await opened(browser, shown.url, f"/address/{GOLD}")
    await fill(page, ".faucet .short", "2.5")
    await page.click(".faucet .primary")
    await says(page, "Sent 2.5 ETH")
    await page.click(".faucet output a")
    await says(page, "waits in the pool")
    await asyncio.to_thread(shown.stage.mine)
    await says(page, "success", "21,000")
    await visit(page, f"/address/{GOLD}")
    await says(page, "2.5 ETH")


async def test_an_impersonated_address_is_not_an_account_of_the_node(
    browser: Browser, shown: Shown
) -> None:
    address, call = "0x" + "b7" * 20, shown.stage.client.call
    await asyncio.to_thread(call, "anvil_impersonateAccount", address)
    try:
        page = await opened(browser, shown.url, f"/address/{address}")
        await visit(page, "/accounts")
        await says(page, "account 1")
        await visit(page, f"/address/{address}")
        await says(page, "impersonated", where="h1")
    finally:
        await asyncio.to_thread(call, "anvil_stopImpersonatingAccount", address)


FAILED = """(() => {
  const real = window.fetch;
  window.fetch = async (...asked) => {
    const answer = await real(...asked);
    const text = (await answer.text()).replaceAll('"status":"0x1"', '"status":"0x0"');
    return new Response(text, { status: answer.status, headers: answer.headers });
  };
})()"""


async def test_a_form_explains_lists_and_says_when_a_transaction_failed(
    browser: Browser, shown: Shown
) -> None:
    page = await opened(browser, shown.url, f"/address/{shown.scene.token}")
    abi = "transfer(address to, uint256 value)\nsum(uint256[] items, uint8 a, uint8 b) view"
    await fill(page, "#contract-abi", abi)
    await page.click(".abi .primary")
    await says(page, "sum(")
    forms = "[...document.querySelectorAll('details.function')]"
    for name in ("sum", "transfer"):
        item = f"{forms}.find((form) => form.innerText.startsWith('{name}('))"
        await page.value(f"{item}.open = true; {item}.id = '{name}'")
    await fill(page, "#sum [name=i0]", "1,2")
    await page.click("#sum [type=submit]")
    await says(page, 'write a list as ["0x…", "0x…"] or [1, 2]', where="#sum output")
    await page.value(FAILED)
    await fill(page, "#transfer [name=i0]", "0x" + "b8" * 20)
    await fill(page, "#transfer [name=i1]", "1")
    await page.click("#transfer .primary")
    await says(page, "Sent:", where="#transfer output")
    await asyncio.to_thread(shown.stage.mine)
    await says(page, "The transaction failed", where="#transfer output")


async def test_functions_of_a_pasted_abi_are_read_and_sent(browser: Browser, shown: Shown) -> None:
    token, holder = shown.scene.token, shown.scene.accounts[8]
    page = await opened(browser, shown.url, f"/address/{token}")
    await fill(page, "#contract-name", "Coin")
    await fill(page, "#contract-abi", "transfer(address to, uint257 x)")
    await page.click(".abi .primary")
    await says(page, "line 1: there is no type uint257")
    await fill(page, "#contract-abi", json.dumps({"abi": TOKEN.abi}))
    await page.click(".abi .primary")
    await says(page, "USD Coin")  # the result of name(), which has no parameters
    form = "details.function:has(input[name=i1]):not(:has(input[name=i2]))"
    item = (
        f"[...document.querySelectorAll('{form}')].find((f) => f.innerText.startsWith('transfer('))"
    )
    await page.value(f"{item}.open = true; {item}.id = 'pay'")
    await fill(page, "#pay [name=i0]", holder)
    await fill(page, "#pay [name=i1]", "1_500_000")
    await page.click("#pay .primary")
    await says(page, "Sent:", where="#pay output")
    await asyncio.to_thread(shown.stage.mine)
    paid = await asyncio.to_thread(
        shown.stage.client.call,
        "eth_call",
        {"to": token, "data": "0x" + TOKEN.encode("balanceOf", bytes.fromhex(holder[2:])).hex()},
        "latest",
    )
    assert int(paid, 16) == 1_500_000
    await visit(page, "/")
    await says(page, "Coin")  # the name that the test has entered
    await visit(page, f"/address/{token}")
    await says(page, "Slots that the newest", "Last touched by", "USD Coin")


async def test_text_from_a_chain_is_text(browser: Browser, shown: Shown) -> None:
    owner = bytes.fromhex(shown.scene.accounts[0][2:])
    token = await asyncio.to_thread(
        shown.stage.deployed, TOKEN.initcode(HOSTILE, HOSTILE, 6, owner)
    )
    page = await opened(browser, shown.url, f"/address/{token}")
    await says(page, HOSTILE[:16])  # long symbols are cut off
    assert await page.value("document.querySelectorAll('img').length") == 0
    assert "taken" not in await page.value("document.title")


async def test_a_phone_scrolls_down_only(browser: Browser, shown: Shown) -> None:
    page = await opened(browser, shown.url, **PHONE)
    scene = shown.scene
    await watch_every_function(page, scene.token)
    routes = ("/", "/pool", "/accounts", "/watch", "/block/4", f"/tx/{scene.nested}",
              f"/tx/{scene.reverted}", f"/address/{scene.token}",
              f"/address/{scene.accounts[0]}")  # fmt: skip
    for route in routes:
        await visit(page, route)
        width = await page.value("document.documentElement.scrollWidth")
        assert width <= PHONE["width"], route
    assert page.complaints == []


async def test_dark_and_light_follow_the_system_and_the_switch(
    browser: Browser, shown: Shown
) -> None:
    page = await opened(browser, shown.url)
    back = "getComputedStyle(document.body).backgroundColor"
    seen = {}
    for theme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": theme}
        await page.ask("Emulation.setEmulatedMedia", features=[feature])
        seen[theme] = await page.value(back)
    assert seen["light"] != seen["dark"]
    await page.click("#theme")
    assert await page.value(back) == seen["light"]
    await page.ask("Page.reload")
    await page.until("document.body?.dataset.ready === 'yes'")
    assert await page.value(back) == seen["light"]


async def test_every_control_has_a_name_and_pages_a_heading(browser: Browser, shown: Shown) -> None:
    page = await opened(browser, shown.url, f"/address/{shown.scene.token}")
    unnamed = (
        "[...document.querySelectorAll('button, input, select, textarea, a, summary')]"
        ".filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length))"
        ".map((e) => e.outerHTML)"
    )
    await watch_every_function(page, shown.scene.token)
    for route in (f"/address/{shown.scene.token}", f"/tx/{shown.scene.nested}", "/watch", "/"):
        await visit(page, route)
        assert await page.value(unnamed) == []
        assert await page.value("document.querySelectorAll('h1').length") == 1
    assert await page.value("document.documentElement.lang") == "en"
    await page.press("Tab", 9)
    assert await page.value("document.activeElement !== document.body")


async def test_the_page_watches_another_node(browser: Browser, shown: Shown) -> None:
    async with ExplorerServer(shown.url, HOST, 0, frozenset()) as url:
        page = await opened(browser, url, f"/tx/{shown.scene.nested}")
        await says(page, "11 calls")
        await visit(page, "/")
        await says(page, "account 0")
        assert page.complaints == []


async def without_sockets(node_url: str) -> web.AppRunner:
    """Serves the node without fastevm's extensions: no WebSocket, slices, pool and traces."""
    refused = ("txpool_", "debug_", "eth_accounts")

    def filtered(request: Any, response: Any) -> Any:
        if not request["method"].startswith(refused):
            return response
        return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}}

    async def post(request: web.Request) -> web.Response:
        body = await request.json()
        async with ClientSession() as session, session.post(node_url, json=body) as response:
            result = await response.json()
        if isinstance(body, list):
            result = [filtered(*pair) for pair in zip(body, result, strict=True)]
        else:
            result = filtered(body, result)
        return web.json_response(result, headers={"Access-Control-Allow-Origin": "*"})

    async def preflight(request: web.Request) -> web.Response:
        allowed = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*"}
        return web.Response(headers=allowed)

    app = web.Application()
    app.router.add_post("/", post)
    app.router.add_options("/", preflight)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, HOST, 0).start()
    return runner


async def test_a_node_without_subscriptions_pool_and_traces_is_polled(
    browser: Browser, shown: Shown
) -> None:
    runner = await without_sockets(shown.url)
    node_url = f"http://{HOST}:{runner.addresses[0][1]}"
    async with ExplorerServer(node_url, HOST, 0, frozenset()) as url:
        page = await opened(browser, url)
        number = int(shown.stage.client.call("eth_blockNumber"), 16)
        await says(page, f"block {number}", where="header")
        await asyncio.to_thread(shown.stage.mine)
        await says(page, f"block {number + 1}", where="header")
        await says(page, "unknown", where=".tiles")
        await visit(page, f"/tx/{shown.scene.transfer}")
        await says(page, "The node gives no trace", "transfer(address,uint256)")
        await runner.cleanup()
        await says(page, "no connection", where="header")
        await page.until("!document.querySelector('#notice').hidden")
