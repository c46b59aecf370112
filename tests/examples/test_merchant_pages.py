"""Tests the merchant example in a browser: signing, capturing, cancelling and failures."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from examples.merchant.demo import Demo, Options
from examples.merchant.web import DEMO_ACTIONS
from examples.merchant.words import CHECKS
from tests.browser import Browser, Page, executable, needs_axe
from tests.max_wait import MAX_WAIT

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        executable() is None, reason="no Chromium here (Debian: apt-get install chromium)"
    ),
]

PHONE = {"width": 360, "height": 740}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def demo() -> AsyncIterator[Demo]:
    running = Demo(Options(port=0, block_time=600, slice_interval=100))
    await running.start()
    yield running
    await running.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def unhurried() -> AsyncIterator[Demo]:
    """Provides the example on a chain with blocks of 5 s, so that pre-confirmed states last."""
    running = Demo(Options(port=0, block_time=5_000, slice_interval=100))
    await running.start()
    yield running
    await running.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def started() -> AsyncIterator[Browser]:
    async with Browser() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def browser(started: Browser) -> AsyncIterator[Browser]:
    yield started
    await started.close_pages()


class Buyer:
    """A buyer on the shop's page, with an account of the test wallet."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @classmethod
    async def arrive(cls, browser: Browser, demo: Demo, name: str) -> "Buyer":
        page = await browser.page(f"{demo.url}/")
        await page.click("#connect")
        address = demo.people.buyers[name].address
        await page.click(f'dialog input[value="{address}"]')
        await page.click("dialog .primary")
        await page.until(f"document.querySelector('#account').innerText.includes('{address}')")
        return cls(page)

    async def authorize(self) -> str:
        """Orders one bag and signs the payment. Returns the order's id."""
        before = await self.order_ids()
        await self.page.click("#authorize")
        await self.page.click("dialog .primary")
        await self.page.until("!document.querySelector('dialog')")
        (fresh,) = await self.order_ids() - before
        await state_on(self.page, fresh, "stored")
        return fresh

    async def order_ids(self) -> set[str]:
        found = await self.page.value("localStorage.getItem('merchant-demo-orders')")
        return set(json.loads(found or "[]"))


async def state_on(page: Page, order_id: str, state: str) -> None:
    await page.until(f"document.querySelector('#order-{order_id}')?.dataset.state === '{state}'")


async def says(page: Page, selector: str, text: str) -> None:
    found = f"document.querySelector({json.dumps(selector)})?.innerText"
    await page.until(f"({found} ?? '').includes({json.dumps(text)})")


def button(order_id: str, action: str) -> str:
    return f'#order-{order_id} [data-action="{action}"]'


async def test_an_authorized_order_is_captured_and_paid_before_both_pages(
    demo: Demo, browser: Browser
) -> None:
    merchant = await browser.page(f"{demo.url}/merchant")
    buyer = await Buyer.arrive(browser, demo, "Ada")
    order_id = await buyer.authorize()
    await says(merchant, f"#order-{order_id}", "No money has moved and none is reserved.")
    await says(merchant, f"#order-{order_id}", "Checks at the newest slice: all pass")
    await merchant.click(button(order_id, "capture"))
    for page in (merchant, buyer.page):
        await state_on(page, order_id, "paid")
        await says(page, f"#order-{order_id}", "Paid")
    await says(buyer.page, "#account", "87.50 USDC")
    await says(merchant, '[data-sum="paid"]', "12.50")
    reported = await merchant.value(
        f"document.querySelector('#order-{order_id} [data-part=trail]').textContent"
    )
    steps = ("set the terms", "signed the auth", "stored the", "in a block", "deep enough")
    places = [reported.find(step) for step in steps]
    assert -1 not in places and places == sorted(places), reported
    assert merchant.complaints == buyer.page.complaints == []


async def test_a_capture_shows_as_pre_confirmed_before_its_block_is_closed(
    unhurried: Demo, browser: Browser
) -> None:
    """Starts early in a block, so that the pre-confirmed state can be seen for seconds."""
    merchant = await browser.page(f"{unhurried.url}/merchant")
    buyer = await Buyer.arrive(browser, unhurried, "Ada")
    order_id = await buyer.authorize()  # The newest order is the first on the page.
    await buyer.page.value(
        "window.labels = []; new MutationObserver(() => window.labels.push("
        "document.querySelector('.chip').innerText))"
        ".observe(document.body, {childList: true, characterData: true, subtree: true})"
    )
    await merchant.until("/slice 1\\b/.test(document.querySelector('#pulse').innerText)")
    await merchant.click(button(order_id, "capture"))
    await state_on(buyer.page, order_id, "paid")
    labels = await buyer.page.value("window.labels")
    assert labels.index("Pre-confirmed") < labels.index("Paid")


