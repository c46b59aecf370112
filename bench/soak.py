"""Injects every fault into a builder and its follower, then compares both nodes.

A node builds blocks under a load of transactions and publishes its slices; another follows it.
Slices are dropped, delayed, sent twice and in another order, blocks begin again and are sealed
otherwise than announced, and from time to time one of the two is killed and started again. At the
end both must have the same heads, receipts and logs, every accepted transaction must be in a block,
and every kind of fault must have shown in the follower's metrics. Otherwise the exit status is 1.
"""

import argparse
import itertools
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

from fastevm.bench.cadence import CHAIN_ID, SENDERS
from fastevm.bench.node.faulty_node import BLOCK_FAULTS
from fastevm.bench.node.launch import NodeProcess, fastevm_node, wait_for
from fastevm.execution.transaction import Transaction
from fastevm.node.dev_accounts import dev_accounts
from fastevm.wire.client.messages import RpcRefusal, RpcUnreachable

DRAIN_SECONDS = 60.0
SETTLE_SECONDS = 1.0  # after a fault before the follower's metrics are read
RETRY_SECONDS = 0.2
RECEIVER = b"\xb0" * 20
# PUSH0 PUSH0 LOG0 STOP behind a constructor that returns it.
LOGGER_INIT = bytes.fromhex("635f5fa0005f526004601cf3")

SEQUENCE = 'feed_sequence_total{{verdict="{}"}}'
BROKEN_ORDER = tuple(
    SEQUENCE.format(name) for name in ("gap", "predecessor_mismatch", "invalid_block")
)
LOST_START = SEQUENCE.format("missing_first")
# What a fault must show as at the follower: one of these must grow.
SIGNS: dict[str, tuple[str, ...]] = {
    "drop": (*BROKEN_ORDER, LOST_START),
    "delay": (*BROKEN_ORDER, "slice_gaps_total"),
    "duplicate": (SEQUENCE.format("duplicate"),),
    "reorder": (*BROKEN_ORDER, LOST_START),
    "restart_block": (SEQUENCE.format("restart"),),
    # the next slices may contradict the block before it arrives
    "seal_without_last": ("reconcile_mismatch_total", "feed_divergence_total"),
    "kill_builder": ("feed_reconnects_total", "upstream_reconnects_total"),
    "kill_follower": (),
}


@dataclass(slots=True)
class Load:
    """What was submitted. ``accepted`` are the hashes that the builder took."""

    accepted: list[str] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    stop: Event = field(default_factory=Event)


@dataclass(slots=True)
class Tally:
    """How often a fault was made, how often it showed, and which metrics it moved by how much."""

    made: int = 0
    shown: int = 0
    moved: dict[str, float] = field(default_factory=dict)


