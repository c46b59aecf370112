"""Injects every fault into a builder and its follower, then compares both nodes.

The builder gets transactions at a steady rate and publishes slices, which the follower executes.
The faults: slices are dropped, delayed, repeated or reordered. Blocks are restarted, or sealed
without the last pre-confirmed transactions. The link is cut or silent, disks are full for a while,
and nodes are killed and restarted. Meanwhile hostile clients attack both nodes, and both nodes'
answers to the same requests are compared.

The exit status is 0 if all of the following hold at the end, and 1 otherwise:

- Both nodes have the same heads, receipts and logs.
- Every accepted transaction is in a block.
- The metrics show every kind of fault.
- No connection has outlived the node's time limits.
- Neither memory nor descriptors have grown.
"""

import argparse
import itertools
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPException
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.error import HTTPError

from fastevm.bench.cadence import CHAIN_ID, SENDERS
from fastevm.bench.node.launch import HOST, LoopThread, NodeProcess, fastevm_node, wait_for
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node.dev_accounts import dev_accounts
from fastevm.rpc.command import block_time, milliseconds
from fastevm.rpc_client.messages import RpcRefusal, RpcUnreachable
from fastevm.rpc_types.feed_formats import FeedFormat
from tests.faults import memory_growth
from tests.faults.compared_reads import ComparedReads, content_of, number_of
from tests.faults.cut_link import CutLink
from tests.faults.faulty_node import BLOCK_FAULTS
from tests.faults.full_disk import full_disk
from tests.faults.hostile_clients import HostileClients

DRAIN_SECONDS = 60.0
SETTLE_SECONDS = 1.0  # seconds that the follower's metrics may take to show a fault
LOOK_SECONDS = 0.2  # seconds between two reads of the metrics
RETRY_SECONDS = 0.2
CUT_SECONDS = 2.0
# Longer than 5 s, after which a follower considers a feed dead.
SILENT_SECONDS = 8.0
FULL_BLOCKS = 3  # duration of a full disk, in blocks
READY_SECONDS = 10.0
SAMPLES = 1_000  # memory samples in a long run
SAMPLE_SECONDS = 1.0  # minimum seconds between two memory samples
METRICS_EVERY = 10  # every 10th memory sample also contains the node's metrics
# Nodes are killed in this share of the run. Afterwards they run long enough to show leaks.
KILLED_SHARE = 0.6
# Small enough to be reached within minutes, so that the expected growth of memory ends early.
KEPT_STATES = 256
RECEIPTS_AT_ONCE = 100
RECEIVER = b"\xb0" * 20
DEPOSITOR = "0x" + "d0" * 20
DEPOSIT_EVERY = 7  # on OP-stack chains, every 7th transaction is a deposit
# init code of a contract that executes PUSH0 PUSH0 LOG0
LOGGER_INIT = bytes.fromhex("635f5fa0005f526004601cf3")

SEQUENCE = 'feed_sequence_total{{verdict="{}"}}'
BROKEN_ORDER = tuple(
    SEQUENCE.format(name) for name in ("gap", "predecessor_mismatch", "invalid_block")
)
# Feed formats whose messages do not name the previous message show the loss of a block's last slice
# only by these metrics.
UNNAMED_LOSS = ("feed_divergence_total", "reconcile_mismatch_total", "feed_early_total")
LOST_START = SEQUENCE.format("missing_first")
SERVING = ("pending_served", "feed_connected", "upstream_connected")
RECONNECTS = ("feed_reconnects_total", "upstream_reconnects_total")
# Fault -> metrics, of which at least one must grow. The metrics are the builder's for its full
# disk, and the follower's for all other faults.
SIGNS: dict[str, tuple[str, ...]] = {
    "drop": (*BROKEN_ORDER, LOST_START),
    "delay": (*BROKEN_ORDER, "slice_gaps_total"),
    "duplicate": (SEQUENCE.format("duplicate"),),
    "reorder": (*BROKEN_ORDER, LOST_START),
    "restart_block": (SEQUENCE.format("restart"),),
    # Slices of the next block may reveal the difference before the sealed block arrives.
    "seal_without_last": ("reconcile_mismatch_total", "feed_divergence_total"),
    "cut_link": RECONNECTS,
    "silent_link": RECONNECTS,
    "full_disk_builder": ("slice_failures_total",),
    "full_disk_follower": ("upstream_reconnects_total",),
    "kill_builder": RECONNECTS,
    "kill_follower": (),
}


