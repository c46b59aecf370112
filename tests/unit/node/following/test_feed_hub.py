"""Tests the queues of the feed's readers."""

import asyncio
import os

import pytest

from fastevm.chain.metrics import MetricsRegistry
from fastevm.node.following import feed_hub
from fastevm.node.following.feed_hub import FeedFrame, FeedHub, FeedReader, SlowReader
from fastevm.rpc_types.feed import compress

brotli = pytest.importorskip("brotli")


def reader_of(hub: FeedHub) -> FeedReader:
    return hub.open("address", limit=10, address_limit=10)


async def test_the_queue_of_a_reader_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_hub, "QUEUE_BYTES", 1_000)
    hub = FeedHub(MetricsRegistry())
    slow, quick = reader_of(hub), reader_of(hub)
    frames = quick.frames()
    sent = [FeedFrame(mark * 600) for mark in "abc"]
    for frame in sent:
        hub._deliver(frame)
        assert await anext(frames) is frame
    assert hub.readers == 1
    with pytest.raises(SlowReader):
        await anext(slow.frames())
    hub._deliver(FeedFrame("d" * 5_000))  # an empty queue takes any message
    assert (await anext(frames)).text == b"d" * 5_000


async def test_a_large_message_is_compressed_once_and_not_on_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[str] = []

    def noted(text: bytes) -> bytes:
        try:
            asyncio.get_running_loop()
            threads.append("loop")
        except RuntimeError:
            threads.append("worker")
        return compress(text)

    monkeypatch.setattr(feed_hub, "compress", noted)
    text = os.urandom(50_000).hex()
    frame = FeedFrame(text)
    first, second = await asyncio.gather(frame.packed(), frame.packed())
    assert first is second and brotli.decompress(first) == text.encode()
    assert brotli.decompress(await FeedFrame("{}").packed()) == b"{}"
    assert threads == ["worker", "loop"]
