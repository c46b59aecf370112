"""Drives a headless Chromium over the DevTools protocol, for tests of web pages."""

import asyncio
import base64
import itertools
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.max_wait import MAX_WAIT
from tests.shared_data import ROOT

AXE = ROOT / "tests/clients/javascript/node_modules/axe-core/axe.min.js"
needs_axe = pytest.mark.skipif(
    not AXE.is_file(), reason="needs axe-core: `make test-all` installs it"
)
NAMES = ("chromium", "chromium-browser", "google-chrome")
LARGEST_MESSAGE = 64 * 1024 * 1024  # limit in bytes, large enough for screenshots


def executable() -> str | None:
    """Returns the path of an installed Chromium, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """A browser process with its own profile, in which pages are opened."""

    def __init__(self) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}

    async def __aenter__(self) -> "Browser":
        command = executable()
        assert command is not None
        self._process = await asyncio.create_subprocess_exec(
            command, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-dev-shm-usage", "--remote-debugging-port=0", "--disable-extensions",
            "--disable-quic", "--disable-sync", "--disable-background-networking",
            "--disable-component-update", f"--user-data-dir={self._profile.name}", "about:blank",
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        url = await asyncio.wait_for(self._address(), MAX_WAIT)
        self._session = aiohttp.ClientSession()
        self._socket = await self._session.ws_connect(url, max_msg_size=LARGEST_MESSAGE)
        self._listening = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listening.cancel()
        await self._session.close()
        if self._process.returncode is None:
            self._process.terminate()
        try:
            async with asyncio.timeout(MAX_WAIT):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._profile.cleanup()

    async def _address(self) -> str:
        assert self._process.stderr is not None
        while line := await self._process.stderr.readline():
            if found := re.search(rb"DevTools listening on (ws://\S+)", line):
                return found[1].decode()
        raise AssertionError("the browser did not start")

    async def _listen(self) -> None:
        async for message in self._socket:
            reported = json.loads(message.data)
            if "id" in reported:
                if waiting := self._answers.pop(reported["id"], None):
                    waiting.set_result(reported)
            elif page := self._pages.get(reported.get("sessionId", "")):
                page.notice(reported["method"], reported["params"])

    async def ask(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Sends a DevTools command. Returns its result."""
        number = next(self._ids)
        waiting = self._answers[number] = asyncio.get_running_loop().create_future()
        body = {"id": number, "method": method, "params": params}
        await self._socket.send_json(body if session is None else {**body, "sessionId": session})
        reported = await asyncio.wait_for(waiting, MAX_WAIT)
        assert "error" not in reported, f"{method}: {reported['error']}"
        return reported["result"]

    async def page(
        self,
        url: str,
        *,
        width: int = 1280,
        height: int = 900,
        ready: bool = True,
        over: "Page | None" = None,
    ) -> "Page":
        """Opens a page of this size in CSS pixels, and waits until its script is ready.

        Without ``over``, the page has its own window and storage. With ``over``, it is a new tab in
        the window of that page, which becomes hidden.
        """
        if over is None:
            context = (await self.ask("Target.createBrowserContext"))["browserContextId"]
        else:
            context = over.context
        target = await self.ask(
            "Target.createTarget",
            url="about:blank", browserContextId=context, newWindow=over is None,
        )  # fmt: skip
        attached = await self.ask(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        page = Page(self, attached["sessionId"], context, target["targetId"])
        self._pages[page.session] = page
        for domain in ("Page", "Runtime", "Log"):
            await page.ask(f"{domain}.enable")
        mobile = width < 600
        await page.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=mobile,
        )  # fmt: skip
        if ready:
            await page.go(url)
        return page

    async def close_pages(self) -> None:
        """Closes all pages and deletes their storage."""
        pages, self._pages = list(self._pages.values()), {}
        for context in {page.context for page in pages}:
            await self.ask("Target.disposeBrowserContext", browserContextId=context)


class Page:
    """An open page. ``complaints``: errors of its scripts and of resources that did not load."""

    def __init__(self, browser: Browser, session: str, context: str, target: str) -> None:
        self.browser = browser
        self.session = session
        self.context = context
        self.target = target
        self.complaints: list[str] = []

    def notice(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:1000])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            entry = params["entry"]
            self.complaints.append(f"{entry['text']} {entry.get('url', '')}")

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return await self.browser.ask(method, self.session, **params)

    async def go(self, url: str) -> None:
        """Loads an address and waits until the page's script is ready."""
        await self.ask("Page.navigate", url=url)
        await self.until("document.body?.dataset.ready === 'yes'")

    async def show(self) -> None:
        """Makes the page the visible tab of its window."""
        await self.browser.ask("Target.activateTarget", targetId=self.target)

    async def value(self, expression: str) -> Any:
        """Returns the value of a JavaScript expression. If the value is a promise, awaits it."""
        reported = await self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in reported, f"{expression}: {reported['exceptionDetails']}"
        return reported["result"].get("value")

    async def until(self, expression: str, seconds: float = MAX_WAIT) -> None:
        """Waits until a JavaScript expression is true. The AssertionError shows the page's text."""
        end = asyncio.get_running_loop().time() + seconds
        while not await self.value(f"Boolean({expression})"):
            if asyncio.get_running_loop().time() > end:
                text = await self.value("document.body.innerText")
                raise AssertionError(f"{expression} stayed untrue; the page says:\n{text}")
            await asyncio.sleep(0.02)

    async def text(self, selector: str) -> str:
        return str(await self.value(f"document.querySelector({json.dumps(selector)})?.innerText"))

    async def click(self, selector: str) -> None:
        """Waits until an element is enabled, then clicks its centre with the mouse."""
        center = await self.center_of(selector)
        await self.mouse("mousePressed", center)
        await self.mouse("mouseReleased", center)

    async def center_of(self, selector: str) -> tuple[float, float]:
        """Waits until an element is enabled. Returns its centre."""
        found = f"document.querySelector({json.dumps(selector)})"
        await self.until(f"{found} && !{found}.disabled")
        box = await self.value(
            f"(() => {{ const e = {found}; e.scrollIntoView({{block: 'center'}});"
            " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]"
            " })()"
        )
        return box[0], box[1]

    async def mouse(self, kind: str, center: tuple[float, float]) -> None:
        """Presses or releases the left mouse button at a point."""
        await self.ask(
            "Input.dispatchMouseEvent",
            type=kind, x=center[0], y=center[1], button="left", clickCount=1,
        )  # fmt: skip

    async def press(self, key: str, code: int) -> None:
        """Presses and releases a key, such as ("Tab", 9)."""
        for kind in ("keyDown", "keyUp"):
            await self.ask(
                "Input.dispatchKeyEvent",
                type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                text="\r" if key == "Enter" and kind == "keyDown" else "",
            )  # fmt: skip

    async def violations(self) -> list[str]:
        """Returns the accessibility rules that axe-core finds violated, each with the elements."""
        await self.value(AXE.read_text() + ";0")
        found: list[str] = json.loads(
            await self.value(
                "axe.run().then(({violations}) => JSON.stringify(violations.map("
                "({id, nodes}) => `${id}: ${nodes[0].html}`)))"
            )
        )
        return found

    async def screenshot(self, path: Path) -> None:
        """Saves the whole page as a PNG."""
        reported = await self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(reported["data"]))