class Soak:
    """Two nodes in processes of their own, with their chains under ``home``."""

    def __init__(self, home: Path, options: argparse.Namespace) -> None:
        self.options = options
        interval = str(options.slice_interval)
        times = ("--block-time", str(options.block_time), "--slice-interval", interval)
        files = ("--datadir", str(home / "builder"))
        self.builder = fastevm_node(
            *times, *files, module=("fastevm.bench.node.faulty_node",), log=home / "builder.err"
        )
        self.builder.start()
        files = ("--datadir", str(home / "follower"))
        source = ("--upstream-url", self.builder.url, "--preconf-url", self.builder.feed)
        self.follower = fastevm_node(*times, *files, *source, log=home / "follower.err")
        self.follower.start()
        self.load = Load()
        self.tallies: dict[str, Tally] = {name: Tally() for name in SIGNS}

    def run(self) -> dict[str, Any]:
        """Make faults for a while, then let both come to rest and compare."""
        logger = self._deploy()
        self._followed()
        memory = {"start": self._memory()}
        sender = Thread(target=self._send, args=(logger,), daemon=True)
        sender.start()
        until = time.monotonic() + self.options.seconds
        self._make_faults(until)
        self.load.stop.set()
        sender.join(DRAIN_SECONDS)
        memory["end"] = self._memory()
        missing = self._drain()
        return {
            "seconds": self.options.seconds,
            "faults": {name: _shown(tally) for name, tally in self.tallies.items() if tally.made},
            "transactions": len(self.load.accepted),
            "refused": self.load.refused,
            "never_in_a_block": len(missing),
            "memory_mib": memory,
            "follower": _counters(self.follower.metrics()),
            "builder": _counters(self.builder.metrics()),
            **self._compare(),
        }

    def close(self) -> None:
        """End both nodes."""
        self.load.stop.set()
        self.follower.stop()
        self.builder.stop()

    # --- load -------------------------------------------------------------------------------------

    def _send(self, logger: bytes) -> None:
        """Transfers and calls that log, in turn, without drift; nonces are asked for again after
        every refusal and every restart.
        """
        accounts = dev_accounts(SENDERS)
        nonces: dict[int, int] = {}
        started, rate = time.monotonic(), self.options.rate
        for number in itertools.count():
            if self.load.stop.wait(max(0.0, started + number / rate - time.monotonic())):
                return
            who = number % SENDERS
            try:
                if who not in nonces:
                    nonces[who] = self._next_nonce(accounts[who].address)
                raw = _signed(accounts[who].private_key, nonces[who], number, logger)
                self.load.accepted.append(
                    self.builder.ask("eth_sendRawTransaction", "0x" + raw.hex())
                )
                nonces[who] += 1
            except RpcRefusal as error:
                text = str(error)
                self.load.refused[text] = self.load.refused.get(text, 0) + 1
                nonces.pop(who, None)
            except RpcUnreachable:  # it is being started again
                nonces.clear()
                started += RETRY_SECONDS
                self.load.stop.wait(RETRY_SECONDS)

    def _next_nonce(self, address: bytes) -> int:
        """The nonce after all that is pre-confirmed and all that waits."""
        name = "0x" + address.hex()
        nonce = int(self.builder.ask("eth_getTransactionCount", name, "pending"), 16)
        waiting = self.builder.ask("txpool_contentFrom", name)
        return max([nonce, *(int(one) + 1 for one in waiting["pending"])])

    def _deploy(self) -> bytes:
        raw = _signed(dev_accounts(1)[0].private_key, 0, 0, None)
        tx_hash = self.builder.ask("eth_sendRawTransaction", "0x" + raw.hex())
        receipt = wait_for(
            lambda: _sealed(self.builder, tx_hash), DRAIN_SECONDS, "nothing is sealed"
        )
        return bytes.fromhex(receipt["contractAddress"][2:])

    # --- faults -----------------------------------------------------------------------------------

    def _make_faults(self, until: float) -> None:
        """Each kind in turn until the time is over, but every one at least once."""
        kinds = [name for name in SIGNS if not name.startswith("kill")]
        kills = itertools.cycle(("kill_builder", "kill_follower"))
        next_kill = time.monotonic() + self.options.kill_every
        for kind in itertools.cycle(kinds):
            if time.monotonic() >= until and all(self.tallies[name].made for name in kinds):
                return
            if self.options.kill_every and time.monotonic() >= next_kill:
                self._kill(next(kills))
                next_kill = time.monotonic() + self.options.kill_every
            self._switch(kind)
            time.sleep(self.options.pause)

    def _switch(self, kind: str) -> None:
        """Make one fault and note how it changes the follower's metrics."""
        made = f'faults_total{{kind="{kind}"}}'
        before, count = self.follower.metrics(), self.builder.metrics().get(made, 0)
        interval = self.options.slice_interval / 1000
        value: Any = True if kind in BLOCK_FAULTS else 1
        line = json.dumps({kind: 1.5 * interval if kind == "delay" else value})
        self.builder.standard_input.write(line.encode() + b"\n")
        self.builder.standard_input.flush()
        wait_for(
            lambda: self.builder.metrics().get(made, 0) > count,
            DRAIN_SECONDS,
            f"no {kind} was made",
        )
        self._look(kind, before)

    def _look(self, kind: str, before: dict[str, float]) -> None:
        tally, signs = self.tallies[kind], SIGNS[kind]
        tally.made += 1

        def grown() -> dict[str, float]:
            after = self.follower.metrics()
            return {
                name: after[name] - before.get(name, 0)
                for name in signs
                if after.get(name, 0) > before.get(name, 0)
            }

        deadline = time.monotonic() + SETTLE_SECONDS + self.options.block_time / 1000
        while not (moved := grown()) and signs and time.monotonic() < deadline:
            time.sleep(0.05)
        tally.shown += bool(moved) or not signs
        for name, amount in moved.items():
            tally.moved[name] = tally.moved.get(name, 0) + amount
        self._followed()

    def _kill(self, kind: str) -> None:
        before = self.follower.metrics()
        target = self.builder if kind == "kill_builder" else self.follower
        target.kill()
        target.start()
        self._look(kind, before)

    def _followed(self) -> None:
        """Wait until the follower pre-confirms again."""
        wait_for(
            lambda: self.follower.metrics().get("pending_served"),
            DRAIN_SECONDS,
            "the follower does not come back",
        )

    # --- the end ----------------------------------------------------------------------------------

    def _drain(self) -> list[str]:
        """Wait until all is sealed; the transactions that are in no block."""
        missing = list(self.load.accepted)

        def all_sealed() -> bool:
            missing[:] = [one for one in missing if _sealed(self.builder, one) is None]
            return not missing

        try:
            wait_for(all_sealed, DRAIN_SECONDS, "some transactions are in no block")
        except TimeoutError:
            return missing
        return []

    def _compare(self) -> dict[str, Any]:
        """Heads, blocks, receipts and logs of both, from the first block on."""
        last = _number(self.builder)
        wait_for(lambda: _number(self.follower) >= last, DRAIN_SECONDS, "it stays behind")
        different, logs = [], 0
        for number in range(last + 1):
            mine, theirs = (_content(node, number) for node in (self.builder, self.follower))
            logs += len(mine["logs"])
            if mine != theirs:
                different.append(number)
        return {"blocks": last, "logs": logs, "different_blocks": different}

    def _memory(self) -> dict[str, float]:
        both = {"builder": self.builder, "follower": self.follower}
        return {name: round(node.memory() / 2**20, 1) for name, node in both.items()}


