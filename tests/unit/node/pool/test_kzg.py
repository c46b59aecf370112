"""The trusted setup in the background: loaded some time after the start, and never by force."""

import asyncio
import time
from pathlib import Path
from threading import Event

import pytest

from fastevm.node import Mining, dev_node, node
from fastevm.node.pool import kzg
from fastevm.node.pool.kzg import TrustedSetup


def test_loading_in_the_background_gives_way_and_proofs_can_be_checked_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loading, ready = Event(), Event()

    def slow(path: Path) -> object:
        loading.set()
        ready.wait(10)
        return object()

    monkeypatch.setattr(kzg, "_load", slow)
    setup = TrustedSetup(Path("setup"))
    setup.preload()
    assert loading.wait(10)
    assert not setup.loaded
    ready.set()
    setup.load()
    assert setup.loaded


def test_a_setup_that_cannot_be_read_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    setup = TrustedSetup(tmp_path / "nothing")
    setup.preload()
    deadline = time.monotonic() + 10
    while "blob transactions cannot be checked" not in caplog.text:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not setup.loaded


@pytest.mark.parametrize("stays", [True, False])
async def test_a_node_loads_its_setup_unless_it_ends_before(
    monkeypatch: pytest.MonkeyPatch, stays: bool
) -> None:
    monkeypatch.setattr(node, "PRELOAD_SECONDS", 0.05)
    loaded = []
    monkeypatch.setattr(kzg, "_load", lambda path: loaded.append(path) or object())
    made = dev_node(mining=Mining.MANUAL, trusted_setup=TrustedSetup(Path("setup")))
    await made.start()
    assert not loaded
    if stays:
        await asyncio.sleep(0.3)
    await made.stop()
    await asyncio.sleep(0.1)
    assert bool(loaded) == stays