@needs_axe
async def test_axe_finds_nothing(unhurried: Demo, browser: Browser) -> None:
    empty = await browser.page(f"{unhurried.url}/merchant")
    assert await empty.violations() == []
    buyer = await Buyer.arrive(browser, unhurried, "Ada")
    assert await buyer.page.violations() == []
    order_id = await buyer.authorize()
    await state_on(empty, order_id, "stored")
    for size in ({"width": 1280, "height": 900}, PHONE):
        for theme in ("light", "dark"):
            for page in (buyer.page, empty):
                await page.ask(
                    "Emulation.setDeviceMetricsOverride",
                    deviceScaleFactor=1, mobile=size is PHONE, **size,
                )  # fmt: skip
                features = [
                    {"name": "prefers-color-scheme", "value": theme},
                    # disables fading colours
                    {"name": "prefers-reduced-motion", "value": "reduce"},
                ]
                await page.ask("Emulation.setEmulatedMedia", features=features)
                assert await page.violations() == [], (theme, size)


async def test_the_button_is_visible_without_scrolling(unhurried: Demo, browser: Browser) -> None:
    """Neither the header nor the bar at the bottom may cover the button."""
    buyer = await Buyer.arrive(browser, unhurried, "Ada")
    for _ in range(2):  # first without orders beside the form, then with some
        hit = await buyer.page.value(
            "(() => { document.querySelector('main').scrollTop = 0;"
            " const b = document.querySelector('#authorize').getBoundingClientRect();"
            " return document.elementFromPoint(b.x + b.width / 2, b.bottom - 2)?.id })()"
        )
        assert hit == "authorize"
        await buyer.authorize()


async def test_money_is_given_back_and_the_transaction_is_shown(
    demo: Demo, browser: Browser
) -> None:
    buyer = await Buyer.arrive(browser, demo, "Ada")
    order_id = await buyer.authorize()
    merchant = await browser.page(f"{demo.url}/merchant")
    await merchant.click(button(order_id, "capture"))
    await state_on(merchant, order_id, "paid")
    await merchant.click(button(order_id, "refund"))
    await says(merchant, "dialog", "12.50 USDC")
    await merchant.value("document.querySelector('dialog [name=amount]').value = '2.50'")
    await merchant.click("dialog .primary")
    await says(merchant, "#message", "The refund is submitted.")
    await says(merchant, f"#order-{order_id}", "2.50 USDC refunded")
    await says(merchant, f"#order-{order_id} [data-part=transactions] summary", "Transactions")
    link = f"document.querySelector('#order-{order_id} [data-part=transactions] a').href"
    page = await browser.page(await merchant.value(link))
    await says(page, "main", "12.50 USDC from")
    assert merchant.complaints == page.complaints == []


async def test_orders_are_searched_filtered_and_captured_together(
    demo: Demo, browser: Browser
) -> None:
    buyer = await Buyer.arrive(browser, demo, "Ben")
    both = [await buyer.authorize(), await buyer.authorize()]
    merchant = await browser.page(f"{demo.url}/merchant")
    for order_id in both:
        await says(merchant, f"#order-{order_id}", "Checks at the newest slice: all pass")
    shown = "[...document.querySelectorAll('tbody.order')].filter(e => !e.hidden).length"
    await merchant.value(
        f"document.querySelector('#search').value = '{both[0]}';"
        "document.querySelector('#search').dispatchEvent(new Event('input', {bubbles: true}))"
    )
    assert await merchant.value(shown) == 1
    await merchant.value(
        "document.querySelector('#search').value = '';"
        "document.querySelector('#filter').value = 'stored';"
        "document.querySelector('#filter').dispatchEvent(new Event('input', {bubbles: true}))"
    )
    assert await merchant.value(shown) >= 2
    await merchant.click("#capture-all")
    await merchant.click("dialog .primary")
    await says(merchant, "#message", "captures are submitted")
    for order_id in both:
        await state_on(merchant, order_id, "paid")
    assert await merchant.value(shown) == 0


async def test_what_is_signed_is_shown_for_people(demo: Demo, browser: Browser) -> None:
    buyer = await Buyer.arrive(browser, demo, "Cleo")
    await buyer.page.click("#authorize")
    await says(buyer.page, "dialog", "Allow a payment of 12.50 USDC?")
    await says(buyer.page, "dialog", "once, exactly this amount")
    reported = await buyer.page.value("document.querySelector('dialog').innerText")
    assert "12500000" not in reported
    await buyer.page.click("dialog summary")
    await says(buyer.page, "dialog", "12500000")
    await buyer.page.click('dialog button[value="no"]')


