"""Tests that a node loads the trusted setup in the background, some time after the start."""

import asyncio
import time
from pathlib import Path
from threading import Event

import pytest

from fastevm.node import Mining, dev_node, node
from fastevm.node.pool import kzg
from fastevm.node.pool.kzg import TrustedSetup
from tests.max_wait import MAX_WAIT


def test_loading_in_the_background_gives_way_and_proofs_can_be_checked_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loading, ready = Event(), Event()

    def slow(path: Path) -> object:
        loading.set()
        ready.wait(MAX_WAIT)
        return object()

    monkeypatch.setattr(kzg, "_load", slow)
    setup = TrustedSetup(Path("setup"))
    setup.preload()
    assert loading.wait(MAX_WAIT)
    assert not setup.loaded
    ready.set()
    setup.load()
    assert setup.loaded


def test_a_setup_that_cannot_be_read_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    setup = TrustedSetup(tmp_path / "nothing")
    setup.preload()
    deadline = time.monotonic() + MAX_WAIT
    while "blob transactions cannot be checked" not in caplog.text:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not setup.loaded


@pytest.mark.parametrize("stays", [True, False])
async def test_a_node_loads_its_setup_unless_it_ends_before(
    monkeypatch: pytest.MonkeyPatch, stays: bool
) -> None:
    seconds = 0.05 if stays else 1.0
    monkeypatch.setattr(node, "PRELOAD_SECONDS", seconds)
    loaded = Event()
    monkeypatch.setattr(kzg, "_load", lambda path: loaded.set() or object())
    made = dev_node(mining=Mining.MANUAL, trusted_setup=TrustedSetup(Path("setup")))
    await made.start()
    begun = time.monotonic()
    if stays:
        assert await asyncio.to_thread(loaded.wait, MAX_WAIT)
    await made.stop()
    if not stays and time.monotonic() < begun + seconds:  # stopped before loading
        await asyncio.sleep(1.5 * seconds)
        assert not loaded.is_set()
