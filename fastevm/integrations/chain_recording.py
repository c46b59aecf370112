"""``RecordedNode``: a development node that records its requests, so that they can be replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, Final

import msgspec

from fastevm.core.primitives.deep_json import decode_json
from fastevm.errors import ResourceLimitError
from fastevm.integrations.local_node import LocalNode
from fastevm.integrations.reproduction import ChainPart, Exchange, Reproduction

GENESIS_TIME: Final = 1_800_000_000  # seconds; a fixed time, so that examples repeat
INTERVAL: Final = 1  # seconds between two blocks
EXCHANGES_LIMIT: Final = 100_000
EDGE_TRACER: Final = {"tracer": "edgeTracer"}
SECRET: Final = frozenset({"fork_url", "mnemonic", "state", "load_state", "dump_state"})
"""Options that a file does not contain, because they may hold keys or local paths."""


class RecordedNode(LocalNode):
    """A development node with a fixed clock that records requests and answers.

    The prelude, the requests of ``deploy``, is recorded once. Then each example is recorded
    separately. Requests by ``unobserved`` and subscriptions are not recorded.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options
        self._prelude: list[tuple[bytes, Future[bytes]]] = []
        self._example: list[tuple[bytes, Future[bytes]]] = []
        self._recording = self._prelude
        super().__init__("dev", **{"timestamp": GENESIS_TIME, **options})
        self.unobserved("anvil_setBlockTimestampInterval", [INTERVAL])

    def begin_exchange(self, body: bytes) -> Future[bytes]:
        """Starts answering a request body, and records the request and its answer."""
        if len(self._recording) >= EXCHANGES_LIMIT:
            raise ResourceLimitError("recorded_requests", f"more than {EXCHANGES_LIMIT} requests")
        answer = super().begin_exchange(body)
        self._recording.append((body, answer))
        return answer

    def end_prelude(self) -> None:
        """Ends the prelude, which all examples share."""
        self._recording = self._example

    def begin_example(self) -> None:
        """Drops the requests recorded since the prelude."""
        self._example.clear()

    def branches(self, first: int) -> int:
        """Returns the number of branches taken by the transactions in blocks from ``first`` on."""
        found: set[tuple[str, int, int]] = set()
        height = int(self.unobserved("eth_blockNumber"), 16)
        for number in range(first, height + 1):
            for item in self.unobserved("debug_traceBlockByNumber", [hex(number), EDGE_TRACER]):
                for address, edges in item["result"]["code"].items():
                    found.update((address, source, target) for source, target in edges)
        return len(found)

    def recorded(self) -> ChainPart:
        """Returns the prelude and the example."""
        shared = {name: self.options[name] for name in self.options if name not in SECRET}
        return ChainPart(
            options=msgspec.to_builtins(shared),
            withheld=sorted(SECRET & self.options.keys()),
            prelude=exchanges(self._prelude),
            example=exchanges(self._example),
        )


def exchanges(recording: Iterable[tuple[bytes, Future[bytes]]]) -> list[Exchange]:
    """Returns requests and answers as JSON values."""
    return [
        Exchange(request=decode_json(body), answer=decode_json(answer.result()))
        for body, answer in recording
    ]


def chain_reproduction_of(node: RecordedNode, test: str, failure: str) -> Reproduction:
    """Returns the content of the reproduction file for a failing example.

    Replays the example on a new node first, and adds a warning if an answer differs.
    """
    part = node.recorded()
    found = Reproduction(test=test, failure=failure, chain=part)
    with RecordedNode(**node.options) as trial:
        found.warning = exchange_all(trial, part)
    return found


def exchange_all(
    node: LocalNode, part: ChainPart, show: Callable[[int, Exchange, Any], object] | None = None
) -> str:
    """Sends the recorded requests, and describes the first answer that differs from the recording.

    Returns an empty text if no answer differs.
    """
    names: dict[str, str] = {}  # snapshot id in the recording -> snapshot id in this run
    for number, exchange in enumerate(part.prelude + part.example, 1):
        request = with_snapshot(exchange.request, names)
        answer = decode_json(node.exchange(msgspec.json.encode(request)))
        shared = number <= len(part.prelude)
        if is_snapshot(request) and "result" in answer:
            names[exchange.answer["result"]] = answer["result"]
        elif answer != exchange.answer:
            return (
                f"request {number} ({method_of(request)}): expected {exchange.answer}, "
                f"found {answer}"
            )[:1000]
        if show is not None and not shared:
            show(number - len(part.prelude), exchange, answer)
    return ""


def is_snapshot(request: Any) -> bool:
    """Returns whether the request takes a snapshot."""
    return isinstance(request, dict) and request.get("method") in ("evm_snapshot", "anvil_snapshot")


def with_snapshot(request: Any, names: dict[str, str]) -> Any:
    """Replaces the recorded snapshot id in a request to revert."""
    if isinstance(request, dict) and request.get("method") in ("evm_revert", "anvil_revert"):
        return {**request, "params": [names.get(each, each) for each in request["params"]]}
    return request


def method_of(request: Any) -> str:
    """Returns the method of a request, or the number of requests of a batch."""
    if isinstance(request, list):
        return f"a batch of {len(request)}"
    return str(request.get("method"))