@dataclass(slots=True)
class Load:
    """The submitted transactions. ``accepted``: hashes that the builder returned.

    ``transfers``: number of accepted transfers to RECEIVER. ``unknown``: number of transactions
    submitted without an answer.
    """

    accepted: list[str] = field(default_factory=list)
    transfers: int = 0
    unknown: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    stop: Event = field(default_factory=Event)


@dataclass(slots=True)
class Tally:
    """How often a fault was injected and shown by metrics, and by how much the metrics grew."""

    made: int = 0
    shown: int = 0
    moved: dict[str, float] = field(default_factory=dict)


class Soak:
    """Runs a builder and a follower in separate processes. ``homes``: their data directories."""

    def __init__(self, homes: tuple[Path, Path], options: argparse.Namespace) -> None:
        self.options = options
        self.homes = dict(zip(("builder", "follower"), homes, strict=True))
        logs = {name: home / "node.err" for name, home in self.homes.items()}
        common = _common_arguments(options)
        files = ("--datadir", str(self.homes["builder"] / "chain"))
        feed = ["--feed-format", options.feed_format, *["--feed-brotli"] * options.feed_brotli]
        program = ("tests.faults.faulty_node",)
        self.builder = fastevm_node(*common, *files, *feed, module=program, log=logs["builder"])
        self.builder.start()
        self.clients = LoopThread()
        self.link = CutLink(self.clients, self.builder.port)
        files = ("--datadir", str(self.homes["follower"] / "chain"))
        slices = f"ws://{HOST}:{self.link.port}/feed"
        source = ("--upstream-url", f"http://{HOST}:{self.link.port}", "--preconf-url", slices)
        self.follower = fastevm_node(*common, *files, *source, log=logs["follower"])
        self.follower.start()
        self.nodes = {"builder": self.builder, "follower": self.follower}
        self.load = Load()
        self.reads = ComparedReads(tuple(self.nodes.values()), options.reads)
        ports = [node.port for node in self.nodes.values()]
        self.hostile = HostileClients(self.clients, ports, rate=options.hostile_rate)
        self.uses: dict[str, list[memory_growth.Use]] = {name: [] for name in self.nodes}
        self.tallies: dict[str, Tally] = {name: Tally() for name in SIGNS}
        self.complaints: list[str] = []

    def run(self) -> dict[str, Any]:
        """Injects faults for the configured time, waits for all blocks, and compares the nodes."""
        logger = self._deploy()
        self._followed()
        self._under_load(logger, time.monotonic() + self.options.seconds)
        missing = self._drain()
        return {
            "seconds": self.options.seconds,
            "faults": {name: _shown(tally) for name, tally in self.tallies.items() if tally.made},
            "complaints": self.complaints,
            "transactions": len(self.load.accepted),
            "refused": self.load.refused,
            "never_in_a_block": len(missing),
            "balance": self._check_balance(),
            "attacks": dict(self.hostile.tried),
            "attacks_not_ended": dict(self.hostile.not_ended),
            "reads": {"compared": self.reads.compared, "unanswered": self.reads.unanswered},
            "wrong_reads": self.reads.wrong,
            "growth": {name: memory_growth.report(uses) for name, uses in self.uses.items()},
            "follower_metrics": _counters(self.follower.metrics()),
            "builder_metrics": _counters(self.builder.metrics()),
            **self._compare(),
        }

    def close(self) -> None:
        """Ends both nodes."""
        self.load.stop.set()
        self.reads.stop.set()
        self.link.close()
        self.clients.close()
        self.follower.stop()
        self.builder.stop()

    def _under_load(self, logger: bytes, until: float) -> None:
        """Injects faults until a time. Meanwhile other threads send transactions and read."""
        threads = [
            Thread(target=self._send, args=(logger,), daemon=True),
            Thread(target=self._watch_memory, daemon=True),
        ]
        for thread in threads:
            thread.start()
        if self.options.reads:
            threads.append(self.reads.start())
        if self.options.hostile_rate:
            self.hostile.start()
        self._make_faults(until)
        self.load.stop.set()
        self.reads.stop.set()
        for thread in threads:
            thread.join(DRAIN_SECONDS)
        self.hostile.stop()

    # --- load -------------------------------------------------------------------------------------

    def _send(self, logger: bytes) -> None:
        """Sends transfers and calls to the logger at a steady rate.

        After an error it reads nonces again.
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
                self.load.transfers += number % 2
                if self.options.op_fork and number % DEPOSIT_EVERY == 0:
                    self._deposit()
            except RpcRefusal as error:
                text = str(error)
                self.load.refused[text] = self.load.refused.get(text, 0) + 1
                nonces.pop(who, None)
            except RpcUnreachable:  # the node restarts
                nonces.clear()
                self.load.unknown += 1
                started += RETRY_SECONDS
                self.load.stop.wait(RETRY_SECONDS)

    def _deposit(self) -> None:
        """Makes an L1 deposit of 1 wei for the receiver."""
        wanted = {"from": DEPOSITOR, "to": "0x" + RECEIVER.hex(), "mint": "0x1", "value": "0x1"}
        self.load.accepted.append(self.builder.ask("fastevm_deposit", wanted))
        self.load.transfers += 1

    def _next_nonce(self, address: bytes) -> int:
        """Returns the nonce that follows all pre-confirmed and pooled transactions."""
        name = "0x" + address.hex()
        nonce = int(self.builder.ask("eth_getTransactionCount", name, "pending"), 16)
        waiting = self.builder.ask("txpool_contentFrom", name)
        return max([nonce, *(int(item) + 1 for item in waiting["pending"])])

    def _deploy(self) -> bytes:
        raw = _signed(dev_accounts(1)[0].private_key, 0, 0, None)
        tx_hash = self.builder.ask("eth_sendRawTransaction", "0x" + raw.hex())
        receipt = wait_for(
            lambda: _sealed(self.builder, tx_hash), DRAIN_SECONDS, "nothing is sealed"
        )
        return bytes.fromhex(receipt["contractAddress"][2:])

    # --- faults -----------------------------------------------------------------------------------

    def _make_faults(self, until: float) -> None:
        """Injects each kind of fault in turn until the time is over, and each at least once."""
        kinds = [name for name in SIGNS if not name.startswith("kill")]
        kills = itertools.cycle(("kill_builder", "kill_follower"))
        next_kill = time.monotonic() + self.options.kill_every
        last_kill = time.monotonic() + KILLED_SHARE * self.options.seconds
        for kind in itertools.cycle(kinds):
            if time.monotonic() >= until and all(self.tallies[name].made for name in kinds):
                return
            if self.options.kill_every and next_kill <= time.monotonic() <= last_kill:
                self._fault(next(kills))
                next_kill = time.monotonic() + self.options.kill_every
            self._fault(kind)
            time.sleep(self.options.pause)

    def _fault(self, kind: str) -> None:
        """Injects a fault, and records which metrics grew. Records errors as complaints."""
        watched = self.builder if kind == "full_disk_builder" else self.follower
        self.tallies[kind].made += 1
        makers: dict[str, Callable[[], None]] = {
            "cut_link": self._cut,
            "silent_link": self._silence,
            "full_disk_builder": partial(self._fill_disk, "builder"),
            "full_disk_follower": partial(self._fill_disk, "follower"),
            "kill_builder": partial(_restart, self.builder),
            "kill_follower": partial(_restart, self.follower),
        }
        try:
            before = watched.metrics()
            makers.get(kind, partial(self._switch, kind))()
            self._look(kind, watched, before)
            self._followed()
        except (TimeoutError, RuntimeError, OSError) as error:
            self._complain(f"{kind}: {error}")

    def _complain(self, text: str) -> None:
        self.complaints.append(text)
        print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)

    def _switch(self, kind: str) -> None:
        """Injects a fault into the feed or the block, and waits until it has happened."""
        made = f'faults_total{{kind="{kind}"}}'
        count = self.builder.metrics().get(made, 0)
        interval = self.options.slice_interval / 1000
        value: Any = True if kind in BLOCK_FAULTS else 1
        line = json.dumps({kind: 1.5 * interval if kind == "delay" else value})
        self.builder.standard_input.write(line.encode() + b"\n")
        self.builder.standard_input.flush()

        def was_made() -> bool:
            time.sleep(LOOK_SECONDS / 4)
            return self.builder.metrics().get(made, 0) > count

        wait_for(was_made, DRAIN_SECONDS, f"no {kind} was made")

    def _cut(self) -> None:
        """Resets the connections between the nodes."""
        self.link.cut()
        time.sleep(CUT_SECONDS)
        self.link.mend()

    def _silence(self) -> None:
        """Makes the link between the nodes silent for `SILENT_SECONDS`."""
        self.link.silence()
        time.sleep(SILENT_SECONDS)
        self.link.mend()

    def _fill_disk(self, name: str) -> None:
        """Keeps a node's disk full for a few blocks.

        The node must answer meanwhile, and be ready again afterwards.
        """
        node, is_own = self.nodes[name], self.options.homes is not None
        directory = self.homes[name] if is_own else self.homes[name] / "chain"
        with full_disk(node.pid, directory, is_own=is_own):
            # A follower may stay ready: the free rest of a file's last page may be enough for its
            # blocks.
            if name == "builder":
                text = "a builder without a disk calls itself ready"
                wait_for(lambda: not _is_ready(node), READY_SECONDS, text)
            time.sleep(FULL_BLOCKS * self.options.block_time / 1000)
            number_of(node)
        wait_for(partial(_is_ready, node), READY_SECONDS, f"the {name} is not ready again")

    def _look(self, kind: str, node: NodeProcess, before: dict[str, float]) -> None:
        """Waits until one of the metrics that show the fault has grown."""
        tally, signs = self.tallies[kind], SIGNS[kind]
        if self.options.feed_format != FeedFormat.FASTEVM.value and set(signs) & set(BROKEN_ORDER):
            signs += UNNAMED_LOSS

        def grown() -> dict[str, float]:
            after = node.metrics()
            return {
                name: after[name] - before.get(name, 0)
                for name in signs
                if after.get(name, 0) > before.get(name, 0)
            }

        deadline = time.monotonic() + SETTLE_SECONDS + self.options.block_time / 1000
        while not (moved := grown()) and signs and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        tally.shown += bool(moved) or not signs
        for name, amount in moved.items():
            tally.moved[name] = tally.moved.get(name, 0) + amount

    def _followed(self) -> None:
        """Waits until the follower serves pending state and is connected to feed and upstream."""

        def serves() -> bool:
            time.sleep(LOOK_SECONDS / 4)
            found = self.follower.metrics()
            return all(found.get(name) for name in SERVING)

        wait_for(serves, DRAIN_SECONDS, "the follower does not come back")

    def _watch_memory(self) -> None:
        """Samples the memory of both nodes at regular intervals."""
        pause = max(SAMPLE_SECONDS, self.options.seconds / SAMPLES)
        with ExitStack() as stack:
            path = self.options.samples
            kept = None if path is None else stack.enter_context(path.open("w"))
            for number in itertools.count():
                if self.load.stop.wait(pause):
                    return
                for name, node in self.nodes.items():
                    with suppress(OSError, HTTPException, AssertionError):  # the node restarts
                        self.uses[name].append(memory_growth.use_of(node.pid))
                        if kept is not None:
                            kept.write(self._line(name, is_full=number % METRICS_EVERY == 0))
                            kept.flush()

    def _line(self, name: str, *, is_full: bool) -> str:
        """Returns a node's newest sample as a line of the samples file.

        ``is_full``: adds the metrics.
        """
        line: dict[str, Any] = {"time": time.time(), "node": name}
        line |= self.uses[name][-1]._asdict()
        if is_full:
            numbers = self.nodes[name].metrics().items()
            line["metrics"] = {key: value for key, value in numbers if "_bucket" not in key}
        return json.dumps(line) + "\n"

    # --- the end ----------------------------------------------------------------------------------

    def _drain(self) -> list[str]:
        """Waits until all transactions are sealed.

        Returns the transactions that are in no block.
        """
        missing = list(self.load.accepted)

        def all_sealed() -> bool:
            missing[:] = _unsealed(self.builder, missing)
            return not missing

        try:
            wait_for(all_sealed, DRAIN_SECONDS, "some transactions are in no block")
        except TimeoutError:
            return missing
        return []

    def _check_balance(self) -> dict[str, int]:
        """Returns the receiver's balance, and its least and greatest correct value, in wei."""
        balance = int(self.builder.ask("eth_getBalance", "0x" + RECEIVER.hex(), "latest"), 16)
        least = self.load.transfers
        return {"balance": balance, "least": least, "most": least + self.load.unknown}

    def _compare(self) -> dict[str, Any]:
        """Compares the heads, and all blocks with receipts and logs."""
        last = number_of(self.builder)
        wait_for(lambda: number_of(self.follower) >= last, DRAIN_SECONDS, "it stays behind")
        different, logs = [], 0
        for number in range(last + 1):
            mine, theirs = (content_of(node, number) for node in (self.builder, self.follower))
            logs += len(mine["logs"])
            if mine != theirs:
                different.append(number)
        return {"blocks": last, "logs": logs, "different_blocks": different}