async def test_every_check_has_a_title_and_a_failing_one_says_why_within_slices(
    demo: Demo, browser: Browser
) -> None:
    merchant = await browser.page(f"{demo.url}/merchant")
    buyer = await Buyer.arrive(browser, demo, "Ben")
    order_id = await buyer.authorize()
    await merchant.click(f"#order-{order_id} [data-part=checks] summary")
    titles = await merchant.value(
        f"[...document.querySelectorAll('#order-{order_id} .checks strong')].map(e => e.innerText)"
    )
    assert titles == [title for title, _ in CHECKS.values()]
    await merchant.click(".demo summary")
    for wrong, right, words in (
        ("pause", "unpause", "the token is paused"),
        ("block", "unblock", "the token's issuer has blocked"),
        ("empty", "fund", "the buyer does not hold enough money"),
    ):
        await merchant.click(f'[data-demo="{wrong}"]')
        await says(merchant, "#message", DEMO_ACTIONS[wrong])
        await says(merchant, f"#order-{order_id} .reason", f"A capture would fail now: {words}")
        await says(buyer.page, f"#order-{order_id} .reason", words)
        await merchant.click(button(order_id, "capture"))
        await says(merchant, "#message", f"Nothing was submitted: {words}")
        await merchant.click(f'[data-demo="{right}"]')
        await says(merchant, "#message", DEMO_ACTIONS[right])
        await merchant.until(f"!document.querySelector('#order-{order_id} .reason')")
    assert await merchant.value(f"document.querySelector('#order-{order_id} details').open")
    await merchant.click(button(order_id, "capture"))
    await state_on(merchant, order_id, "paid")


async def test_news_under_a_pressed_button_do_not_lose_the_click(
    demo: Demo, browser: Browser
) -> None:
    merchant = await browser.page(f"{demo.url}/merchant")
    buyer = await Buyer.arrive(browser, demo, "Ben")
    order_id = await buyer.authorize()
    await says(merchant, f"#order-{order_id}", "Checks at the newest slice: all pass")
    center = await merchant.center_of(button(order_id, "capture"))
    await merchant.mouse("mousePressed", center)
    await merchant.value("document.querySelector('[data-demo=pause]').click()")
    await says(merchant, "#message", DEMO_ACTIONS["pause"])
    await says(merchant, f"#order-{order_id} .reason", "the token is paused")
    await merchant.mouse("mouseReleased", center)
    await says(merchant, "#message", "Nothing was submitted: the token is paused")
    await merchant.value("document.querySelector('[data-demo=unpause]').click()")
    await merchant.until(f"!document.querySelector('#order-{order_id} .reason')")


async def test_the_buyer_cancels_when_the_shop_asks(demo: Demo, browser: Browser) -> None:
    merchant = await browser.page(f"{demo.url}/merchant")
    buyer = await Buyer.arrive(browser, demo, "Cleo")
    order_id = await buyer.authorize()
    await merchant.click(button(order_id, "ask_cancel"))
    await says(buyer.page, f"#order-{order_id}", "The shop asks you to cancel this order.")
    await buyer.page.click(button(order_id, "cancel"))
    await says(buyer.page, "dialog", "Cancel this payment for good?")
    await buyer.page.click("dialog .primary")
    for page in (merchant, buyer.page):
        await state_on(page, order_id, "cancelled")
    await says(merchant, f"#order-{order_id}", "It can never be captured.")
    assert not await merchant.value(
        f"document.querySelector({json.dumps(button(order_id, 'capture'))})"
    )


async def test_a_declined_signature_leaves_an_order_that_can_be_signed_later_or_voided(
    demo: Demo, browser: Browser
) -> None:
    buyer = await Buyer.arrive(browser, demo, "Cleo")
    known = await buyer.order_ids()
    await buyer.page.click("#authorize")
    await buyer.page.click('dialog button[value="no"]')
    await says(buyer.page, "#message", "You declined in the wallet. Nothing was signed.")
    (order_id,) = await buyer.order_ids() - known
    await state_on(buyer.page, order_id, "drafted")
    await buyer.page.click(button(order_id, "sign"))
    await buyer.page.click("dialog .primary")
    await state_on(buyer.page, order_id, "stored")
    merchant = await browser.page(f"{demo.url}/merchant")
    await merchant.click(button(order_id, "void"))
    await says(merchant, "dialog", "the signature stays valid until it expires")
    await merchant.click('dialog button[value="yes"]')
    await state_on(buyer.page, order_id, "voided")


