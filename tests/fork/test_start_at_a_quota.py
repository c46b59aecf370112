"""Tests how long a fork takes to start at an endpoint with the quota of a free plan.

The quota is 330 compute units per second. So the duration depends on the number of units, not on
the machine.
"""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from fastevm.bench.node.launch import NodeProcess, fastevm_node
from fastevm.bench.remote.market_nodes import Upstream
from fastevm.bench.remote.proxy import Call, Endpoint, Proxy, Reply
from fastevm.fork.rate_limit import DEFAULT_UNITS_PER_SECOND, compute_units
from tests.ecosystem.development.nodes import anvil

SECONDS_BEHIND_ANVIL = 2
LOW_QUOTA = 100  # compute units per second
# A start, with the first requests of the head follower, may use the quota of this many seconds.
SECONDS = 4
LARGEST = 16  # maximum calls in a request


@dataclass
class Quota(Endpoint):
    """Counts compute units and answers HTTP 429 above the quota."""

    requested: int = 0  # compute units of all requests
    served: int = 0  # compute units of accepted requests
    sizes: list[int] = field(default_factory=list)  # number of calls in each request
    _left: float = DEFAULT_UNITS_PER_SECOND
    _at: float = field(default_factory=time.monotonic)

    async def before(self, calls: list[Call], number: int) -> Reply | None:
        price = compute_units(str(call.get("method")) for call in calls)
        self.requested += price
        self.sizes.append(len(calls))
        now = time.monotonic()
        filled = self._left + (now - self._at) * DEFAULT_UNITS_PER_SECOND
        self._left, self._at = min(DEFAULT_UNITS_PER_SECOND, filled), now
        if self._left < price:
            return Reply(b"Too Many Requests", 429)
        self._left -= price
        self.served += price
        return None


@pytest.fixture
def proxy(own: Upstream) -> Iterator[Proxy]:
    with Proxy(own.url) as made:
        yield made


def cost(proxy: Proxy, node: NodeProcess) -> Quota:
    """Starts the node. Returns the counts of the endpoint up to the node's first answer."""
    proxy.endpoint = quota = Quota()
    with node:
        assert int(node.ask("eth_blockNumber"), 16) > 0
    return quota


@pytest.mark.parametrize("command", ["dev", "node"])
def test_a_fork_starts_with_few_calls_in_small_requests(proxy: Proxy, command: str) -> None:
    options = ("--fork-url", proxy.url, "--no-storage-caching")
    found = cost(proxy, fastevm_node(*options, module=("fastevm", command)))
    assert 0 < found.served <= SECONDS * DEFAULT_UNITS_PER_SECOND
    assert max(found.sizes) <= LARGEST


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm, which brings anvil")
@pytest.mark.parametrize("command", ["dev", "node"])
def test_a_fork_starts_at_most_two_seconds_after_anvil(proxy: Proxy, command: str) -> None:
    options = ("--fork-url", proxy.url, "--no-storage-caching")
    theirs = cost(proxy, anvil(*options))
    ours = cost(proxy, fastevm_node(*options, module=("fastevm", command)))
    assert theirs.served > 0
    assert ours.served <= theirs.served + SECONDS_BEHIND_ANVIL * LOW_QUOTA
