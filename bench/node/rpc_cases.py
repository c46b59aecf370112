"""Defines the requests that both nodes receive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from fastevm.bench.node.compared import BLOCK_TIME, ComparedNode, start_anvil, start_fastevm
from fastevm.bench.node.content import Content, prepare, shown, token_slot
from fastevm.bench.node.load import Load, LoadError, Sample, batch_of, http
from fastevm.bench.programs.loops import BALANCE_OF, transfer, word
from fastevm.node.dev_accounts import dev_accounts
from fastevm.rpc_client.messages import request_body

MANY: Final = 16  # connections
BATCH: Final = 100  # calls in one request
TURN_SECONDS: Final = 0.05  # seconds per case under full load
VARIANTS: Final = 32  # different requests per case, used in rotation


@dataclass(frozen=True, slots=True)
class Case:
    """A method with different params for each variant.

    ``limit``: the largest accepted CPU time of a call, as a share of anvil's CPU time; None: no
    aim. ``batched``: also measured in batches. ``same``: both nodes must return equal results.
    """

    name: str
    method: str
    params: Callable[[Content, int], list[Any]]
    limit: float | None = None
    batched: bool = True
    same: bool = False


ACCOUNTS: Final = tuple(account.address for account in dev_accounts(10))


def account(number: int) -> str:
    """Returns a development account. Larger numbers start again at the first account."""
    return shown(ACCOUNTS[number % len(ACCOUNTS)])


def token_transfer(content: Content, number: int) -> dict[str, str]:
    """Returns a call that transfers some tokens to a new address."""
    data = transfer(word(1_000_000 + number)[12:], 1_000)
    return {"from": account(number), "to": content.token, "data": shown(data)}


def balance_of(content: Content, number: int) -> dict[str, str]:
    """Returns a call of the token's balanceOf."""
    owner = ACCOUNTS[number % len(ACCOUNTS)]
    return {"to": content.token, "data": shown(BALANCE_OF + owner.rjust(32, b"\0"))}


def simulation(content: Content, number: int, blocks: int, calls: int) -> list[Any]:
    """Returns an eth_simulateV1 payload of blocks with ``calls`` transfers each."""
    made = [
        {"calls": [token_transfer(content, number * calls + j) for j in range(calls)]}
        for _ in range(blocks)
    ]
    return [{"blockStateCalls": made}, "latest"]


def transaction(content: Content, number: int) -> list[Any]:
    """Returns params with the hash of a mined transfer."""
    return [content.transactions[number % len(content.transactions)]]


CASES: Final = (
    Case("block number", "eth_blockNumber", lambda c, i: [], 2.0),
    Case(
        "storage", "eth_getStorageAt",
        lambda c, i: [c.token, token_slot(ACCOUNTS[i % 10]), "latest"], 2.0, same=True,
    ),
    Case("nonce", "eth_getTransactionCount", lambda c, i: [account(i), "latest"], 2.0, same=True),
    Case("balance", "eth_getBalance", lambda c, i: [account(i), "latest"], 2.0),
    Case("call, trivial", "eth_call", lambda c, i: [{"to": c.answer}, "latest"], 1.0, same=True),
    Case(
        "call, balanceOf", "eth_call", lambda c, i: [balance_of(c, i), "latest"], 1.0, same=True
    ),
    Case("estimate gas", "eth_estimateGas", lambda c, i: [token_transfer(c, i), "latest"], 1.0),
    Case("simulate 1 x 1", "eth_simulateV1", lambda c, i: simulation(c, i, 1, 1), 1.0),
    Case(
        "simulate 10 x 20", "eth_simulateV1", lambda c, i: simulation(c, i, 10, 20), 0.2,
        batched=False,
    ),
    Case("block, hashes", "eth_getBlockByNumber", lambda c, i: [c.block, False], 2.0),
    Case("block, full", "eth_getBlockByNumber", lambda c, i: [c.block, True], 2.0),
    Case("transaction", "eth_getTransactionByHash", transaction, 2.0),
    Case("receipt", "eth_getTransactionReceipt", transaction, 2.0),
    Case("block receipts", "eth_getBlockReceipts", lambda c, i: [c.block], 2.0),
)  # fmt: skip

Mode = tuple[str, int, int]  # name, connections, calls in a request
MODES: Final[tuple[Mode, ...]] = (
    ("1 connection", 1, 1),
    (f"{MANY} connections", MANY, 1),
    (f"batches of {BATCH}", 1, BATCH),
    (f"batches of {BATCH}, {MANY} connections", MANY, BATCH),
)


def requests_of(case: Case, content: Content, items: int) -> list[bytes]:
    """Returns the requests of a case as bytes for the socket."""
    bodies = [
        request_body(case.method, case.params(content, number), number)
        for number in range(max(items, VARIANTS))
    ]
    if items == 1:
        return [http(body) for body in bodies]
    return [http(batch_of(bodies[:items]))]


class Side:
    """A node with its content, its connections and its requests."""

    def __init__(self, node: ComparedNode) -> None:
        self.node = node
        self.loads: dict[int, Load] = {count: node.load(count) for count in (1, MANY)}
        self.client = node.client()
        self.content = prepare(self.client)
        node.settle()
        self.requests: dict[tuple[str, int], list[bytes]] = {}

    def run(self, case: Case, mode: Mode, seconds: float) -> Sample:
        """Sends the requests of a case for ``seconds``."""
        _, connections, items = mode
        key = case.name, items
        if key not in self.requests:
            self.requests[key] = requests_of(case, self.content, items)
        return self.loads[connections].run(self.requests[key], items=items, seconds=seconds)

    def answer(self, case: Case) -> Any:
        """Returns the node's result for the first request of a case."""
        return self.client.call(case.method, *case.params(self.content, 0))

    def close(self) -> None:
        """Closes the connections and stops the node."""
        for load in self.loads.values():
            load.close()
        self.client.close()
        self.node.stop()


@contextmanager
def sides(progress: Callable[[str], None], peers: bool = True) -> Iterator[list[Side]]:
    """Provides both nodes, or only fastevm if anvil is not available."""
    opened = [Side(start_fastevm())]
    try:
        if peers:
            try:
                opened.append(Side(start_anvil("--block-time", str(BLOCK_TIME))))
            except LoadError as reason:
                progress(f"anvil is left out: {reason}")
        yield opened
    finally:
        for side in opened:
            side.close()


def modes_of(case: Case) -> tuple[Mode, ...]:
    """Returns the modes in which a case is measured."""
    return MODES if case.batched else MODES[:2]


def turns(side: Side) -> Iterator[Sample]:
    """Runs every case in every mode for a short time, and yields each result."""
    for case in CASES:
        for mode in modes_of(case):
            yield side.run(case, mode, TURN_SECONDS)