def _common_arguments(options: argparse.Namespace) -> list[str]:
    """Returns the command-line options that both nodes have in common."""
    times = ["--block-time", f"{options.block_time}ms"]
    times += ["--slice-interval", str(options.slice_interval), "--states", str(KEPT_STATES)]
    return [*times, *(["--op", "--op-fork", options.op_fork] if options.op_fork else [])]


def _signed(key: bytes, nonce: int, number: int, logger: bytes | None) -> bytes:
    """Returns a signed transfer of 1 wei or, every other time, a call to the logger.

    If ``logger`` is None, the transaction deploys the logger instead.
    """
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
    """Returns the transaction's receipt in a canonical block, or None if there is none."""
    receipt = node.ask("eth_getTransactionReceipt", tx_hash)
    return receipt if receipt and int(receipt["blockHash"], 16) else None


def _unsealed(node: NodeProcess, hashes: list[str]) -> list[str]:
    """Returns the hashes of transactions that are in no canonical block."""
    found = []
    with node.client() as client:
        for start in range(0, len(hashes), RECEIPTS_AT_ONCE):
            part = hashes[start : start + RECEIPTS_AT_ONCE]
            answers = client.batch([("eth_getTransactionReceipt", [item]) for item in part])
            for name, receipt in zip(part, answers, strict=True):
                if not receipt or not int(receipt["blockHash"], 16):
                    found.append(name)
    return found


