"""No spelling of a sold path reaches its handler without payment, in any framework."""

from typing import Any

import pytest

from fastevm.payments.x402 import Paywall, Sale

from .servers import Till, exchange, raw
from .test_attacks import OFFER
from .test_paywall import ADAPTERS, Shop

ODD = (
    "%00", "%09", "%0a", "%0A", "%0d", "%0d%0a", "%20", "%2e", "%2f", "%2F", "%5c", "%3b", "%3f",
    "%23", "%7f", "%25", "%c2%85", "%c2%a0", "%e2%80%a8", "%ff", ";", ";a=b", ".", "/", "//", "/.",
    "/..", "/./", "\\", "+", "*", ":", "@", "?", "??", "?a", "%", "%zz",
)  # fmt: skip
SPELLED = (
    "/%77eather", "/%57eather", "/WEATHER", "/Weather", "/weathe%72", "/./weather",
    "/free/../weather", "/x/..//weather", "//weather", "///weather", "/%2fweather", "/%2e/weather",
    "http://shop.example/weather", "HTTP://shop.example//weather", "http:/weather", "weather",
    "*", "//shop.example/weather", "/;/weather", "/free;/../weather", "/\\weather",
)  # fmt: skip


@pytest.mark.parametrize("route", ["GET /weather", "/weather", "/weathe*"])
@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_no_spelling_of_a_sold_path_is_free(adapter: str, route: str) -> None:
    shop: Any = Shop()
    wall = Paywall(Till(), {route: Sale([OFFER])})
    paths = [f"/weather{odd}" for odd in ODD] + [f"/weather{item}{two}" for item in ODD[:6]
                                                 for two in ODD[:6]]  # fmt: skip
    paths += [f"/{odd}weather" for odd in ODD] + [f"/wea{odd}ther" for odd in ODD]
    async with ADAPTERS[adapter](shop, wall) as url:
        port = int(url.rsplit(":", 1)[1])
        for path in (*SPELLED, *paths):
            for method in ("GET", "HEAD"):
                status, answer = await exchange(port, raw(method, {}, path=path))
                assert not shop.calls and b"sunny" not in answer, (method, path, status)
        assert (await exchange(port, raw("GET", {}, path="/free")))[0] == 200
        assert (await exchange(port, raw("GET", {})))[0] == 402
    assert shop.calls == 1
