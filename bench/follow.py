"""Follows a busy node with partial state: `python -m fastevm.bench.follow --upstream anvil`.

A node with the market of `bench/remote` receives transactions and mines a block per second. A
follower in a separate process starts without state and executes every block on state that it
fetches. Meanwhile it answers eth_simulateV1 on ``pending``. The report has the number of blocks and
of mismatches, the fetched values, and the latency of simulations. With ``--in-process`` the
follower runs in this process, and the main thread simulates on the pending state from Python.
"""

import argparse
import itertools
import json
import sys
import threading
import time
from typing import Any

from fastevm.bench.node.content import signed
from fastevm.bench.node.launch import NodeProcess, ServerThread, fastevm_node, wait_for
from fastevm.bench.node.load import LoadError
from fastevm.bench.programs.loops import transfer
from fastevm.bench.remote import market
from fastevm.bench.remote.market_nodes import Upstream, start_anvil, start_own
from fastevm.core.state.remote import guesses
from fastevm.node import Mining, forked_node
from fastevm.node.remote.options import ForkOptions
from fastevm.rpc_client.messages import RpcRefusal
from fastevm.simulate import simulate

BLOCK_SECONDS = 1.0
FIRST_BLOCKS = 3  # anvil repeats the base fee of its genesis block once
SIMULATION_PAUSE = 0.02
FORWARDED_EACH = 5  # every fifth transaction goes through the follower
CATCH_UP_SECONDS = 20.0
COUNTERS = (
    "fork_mismatches_total", "fork_unverified_blocks_total", "fork_wrong_values_total",
    "fork_bases_total", "fork_requests", "fork_round_trips", "fork_accounts", "fork_slots",
    "fork_bytes", "fork_seconds_waited", "upstream_blocks_total", "upstream_invalid_blocks_total",
    "fork_restarts_total", "upstream_stale_heads_total", "local_pending_blocks_total",
    "local_pending_asked_total", "local_pending_offered_total", "local_pending_failures_total",
)  # fmt: skip


class Load:
    """Sends transactions of all holders in rotation and mines a block every second."""

    def __init__(self, upstream: Upstream, rate: int) -> None:
        self.upstream, self.rate = upstream, rate
        self.sent = self.refused = 0
        self._nonces = [0] * market.HOLDERS
        self._numbers = itertools.count()

    def run(self, follower: NodeProcess | ServerThread, seconds: float) -> None:
        """Sends transactions for ``seconds`` and mines a block every second.

        The follower forwards some of the transactions, and the others go to the upstream directly.
        """
        until = time.monotonic() + seconds
        head = self.upstream.ask("eth_getBlockByNumber", "latest", False)
        times = itertools.count(int(head["timestamp"], 16) + 1)  # anvil may reuse a timestamp
        with self.upstream.node.client() as client, follower.client() as forwarding:
            while (started := time.monotonic()) < until:
                raws = ["0x" + self._next().hex() for _ in range(int(self.rate * BLOCK_SECONDS))]
                through = len(raws) // FORWARDED_EACH
                for way, some in ((client, raws[through:]), (forwarding, raws[:through])):
                    answers = way.batch([("eth_sendRawTransaction", [raw]) for raw in some])
                    self.refused += sum(isinstance(answer, RpcRefusal) for answer in answers)
                    self.sent += len(answers)
                time.sleep(max(0.0, started + BLOCK_SECONDS - time.monotonic()))
                client.call("evm_mine", {"timestamp": next(times)})

    def _next(self) -> bytes:
        number = next(self._numbers)
        holder = number % market.HOLDERS
        nonce, self._nonces[holder] = self._nonces[holder], self._nonces[holder] + 1
        if number % market.SWAPS_EACH == 0:
            to, gas = market.ROUTER_ADDRESS, market.SWAP_GAS
            data = market.swap_data(10**15 + number)
        else:
            to, gas = market.TOKEN_ADDRESSES[number % market.WIDELY_HELD], market.TRANSFER_GAS
            other = market.holders()[(number * 7 + 1) % market.HOLDERS]
            data = transfer(other.address, 10**12 + number)
        key = market.holders()[holder].key
        return bytes(signed(key, nonce, to=to, data=data, gas_limit=gas).raw)


