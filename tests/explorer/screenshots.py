"""Takes the documented screenshots: ``python -m tests.explorer.screenshots DIRECTORY``."""

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Final

from fastevm.bench.node.launch import ServerThread
from fastevm.node import dev_node
from tests.browser import Browser, Page

from .scene import MULTICALL, TOKEN, WALLET, Scene, Stage

WINDOW: Final = {"width": 1280, "height": 1100}
PHONE: Final = {"width": 390, "height": 844}
QUALITY: Final = 70  # WebP quality in percent
WARM_UP: Final = 12.0  # seconds of traffic until the plot of slices is full
TRAFFIC: Final = 0.13  # seconds between transactions


async def traffic(stage: Stage, scene: Scene, stop: asyncio.Event) -> None:
    """Sends transactions from several accounts until `stop` is set."""
    number = 0
    while not stop.is_set():
        sender, other = 1 + number % 3, scene.accounts[4 + number % 5]
        if number % 4 == 3:
            await asyncio.to_thread(stage.send, b"", other, sender=sender, value=10**16 * number)
        else:
            data = TOKEN.encode("transfer", bytes.fromhex(other[2:]), 1_000_000 + number)
            await asyncio.to_thread(stage.send, data, scene.token, sender=1)
        number += 1
        await asyncio.sleep(TRAFFIC)


async def shoot(page: Page, path: Path, route: str, *, theme: str = "light") -> None:
    """Opens a route of the explorer and saves a screenshot of it."""
    await page.value(
        f"(document.documentElement.dataset.theme = {theme!r}, location.hash = {route!r})"
    )
    name = route.removeprefix("#/").partition("/")[0] or "home"
    await page.until(f"document.body.dataset.page?.startsWith({name!r})")
    await asyncio.sleep(1.5)
    answer = await page.ask("Page.captureScreenshot", format="webp", quality=QUALITY)
    path.write_bytes(base64.b64decode(answer["data"]))
    print(path, path.stat().st_size)


def descriptions(scene: Scene) -> str:
    """Returns names and ABIs of the contracts, in the format that the explorer stores."""
    contracts = {
        scene.token: {"name": "USDC", "abi": json.dumps(TOKEN.abi)},
        scene.multicall: {"name": "Multicall", "abi": json.dumps(MULTICALL.abi)},
        scene.wallet: {"name": "Wallet", "abi": json.dumps(WALLET.abi)},
    }
    return json.dumps({f"31337:{address}": of for address, of in contracts.items()})


async def pictures(folder: Path, url: str, scene: Scene) -> None:
    """Takes all screenshots of the node at ``url``."""
    async with Browser() as browser:
        wide = await browser.page(f"{url}/", **WINDOW)
        kept = json.dumps(descriptions(scene))
        await wide.value(f"localStorage.setItem('fastevm-contracts', {kept})")
        await wide.ask("Page.reload")
        await asyncio.sleep(WARM_UP)
        nested, token = f"#/tx/{scene.nested}", f"#/address/{scene.token}"
        await shoot(wide, folder / "overview-light.webp", "#/")
        await shoot(wide, folder / "overview-dark.webp", "#/", theme="dark")
        await shoot(wide, folder / "transaction-dark.webp", nested, theme="dark")
        await shoot(wide, folder / "address-dark.webp", token, theme="dark")
        phone = await browser.page(f"{url}/", over=wide, **PHONE)
        await asyncio.sleep(WARM_UP)
        await shoot(phone, folder / "overview-phone.webp", "#/")
        await shoot(phone, folder / "transaction-phone.webp", nested, theme="dark")
        for page in (wide, phone):
            assert not page.complaints, page.complaints


async def main(folder: Path) -> None:
    """Starts a node with traffic, and takes the screenshots."""
    folder.mkdir(parents=True, exist_ok=True)
    with ServerThread(dev_node()) as server:
        stage = Stage(server.url())
        scene = await asyncio.to_thread(stage.play)
        stop = asyncio.Event()
        going = asyncio.create_task(traffic(stage, scene, stop))
        try:
            await pictures(folder, server.url(), scene)
        finally:
            stop.set()
            await going


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