def _signed(key: bytes, nonce: int, number: int, logger: bytes | None) -> bytes:
    """A transfer of one wei, every other time a call that logs; without logger its creation."""
    target = RECEIVER if number % 2 else logger
    made = Transaction.build(
        to=target,
        value=number % 2,
        data=b"" if logger else LOGGER_INIT,
        gas_limit=100_000,
        chain_id=CHAIN_ID,
        nonce=nonce,
        max_fee_per_gas=10**11,
        max_priority_fee_per_gas=10**9,
    )
    return made.sign(key).raw


def _sealed(node: NodeProcess, tx_hash: str) -> Any:
    """The receipt in a canonical block; None while there is none."""
    receipt = node.ask("eth_getTransactionReceipt", tx_hash)
    return receipt if receipt and int(receipt["blockHash"], 16) else None


def _number(node: NodeProcess) -> int:
    return int(node.ask("eth_blockNumber"), 16)


def _content(node: NodeProcess, number: int) -> dict[str, Any]:
    span = {"fromBlock": hex(number), "toBlock": hex(number)}
    return {
        "block": node.ask("eth_getBlockByNumber", hex(number), True),
        "receipts": node.ask("eth_getBlockReceipts", hex(number)),
        "logs": node.ask("eth_getLogs", span),
    }


def _shown(tally: Tally) -> dict[str, Any]:
    return {"made": tally.made, "shown": tally.shown, **tally.moved}


def _counters(metrics: dict[str, float]) -> dict[str, float]:
    """The counters of following and building that moved."""
    kinds = ("feed_", "reconcile_", "pending_", "promises_", "upstream_", "slice", "datadir_")
    return {
        name: value
        for name, value in sorted(metrics.items())
        if name.startswith(kinds) and value and "_bucket" not in name
    }


def failures(found: dict[str, Any]) -> list[str]:
    """What is wrong in a report, in words."""
    wrong = []
    if found["different_blocks"]:
        wrong.append(f"{len(found['different_blocks'])} blocks differ")
    if found["never_in_a_block"]:
        wrong.append(f"{found['never_in_a_block']} accepted transactions are in no block")
    for kind, tally in found["faults"].items():
        if tally["shown"] < tally["made"]:
            wrong.append(f"{kind}: {tally['made']} made, {tally['shown']} seen in the metrics")
    return wrong


def main() -> int:
    """Run and print JSON; 1 when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.bench.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="of faults (%(default)s)")
    parser.add_argument("--rate", type=float, default=50.0, help="transactions per second (50)")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between faults (0.5)")
    parser.add_argument(
        "--kill-every", type=float, default=45.0, help="seconds between kills; 0: none (45)"
    )
    parser.add_argument("--block-time", type=int, default=2000, metavar="MS")
    parser.add_argument("--slice-interval", type=int, default=200, metavar="MS")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fastevm-soak-") as home:
        soak = Soak(Path(home), options)
        try:
            found = soak.run()
        finally:
            soak.close()
    wrong = failures(found)
    print(json.dumps(found | {"wrong": wrong}, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