async def test_a_page_that_was_hidden_catches_up_when_it_is_seen_again(
    demo: Demo, browser: Browser
) -> None:
    """A hidden page closes its connection, because a browser allows six connections per server."""
    hidden = await browser.page(f"{demo.url}/merchant")
    await hidden.until("document.querySelector('#pulse').dataset.state === 'live'")
    await browser.page(f"{demo.url}/", over=hidden)
    await hidden.until("document.hidden")
    order_id = await (await Buyer.arrive(browser, demo, "Cleo")).authorize()
    assert not await hidden.value(f"document.getElementById('order-{order_id}')")
    await hidden.show()
    await state_on(hidden, order_id, "stored")


async def test_the_indicator_counts_slices_and_says_when_they_stop(
    demo: Demo, browser: Browser
) -> None:
    page = await browser.page(f"{demo.url}/merchant")
    seen: set[str] = set()
    async with asyncio.timeout(MAX_WAIT):
        while len(seen) < 4:
            seen.add((await page.text("#pulse [data-part=text]")).strip())
            await asyncio.sleep(0.05)
    assert all(item.startswith(("Block ", "Waiting")) for item in seen)
    await says(page, "#pulse [data-part=text]", "slice")
    await says(page, "#pulse [data-part=age]", "ms ago")
    # ends the stream without an event, which the page has to notice
    await page.value("window.stop()")
    demo.stream.send("slice", {"block": 1, "slice": 1})
    await page.ask("Network.enable")
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    await page.ask("Network.emulateNetworkConditions", **offline)
    await says(page, "#pulse [data-part=age]", "no slice for")


@pytest.mark.parametrize("path", ["/", "/merchant"])
async def test_a_page_fits_a_phone_and_names_its_controls(
    demo: Demo, browser: Browser, path: str
) -> None:
    page = await browser.page(f"{demo.url}{path}", **PHONE)
    if path == "/merchant":
        buyer = await Buyer.arrive(browser, demo, "Cleo")
        await state_on(page, await buyer.authorize(), "stored")
    assert await page.value("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.ask("Accessibility.enable")
    tree = (await page.ask("Accessibility.getFullAXTree"))["nodes"]
    roles = {"button", "combobox", "spinbutton", "radio", "link"}
    controls = [node for node in tree if node.get("role", {}).get("value") in roles]
    assert controls
    assert all(node["name"]["value"] for node in controls), controls
    assert page.complaints == []


async def test_the_shop_works_with_the_keyboard_alone(demo: Demo, browser: Browser) -> None:
    page = await browser.page(f"{demo.url}/")
    await page.value("document.querySelector('#connect').focus()")
    await page.press("Enter", 13)
    await page.until("document.querySelector('dialog')")
    assert await page.value("document.querySelector('dialog').contains(document.activeElement)")
    await page.press("Enter", 13)
    await page.until("document.querySelector('#account code')")
    await page.press("Tab", 9)
    assert await page.value("document.activeElement.id") == "authorize"
    await page.press("Enter", 13)
    await page.until("document.querySelector('dialog')")
    await page.press("Escape", 27)
    await says(page, "#message", "You declined in the wallet. Nothing was signed.")


async def test_another_injected_wallet_is_offered_and_asked_the_same_way(
    demo: Demo, browser: Browser
) -> None:
    """The wallet is injected before the page loads, as by an extension, and uses another chain."""
    page = await browser.page("about:blank", ready=False)
    address = demo.people.buyers["Ada"].address
    await page.ask(
        "Page.addScriptToEvaluateOnNewDocument",
        source=f"""
        const asked = window.asked = [];
        let chain = '0x1';
        window.ethereum = {{
          async request({{ method, params }}) {{
            asked.push(method);
            if (method === 'eth_requestAccounts') return ['{address}'];
            if (method === 'eth_chainId') return chain;
            if (method === 'wallet_switchEthereumChain') throw {{ code: 4902 }};
            if (method === 'wallet_addEthereumChain') {{ chain = params[0].chainId; return null; }}
            const body = {{ account: params[0], typedData: JSON.parse(params[1]) }};
            const answer = await fetch('/demo-wallet/sign', {{ method: 'POST',
              headers: {{ 'Content-Type': 'application/json' }}, body: JSON.stringify(body) }});
            return (await answer.json()).signature;
          }},
        }};""",
    )
    await page.go(f"{demo.url}/")
    await page.until("[...document.querySelectorAll('#wallet option')].length === 2")
    await page.value(
        "document.querySelector('#wallet').value = [...document.querySelectorAll('#wallet option')]"
        ".find(e => e.innerText === 'Browser wallet').value"
    )
    await page.click("#connect")
    await page.until("document.querySelector('#account code')")
    await page.click("#authorize")
    await page.until("document.querySelector('#message').innerText.startsWith('Authorized.')")
    assert await page.value("window.asked") == [
        "eth_requestAccounts",
        "eth_chainId",
        "wallet_switchEthereumChain",
        "wallet_addEthereumChain",
        "eth_signTypedData_v4",
    ]