def _is_ready(node: NodeProcess) -> bool:
    try:
        with urllib.request.urlopen(node.url + "/readyz", timeout=READY_SECONDS):
            return True
    except HTTPError:
        return False


def _restart(node: NodeProcess) -> None:
    node.kill()
    node.start()


def _shown(tally: Tally) -> dict[str, Any]:
    return {"made": tally.made, "shown": tally.shown, **tally.moved}


def _counters(metrics: dict[str, float]) -> dict[str, float]:
    """Returns the nonzero metrics about following and building that count events."""
    kinds = (
        "feed_", "reconcile_", "pending_", "promises_", "upstream_", "slice", "datadir_",
        "connections_",
    )  # fmt: skip
    return {
        name: value
        for name, value in sorted(metrics.items())
        if name.startswith(kinds) and value and "_bucket" not in name
    }


def failures(found: dict[str, Any]) -> list[str]:
    """Returns the failures in a report, as sentences."""
    wrong = []
    if found["different_blocks"]:
        wrong.append(f"{len(found['different_blocks'])} blocks differ")
    if found["never_in_a_block"]:
        wrong.append(f"{found['never_in_a_block']} accepted transactions are in no block")
    wrong += found["complaints"]
    wrong += [f"the answers differ: {item}" for item in found["wrong_reads"]]
    balance = found["balance"]
    if not balance["least"] <= balance["balance"] <= balance["most"]:
        wrong.append("the receiver has {balance} wei, not {least} to {most}".format(**balance))
    for kind, count in found["attacks_not_ended"].items():
        wrong.append(f"{kind}: {count} connections were not ended")
    for name, report in found["growth"].items():
        wrong += [f"{name}: {text}" for text in report["wrong"]]
    for kind, tally in found["faults"].items():
        if tally["shown"] < tally["made"]:
            wrong.append(f"{kind}: {tally['made']} made, {tally['shown']} seen in the metrics")
    return wrong