class Simulations:
    """Simulates bundles on the follower's pending block, in a thread, inside a ``with`` block."""

    def __init__(self, follower: NodeProcess) -> None:
        self.follower = follower
        self.seconds: list[float] = []
        self.failed = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Simulations":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with self.follower.client() as client:
            for number in itertools.count():
                payload = {"blockStateCalls": [{"calls": market.bundle(number)}]}
                started = time.perf_counter()
                try:
                    block = client.call("eth_simulateV1", payload, "pending")[0]
                    self.failed += any(call["status"] != "0x1" for call in block["calls"])
                except RpcRefusal:
                    self.failed += 1
                self.seconds.append(time.perf_counter() - started)
                if self._stop.wait(SIMULATION_PAUSE):
                    return


def in_process(upstream: Upstream, seconds: float, rate: int) -> dict[str, Any]:
    """Measures bundles from Python on the pending state of a follower in this process."""
    upstream.ask("anvil_mine", hex(FIRST_BLOCKS))
    node = forked_node(
        ForkOptions(urls=(upstream.url,), cache=False), accounts=0, mining=Mining.NEVER
    )
    node.follow(upstream.url, poll_ms=50)
    load, wall, processor, missed = Load(upstream, rate), [], [], 0
    with ServerThread(node) as server:
        loading = threading.Thread(target=load.run, args=(server, seconds))
        loading.start()
        shown, view = None, node.newest_view()
        for number in itertools.count():
            if node.pending() is not shown:
                shown, view = node.pending(), node.newest_view()
            before, started, cpu = guesses(), time.perf_counter(), time.thread_time()
            block = simulate(view, market.bundle(number), state_root=False)[0]
            processor.append(time.thread_time() - cpu)
            wall.append(time.perf_counter() - started)
            missed += guesses() != before
            if not all(call.success for call in block.calls):
                raise LoadError("a call failed")
            time.sleep(SIMULATION_PAUSE)
            if not loading.is_alive():
                break
        metrics = node.metrics()
    return {
        "upstream": upstream.name, "seconds": seconds, "simulations": len(wall),
        "blocks": metrics["upstream_blocks_total"], "waited_for_values": missed,
        **percentiles("wall_ms", wall), **percentiles("cpu_ms", processor),
    }  # fmt: skip


def percentiles(name: str, seconds: list[float]) -> dict[str, float]:
    """Returns the median and the tail in milliseconds. Leaves out the first tenth of the values."""
    warm = sorted(seconds[len(seconds) // 10 :])
    return {
        f"{name}_p{percent}": round(warm[len(warm) * percent // 100] * 1000, 3)
        for percent in (10, 50, 90, 99)
    }


def measured(upstream: Upstream, seconds: float, rate: int) -> dict[str, Any]:
    """Follows the upstream for a while and returns the figures."""
    load = Load(upstream, rate)
    upstream.ask("anvil_mine", hex(FIRST_BLOCKS))
    options = ("--fork-url", upstream.url, "--follow", "--poll-interval", "50")
    with fastevm_node(*options) as follower:
        first = int(follower.ask("eth_blockNumber"), 16)
        with Simulations(follower) as simulations:
            load.run(follower, seconds)
            head = upstream.ask("eth_getBlockByNumber", "latest", False)["hash"]

            def caught_up() -> bool:
                found = follower.ask("eth_getBlockByNumber", "latest", False)
                return bool(found["hash"] == head)

            wait_for(caught_up, CATCH_UP_SECONDS, "the follower did not catch up")
        metrics = follower.metrics()
        blocks = int(follower.ask("eth_blockNumber"), 16) - first
        memory = follower.memory()
    return {
        "upstream": upstream.name,
        "seconds": seconds,
        "transactions": load.sent,
        "refused": load.refused,
        "blocks": blocks,
        "memory_megabytes": memory >> 20,
        "simulations": len(simulations.seconds),
        "simulations_failed": simulations.failed,
        "first_simulation_ms": round(simulations.seconds[0] * 1000, 2),
        **percentiles("simulation_ms", simulations.seconds),
        **{name: metrics.get(name, 0) for name in COUNTERS},
    }


def main() -> int:
    """Measures. Returns 1 if a block did not match."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upstream", choices=("anvil", "own"), default="own")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rate", type=int, default=50, help="transactions a second (%(default)s)")
    parser.add_argument("--in-process", action="store_true", help="simulate from Python")
    arguments = parser.parse_args()
    start = start_anvil if arguments.upstream == "anvil" else start_own
    with start() as upstream:
        if arguments.in_process:
            print(json.dumps(in_process(upstream, arguments.seconds, arguments.rate), indent=1))
            return 0
        found = measured(upstream, arguments.seconds, arguments.rate)
    print(json.dumps(found, indent=1))
    return int(found["fork_mismatches_total"] > 0 or found["upstream_invalid_blocks_total"] > 0)


if __name__ == "__main__":
    sys.exit(main())
