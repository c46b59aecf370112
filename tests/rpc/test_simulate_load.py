"""Heavy simulations on sixteen connections: small requests are still answered at once."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import ROOT, LiveServer

SECONDS = 4.0
CONNECTIONS = 16
ANSWER_MS = 20.0  # 99 of 100 small requests
BLOCKED_MS = 5.0  # the event loop
TICK = 0.002
BUSY_MS = 2.0  # where an idle loop is later than this, nothing can be told


class Heartbeat:
    """Measures how late the loop wakes up, without the time that it waited for a core."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.late: list[float] = []
        self.running = True
        self.waited = 0.0

    def run_delay(self) -> float:
        """Milliseconds that this thread has been ready to run while others had the cores."""
        stat = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        return int(stat.read_text().split()[1]) / 1e6 if stat.exists() else 0.0

    def beat(self, due: float) -> None:
        """Note the delay in milliseconds and wait for the next beat."""
        now, waited = self.loop.time(), self.run_delay()
        self.late.append(max((now - due) * 1000 - (waited - self.waited), 0.0))
        self.waited = waited
        if self.running:
            self.loop.call_at(now + TICK, self.beat, now + TICK)

    def measure(self, seconds: float) -> list[float]:
        """The delays of so many seconds."""
        self.late, self.running = [], True
        self.loop.call_soon_threadsafe(self.beat, self.loop.time())
        time.sleep(seconds)
        self.running = False
        return sorted(self.late)


def client(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.rpc.load", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


@pytest.fixture(scope="module")
def heartbeat(live: LiveServer) -> Heartbeat:
    """The loop's heartbeat, on a machine that is quiet enough to tell."""
    beats = Heartbeat(live.loop)
    idle = percentile(beats.measure(1.0), 0.99)
    if idle > BUSY_MS:
        pytest.skip(f"the machine is busy: an idle loop is late by {idle:.1f} ms")
    return beats


@pytest.fixture
def heavy_load(live: LiveServer) -> Iterator[None]:
    """Sixteen connections that keep simulations running."""
    load = client("heavy", live.url("geth"), str(SECONDS * 4), str(CONNECTIONS))
    time.sleep(1.0)
    yield
    load.kill()
    load.wait()


@pytest.mark.parametrize("method", ["eth_blockNumber", "eth_call"])
def test_small_requests_are_answered_while_heavy_ones_run(
    live: LiveServer, heartbeat: Heartbeat, heavy_load: None, method: str
) -> None:
    probe = client("probe", live.url("geth"), str(SECONDS), method)
    late = heartbeat.measure(SECONDS + 0.5)
    output, _ = probe.communicate(timeout=60)
    times = json.loads(output)
    figures = (
        f"{method}: {len(times)} answers, median {percentile(times, 0.5):.1f} ms, "
        f"p99 {percentile(times, 0.99):.1f} ms; loop late by p99 {percentile(late, 0.99):.1f} ms, "
        f"at most {late[-1]:.1f} ms"
    )
    print(figures)
    assert percentile(times, 0.99) < ANSWER_MS, figures
    assert percentile(late, 0.99) < BLOCKED_MS, figures
