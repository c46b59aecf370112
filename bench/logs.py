"""Measures eth_getLogs over HTTP, also on anvil, and in this process over a million logs.

    python -m fastevm.bench.logs [--quick] [--json FILE]

Both nodes have the same 4,000 logs in 2,000 blocks: every tenth block has a transaction with 20
logs. The queries and nodes alternate in each round, so that a slow moment of the machine affects
both nodes. The figure to compare is the server's CPU time per answer.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fastevm.bench.node import log_index as in_process
from fastevm.bench.node.compared import ComparedNode, start_anvil, start_fastevm
from fastevm.bench.node.content import EMITTER, deployment, receipt_of, shown, signed, submit
from fastevm.bench.node.load import LoadError, Sample, http, summary
from fastevm.bench.programs.loops import word
from fastevm.bench.report.figures import aim
from fastevm.node.dev_accounts import dev_accounts
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import request_body

MANY: Final = 16  # connections

TRANSACTIONS: Final = 200
LOGS_OF_TRANSACTION: Final = 20
BLOCKS_OF_TRANSACTION: Final = 10  # only the first of so many blocks has a transaction
TOPICS: Final = 20  # used in rotation: each is the topic of 200 logs
RATIO: Final = 0.2  # aim: at most this share of anvil's CPU time
ROUNDS: Final = 5
SECONDS: Final = 0.8


@dataclass(frozen=True, slots=True)
class Question:
    """A query and the number of logs in its result."""

    name: str
    wanted: dict[str, Any]
    logs: int


class Side:
    """A node with the logs."""

    def __init__(self, node: ComparedNode) -> None:
        self.node = node
        self.loads = {count: node.load(count) for count in (1, MANY)}
        self.client = node.client()
        self.address = fill(self.client)

    def questions(self) -> list[Question]:
        """Returns queries for all logs, for the 200 logs of one topic, and for no logs."""
        everything = {"fromBlock": "0x0", "toBlock": "latest", "address": self.address}
        topics = [shown(word(7))], [shown(word(TOPICS))]
        return [
            Question("all 4,000", everything, TRANSACTIONS * LOGS_OF_TRANSACTION),
            Question(
                "200 of 4,000", everything | {"topics": topics[0]},
                TRANSACTIONS * LOGS_OF_TRANSACTION // TOPICS,
            ),
            Question("none", everything | {"topics": topics[1]}, 0),
        ]  # fmt: skip

    def check(self, question: Question) -> None:
        """Raises LoadError if the answer is wrong."""
        found = self.client.call("eth_getLogs", question.wanted)
        if len(found) != question.logs:
            name = self.node.name
            raise LoadError(f"{name} gives {len(found)} logs, not {question.logs}")

    def run(self, question: Question, connections: int, seconds: float) -> Sample:
        """Sends the query repeatedly over the connections."""
        request = http(request_body("eth_getLogs", [question.wanted]))
        return self.loads[connections].run([request], seconds=seconds)

    def close(self) -> None:
        """Closes the connections and ends the node."""
        for load in self.loads.values():
            load.close()
        self.client.close()
        self.node.stop()


def fill(client: JsonRpcClient) -> str:
    """Mines the logs on a node that mines on demand. Returns the logs' address."""
    key = dev_accounts(1)[0].private_key
    deployed = signed(key, 0, data=deployment(EMITTER, {}), gas_limit=1_000_000)
    submit(client, [deployed])
    mine(client, 1)
    address = str(receipt_of(client, shown(deployed.hash))["contractAddress"])
    for number in range(TRANSACTIONS):
        data = word(LOGS_OF_TRANSACTION) + word(number % TOPICS)
        to = bytes.fromhex(address[2:])
        submit(client, [signed(key, 1 + number, to=to, data=data, gas_limit=200_000)])
        mine(client, BLOCKS_OF_TRANSACTION)
    return address


def mine(client: JsonRpcClient, blocks: int) -> None:
    """Mines ``blocks`` blocks."""
    client.batch([("evm_mine", [])] * blocks)


Found = dict[str, dict[str, dict[str, float]]]  # question and connections -> node -> figures


def compare(sides: list[Side], rounds: int, seconds: float) -> Found:
    """Sends all queries to the nodes alternately."""
    samples: dict[str, dict[str, list[Sample]]] = {}
    for side in sides:
        for question in side.questions():
            side.check(question)
    for _ in range(rounds):
        for connections in (1, MANY):
            for questions in zip(*(side.questions() for side in sides), strict=True):
                for side, question in zip(sides, questions, strict=True):
                    name = f"{question.name}, {connections} connections"
                    of_node = samples.setdefault(name, {}).setdefault(side.node.name, [])
                    of_node.append(side.run(question, connections, seconds))
    return {
        name: {node: summary(runs) for node, runs in by_node.items()}
        for name, by_node in samples.items()
    }


def beside_anvil(progress: Callable[[str], None], rounds: int, seconds: float) -> Found:
    """Returns the figures of both nodes over HTTP, or of fastevm only if anvil is not available."""
    with ExitStack() as opened:
        sides: list[Side] = []
        for start in (start_fastevm, start_anvil):
            try:
                side = Side(start("--no-mining"))
            except LoadError as reason:
                if start is start_fastevm:
                    raise
                progress(f"anvil is left out: {reason}")
                continue
            opened.callback(side.close)
            sides.append(side)
        return compare(sides, rounds, seconds)


def measure(progress: Callable[[str], None], quick: bool = False) -> dict[str, Any]:
    """Returns all figures: ``process`` (milliseconds) and ``http``."""
    progress("a million logs in the process")
    process = in_process.measure(rounds=3 if quick else in_process.ROUNDS)
    progress("4,000 logs over HTTP")
    rounds, seconds = (1, 0.3) if quick else (ROUNDS, SECONDS)
    return {"process": process, "http": beside_anvil(progress, rounds, seconds)}


def aims(found: dict[str, Any]) -> list[dict[str, object]]:
    """Returns the aims and whether they were met."""
    rows = in_process.aims(found["process"])
    for name, by_node in found["http"].items():
        if "anvil" in by_node:
            share = by_node["fastevm"]["cpu_us"] / max(by_node["anvil"]["cpu_us"], 0.01)
            rows.append(aim(f"eth_getLogs, {name}", "of anvil's CPU time", RATIO, share))
    return rows


def table(found: dict[str, Any]) -> str:
    """Formats the figures as text."""
    lines = [f"{name:36}{value:>14.3f}" for name, value in found["process"].items()]
    lines.append(f"\n{'over HTTP':32}{'cpu us':>10}{'anvil':>10}{'per s':>9}{'anvil':>9}")
    for name, by_node in found["http"].items():
        own, other = by_node["fastevm"], by_node.get("anvil", {})
        line = f"{name:32}{own['cpu_us']:>10.1f}{other.get('cpu_us', 0):>10.1f}"
        line += f"{own['per_second']:>9.0f}{other.get('per_second', 0):>9.0f}"
        failures = own["failures"] + other.get("failures", 0)
        lines.append(line + (f"  {failures:.0f} FAILURES" if failures else ""))
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.bench.logs", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args(argv)
    found = measure(lambda text: print(text, file=sys.stderr, flush=True), options.quick)
    found["aims"] = aims(found)
    print(table(found))
    for row in found["aims"]:
        if not row["met"]:
            print(f"not met: {row['name']}: {row['value']} {row['unit']}, limit {row['limit']}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