def main() -> int:
    """Runs the soak and prints the report as JSON. Returns 1 if there was a failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="of faults (%(default)s)")
    parser.add_argument("--rate", type=float, default=50.0, help="transactions per second (50)")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between faults (0.5)")
    parser.add_argument(
        "--kill-every", type=float, default=45.0, help="seconds between kills; 0: none (45)"
    )
    parser.add_argument("--hostile-rate", type=float, default=5.0, help="attacks per second (5)")
    parser.add_argument("--reads", type=float, default=5.0, help="compared reads per second (5)")
    parser.add_argument(
        "--homes",
        type=Path,
        nargs=2,
        metavar=("BUILDER", "FOLLOWER"),
        help="two small file systems, each filled for a while so that its node's disk is full",
    )
    parser.add_argument(
        "--samples",
        type=Path,
        metavar="FILE",
        help="what both nodes used, one JSON object a line, about every minute with their metrics",
    )
    parser.add_argument("--op-fork", metavar="NAME", help="a chain of the OP stack, with deposits")
    parser.add_argument("--feed-format", default=FeedFormat.FASTEVM.value, metavar="NAME")
    parser.add_argument("--feed-brotli", action="store_true", help="a feed packed with Brotli")
    parser.add_argument("--block-time", type=block_time, default=2000, metavar="TIME")
    parser.add_argument("--slice-interval", type=milliseconds, default=200, metavar="TIME")
    options = parser.parse_args()
    with ExitStack() as stack:
        homes = [
            Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fastevm-soak-", dir=home)))
            for home in options.homes or (None, None)
        ]
        soak = Soak((homes[0], homes[1]), options)
        try:
            found = soak.run()
        finally:
            soak.close()
    wrong = failures(found)
    print(json.dumps(found | {"wrong": wrong}, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
