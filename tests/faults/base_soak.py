"""Kills and disconnects the sequencer and the followers of a Base chain with 200 ms blocks.

A sequencer with Denim's rules builds blocks of token transfers with memos, mints, policies, new
tokens and payments. Two nodes follow the sequencer, each over a separate link. ``full`` has the
whole state in a data directory. ``partial`` fetches the state that it needs (``--fork-url ...
--follow``). The links are cut, silent, slow or closed in one direction. Each node is killed and
started again.

The exit status is 0 if all of the following hold at the end, and 1 otherwise:

- No transaction that the sequencer accepted is missing on any node.
- All nodes have the same blocks and receipts.
- Every block that a node served is still canonical.
- No follower reported itself ready while its ``pending`` was too old.
- Memory has not grown.
"""

import argparse
import itertools
import json
import secrets
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPException
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final
from urllib.error import HTTPError

from fastevm.bench.node.launch import HOST, LoopThread, NodeProcess, fastevm_node, wait_for
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.hex import hex_bytes
from fastevm.node.dev_accounts import DevAccount, dev_accounts
from fastevm.rpc.command import milliseconds
from fastevm.rpc_client.messages import RpcRefusal, RpcUnreachable
from tests.faults import memory_growth
from tests.faults.cut_link import CutLink
from tests.rpc.base.chain import BLOCKLIST, FACTORY, POLICIES, STABLECOIN, Base, call_data

CHAIN_ID: Final = 31_337
ACCOUNTS: Final = 10
# Account numbers: the owner of tokens and policies, and an account that policies often block.
OWNER, BLOCKED = 0, 6
SENDERS: Final = {"sequencer": range(7), "full": range(7, 8), "partial": range(8, 9)}
RECEIVER: Final = b"\xb0" * 20
FUNDS: Final = 10**15  # token units that each account begins with
BASE_TIME: Final = "0x4200000000000000000000000000000000000030"

SYNC_EVERY: Final = 8  # every 8th transaction waits for its receipt
RETRY_SECONDS: Final = 0.2
DRAIN_SECONDS: Final = 60.0
# seconds in which both followers must reach the head again after a fault
RECOVER_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.1
WATCH_SECONDS: Final = 0.5  # seconds between two checks of the age of ``pending``
DELAY_SECONDS: Final = 0.4
NEAR_BLOCKS: Final = 3  # a follower at most this many blocks behind the sequencer counts as synced
SAMPLES: Final = 1_800  # memory samples in a long run
# Small enough to be reached within a minute, so that the expected growth of memory ends early.
KEPT_STATES: Final = 256
# Nodes are killed in this share of the run. Afterwards they run long enough to show leaks.
KILLED_SHARE: Final = 0.6
# A process that runs for more than this share of the run is also judged alone for leaks.
LONG_LIFE: Final = 0.35
TOGETHER: Final = 100  # requests per batch

LINK_FAULTS: Final = ("cut", "silent", "slow", "half_closed")
KILLS: Final = ("kill_sequencer", "kill_full", "kill_partial")
# Texts in the log that report a fault of the node.
SIGNS: Final = (" ERROR ", "Traceback", "fetched anew", "wrong values")
NODES: Final = ("sequencer", "full", "partial")
FOLLOWERS: Final = NODES[1:]


@dataclass(slots=True)
class Sent:
    """The transactions that one thread submitted.

    ``accepted``: hashes that a node returned. ``promised``: the block hash of the receipt, for
    transactions that waited for one. ``unknown``: number of transactions submitted without an
    answer.
    """

    accepted: list[str] = field(default_factory=list)
    promised: dict[str, str] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unknown: int = 0


@dataclass(slots=True)
class Age:
    """By how many seconds a follower's ``pending`` was behind the sequencer's head."""

    looks: int = 0
    old_and_said_so: int = 0  # times when it was too old, but the node reported itself as not ready
    oldest: float = 0.0
    oldest_while_ready: float = 0.0
    wrong: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Tokens:
    """The addresses of the contracts that the load uses."""

    dollar: str
    policy: int


class Load:
    """Sends transactions to one node at a steady rate, in a separate thread."""

    def __init__(self, soak: "Soak", name: str, rate: float) -> None:
        self.soak, self.name, self.rate = soak, name, rate
        self.node, self.sequencer = soak.nodes[name], soak.nodes["sequencer"]
        self.sent = Sent()
        self.accounts = dev_accounts(ACCOUNTS)
        self.nonces: dict[int, int] = {}

    def run(self) -> None:
        """Sends until the soak ends."""
        stop, started = self.soak.stop, time.monotonic()
        for number in itertools.count():
            if stop.wait(max(0.0, started + number / self.rate - time.monotonic())):
                return
            try:
                self._send(number)
            except RpcRefusal as error:
                self.sent.refused[str(error)[:80]] += 1
                self.nonces.clear()
            except RpcUnreachable:  # the node restarts, or its link is cut
                self.sent.unknown += 1
                self.nonces.clear()
                started += RETRY_SECONDS
                stop.wait(RETRY_SECONDS)

    def _send(self, number: int) -> None:
        kind, who, fields = self._operation(number)
        account = self.accounts[who]
        if who not in self.nonces:
            self.nonces[who] = self._next_nonce(account)
        raw = hex_bytes(_signed(account, self.nonces[who], fields))
        if self.name == "sequencer" and number % SYNC_EVERY == 0:
            receipt = self.node.ask("eth_sendRawTransactionSync", raw)
            tx_hash = receipt["transactionHash"]
            self.sent.promised[tx_hash] = receipt["blockHash"]
        else:
            tx_hash = self.node.ask("eth_sendRawTransaction", raw)
        self.sent.accepted.append(tx_hash)
        self.sent.kinds[kind] += 1
        self.nonces[who] += 1

    def _next_nonce(self, account: DevAccount) -> int:
        """Returns the nonce that follows all mined and pooled transactions."""
        name = hex_bytes(account.address)
        nonce = int(self.sequencer.ask("eth_getTransactionCount", name, "latest"), 16)
        waiting = self.sequencer.ask("txpool_contentFrom", name)
        return max([nonce, *(int(item) + 1 for item in waiting["pending"])])

    def _operation(self, number: int) -> tuple[str, int, dict[str, Any]]:
        """Returns the kind of the next transaction, its sender, and its fields."""
        tokens, senders = self.soak.tokens, SENDERS[self.name]
        who = senders[number % len(senders)]
        other = hex_bytes(self.accounts[(who + 1) % ACCOUNTS].address)
        memo = number.to_bytes(32, "big")
        paid = "transferWithMemo(address,uint256,bytes32)"
        kind = number % 10 if self.name == "sequencer" else number % 2 * 5
        if kind == 5:
            return "payment", who, {"to": RECEIVER, "value": 1, "gas_limit": 21_000}
        if kind == 6:
            return "maybe blocked", BLOCKED, _call(tokens.dollar, paid, other, 1, memo)
        if kind == 7:
            accounts = [hex_bytes(self.accounts[BLOCKED].address)]
            signature = "updateBlocklist(uint64,bool,address[])"
            listed = bool(number // 10 % 2)
            return "policy", OWNER, _call(POLICIES, signature, tokens.policy, listed, accounts)
        if kind == 8:
            data = self.soak.base.creation(number // 10 % 2, secrets.token_bytes(32))
            return "creation", OWNER, _fields(FACTORY, data)
        if kind == 9:
            return "mint", OWNER, _call(tokens.dollar, "mint(address,uint256)", other, 1_000)
        return "transfer with memo", who, _call(tokens.dollar, paid, other, 1, memo)


class Soak:
    """Runs three nodes in separate processes, with their files under ``home``."""

    def __init__(self, home: Path, options: argparse.Namespace) -> None:
        self.options = options
        logs = {name: home / f"{name}.log" for name in NODES}
        chain = ("--base", "--base-fork", "denim")
        common = ("--states", str(KEPT_STATES), "--pending-max-age", f"{options.max_age}ms")
        files = {name: ("--datadir", str(home / name)) for name in ("sequencer", "full")}
        sequencer = fastevm_node(*chain, *common, *files["sequencer"], log=logs["sequencer"])
        sequencer.start()
        self.clients = LoopThread()
        self.links = {name: CutLink(self.clients, sequencer.port) for name in FOLLOWERS}
        urls = {name: f"http://{HOST}:{link.port}" for name, link in self.links.items()}
        source = ("--upstream-url", urls["full"])
        full = fastevm_node(*chain, *common, *files["full"], *source, log=logs["full"])
        source = ("--fork-url", urls["partial"], "--follow")
        followed = fastevm_node(*common, *source, log=logs["partial"])
        self.nodes = {"sequencer": sequencer, "full": full, "partial": followed}
        self.logs = logs
        self.stop, self.lock = Event(), Lock()
        self.tallies: dict[str, int] = dict.fromkeys((*LINK_FAULTS, *KILLS), 0)
        self.recovery: dict[str, float] = {}
        self.complaints: list[str] = []
        self.ages = {name: Age() for name in FOLLOWERS}
        self.uses: dict[str, list[memory_growth.Use]] = {name: [] for name in NODES}
        self.processor: Counter[str] = Counter()
        self.served: dict[int, str] = {}  # hashes of heads that the sequencer served, by number
        self.started: dict[str, int] = {}  # node -> the number of the first block that it has
        self.base = Base(sequencer.client(), "denim")

    def run(self) -> dict[str, Any]:
        """Injects faults for the configured time, waits for all blocks, and compares the nodes."""
        self.tokens = self._set_up()
        for name in FOLLOWERS:
            self.nodes[name].start()
        self._in_step("the start")
        rate = self.options.rate
        self.loads = [Load(self, name, rate if name == "sequencer" else rate / 4) for name in NODES]
        work = [*(load.run for load in self.loads), self._watch_memory]
        work += [partial(self._watch_age, name) for name in FOLLOWERS]
        threads = [Thread(target=item, daemon=True) for item in work]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        self._make_faults(begun + self.options.seconds)
        seconds = time.monotonic() - begun
        self.stop.set()
        for thread in threads:
            thread.join(DRAIN_SECONDS)
        return self._report(seconds)

    def close(self) -> None:
        """Ends all nodes."""
        self.stop.set()
        for link in self.links.values():
            link.close()
        self.base.client.close()
        self.clients.close()
        for name in reversed(NODES):
            self.nodes[name].stop()

    def _set_up(self) -> Tokens:
        """Deploys a token that all accounts hold, with a policy that may block senders."""
        base = self.base
        dollar = base.token(STABLECOIN)
        for account in dev_accounts(ACCOUNTS):
            minted = call_data("mint(address,uint256)", hex_bytes(account.address), FUNDS)
            call = {"from": base.owner, "to": dollar, "input": hex_bytes(minted)}
            base.client.call("eth_sendTransaction", call)
        policy = base.policy(BLOCKLIST)
        base.gate(dollar, "TRANSFER_SENDER", policy)
        return Tokens(dollar, policy)

    # --- faults -----------------------------------------------------------------------------------

    def _make_faults(self, until: float) -> None:
        """Injects each kind of fault in turn until the time is over, and each at least once."""
        links, kills = itertools.cycle(FOLLOWERS), itertools.cycle(KILLS)
        last_kill = time.monotonic() + KILLED_SHARE * self.options.seconds
        next_kill = time.monotonic() + self.options.kill_every
        for kind in itertools.cycle(LINK_FAULTS):
            if time.monotonic() >= until and all(self.tallies[name] for name in LINK_FAULTS):
                break
            self._fault(kind, partial(self._disturb, kind, next(links)))
            self.stop.wait(self.options.pause)
            if next_kill <= time.monotonic() < last_kill:
                self._kill(next(kills))
                next_kill = time.monotonic() + self.options.kill_every
        for name in KILLS:
            if not self.tallies[name]:
                self._kill(name)

    def _kill(self, kind: str) -> None:
        self._fault(kind, partial(self._restart, kind.removeprefix("kill_")))
        self.stop.wait(self.options.pause)

    def _fault(self, kind: str, make: Callable[[], None]) -> None:
        """Injects a fault, and waits until both followers have caught up."""
        self.tallies[kind] += 1
        try:
            make()
            began = time.monotonic()
            self._in_step(kind)
            took = time.monotonic() - began
            self.recovery[kind] = max(self.recovery.get(kind, 0.0), round(took, 2))
        except (TimeoutError, RuntimeError, OSError, RpcUnreachable, RpcRefusal) as error:
            self._complain(f"{kind}: {error}")

    def _complain(self, text: str) -> None:
        self.complaints.append(text)
        print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)

    def _disturb(self, kind: str, name: str) -> None:
        """Disturbs the link of a follower, which must then report that it is not ready.

        A slow link only delays blocks, so the follower stays ready.
        """
        link, node = self.links[name], self.nodes[name]
        makers: dict[str, Callable[[], None]] = {
            "cut": link.cut,
            "silent": link.silence,
            "slow": partial(link.delay, DELAY_SECONDS),
            "half_closed": link.half_close,
        }
        makers[kind]()
        began = time.monotonic()
        try:
            if kind != "slow":
                limit = self.options.max_age / 1000 + self.options.slack
                text = f"the follower {name} is ready without its upstream"
                wait_for(lambda: not _is_ready(node), limit, text)
                if kind == "cut" and node.metrics().get("upstream_connected", 1):
                    raise RuntimeError("the metrics do not show a cut link")
            self.stop.wait(max(0.0, began + self.options.fault_seconds - time.monotonic()))
        finally:
            link.mend()

    def _restart(self, name: str) -> None:
        node = self.nodes[name]
        with self.lock, suppress(OSError):
            self.processor[name] += processor_ticks(node.pid)
        node.kill()
        node.start()

    def _in_step(self, kind: str) -> None:
        """Waits until both followers are near the sequencer's head and ready."""
        for name in FOLLOWERS:
            text = f"the follower {name} did not come back"
            wait_for(partial(self._is_near, name), RECOVER_SECONDS, text)

    def _is_near(self, name: str) -> bool:
        time.sleep(LOOK_SECONDS)
        follower = self.nodes[name]
        behind = _number(self.nodes["sequencer"]) - _number(follower)
        return behind <= NEAR_BLOCKS and _is_ready(follower)

    # --- watches ----------------------------------------------------------------------------------

    def _watch_age(self, name: str) -> None:
        """Repeatedly checks how far a follower's ``pending`` is behind the sequencer's head."""
        age, node = self.ages[name], self.nodes[name]
        limit = self.options.max_age / 1000 + self.options.slack
        call = {"to": BASE_TIME, "data": hex_bytes(call_data("timestampMs()"))}
        while not self.stop.wait(WATCH_SECONDS):
            try:
                head = self.nodes["sequencer"].ask("eth_getBlockByNumber", "latest", False)
                is_ready = _is_ready(node)
                pending = int(node.ask("eth_call", call, "pending"), 16)
            except (OSError, HTTPException, RpcUnreachable, RpcRefusal):  # the node restarts
                continue
            with self.lock:
                self.served[int(head["number"], 16)] = head["hash"]
            behind = (int(head["timestampMs"], 16) - pending) / 1000
            age.looks += 1
            age.oldest = max(age.oldest, behind)
            if is_ready:
                age.oldest_while_ready = max(age.oldest_while_ready, behind)
            if behind > limit and is_ready:
                age.wrong.append(f"{name} was ready with a pending block {behind:.1f} s old")
            age.old_and_said_so += behind > limit and not is_ready

    def _watch_memory(self) -> None:
        """Samples the memory of all nodes at regular intervals."""
        pause = max(1.0, self.options.seconds / SAMPLES)
        with ExitStack() as stack:
            path = self.options.samples
            kept = None if path is None else stack.enter_context(path.open("w"))
            while not self.stop.wait(pause):
                for name, node in self.nodes.items():
                    with suppress(OSError, AssertionError):  # the node restarts
                        use = memory_growth.use_of(node.pid)
                        self.uses[name].append(use)
                        if kept is not None:
                            line = {"time": round(time.time(), 1), "node": name} | use._asdict()
                            kept.write(json.dumps(line) + "\n")
                            kept.flush()

    # --- the end ----------------------------------------------------------------------------------

    def _report(self, seconds: float) -> dict[str, Any]:
        accepted = [item for load in self.loads for item in load.sent.accepted]
        missing = self._drain(accepted)
        self._in_step("the end")
        last = _number(self.nodes["sequencer"])
        for name in FOLLOWERS:
            reached = partial(_has_reached, self.nodes[name], last)
            wait_for(reached, DRAIN_SECONDS, f"the follower {name} stays behind")
        # Computed first, while all states are available: the comparison below takes minutes.
        balances = self._different_balances()
        growth = {
            name: memory_growth.report(uses, long_seconds=LONG_LIFE * self.options.seconds)
            for name, uses in self.uses.items()
        }
        for name, node in self.nodes.items():
            self.processor[name] += processor_ticks(node.pid)
        metrics = {name: _counters(self.nodes[name].metrics()) for name in FOLLOWERS}
        found = {
            "seconds": round(seconds, 1),
            "blocks": last,
            "faults": {name: count for name, count in self.tallies.items() if count},
            "longest_recovery_seconds": self.recovery,
            "complaints": self.complaints,
            "transactions": len(accepted),
            "kinds": dict(sum((load.sent.kinds for load in self.loads), Counter())),
            "refused": {load.name: dict(load.sent.refused) for load in self.loads},
            "unanswered": {load.name: load.sent.unknown for load in self.loads},
            "never_in_a_block": len(missing),
            "age": {name: _age(age) for name, age in self.ages.items()},
            "growth": growth,
            "processor_share": {
                name: round(ticks / memory_growth.TICKS / seconds, 3)
                for name, ticks in self.processor.items()
            },
            "metrics": metrics,
            "log_errors": {name: _errors(path) for name, path in self.logs.items()},
            "different_balances": balances,
        }
        return found | self._compare(last, accepted)

    def _drain(self, accepted: list[str]) -> list[str]:
        """Waits until transactions are in blocks. Returns the transactions that are in no block."""
        missing = list(accepted)

        def all_sealed() -> bool:
            found = _receipts(self.nodes["sequencer"], missing)
            missing[:] = [name for name in missing if found[name] is None]
            return not missing

        with suppress(TimeoutError):
            wait_for(all_sealed, DRAIN_SECONDS, "some transactions are in no block")
        return missing

    def _compare(self, last: int, accepted: list[str]) -> dict[str, Any]:
        """Compares block hashes, receipts of the accepted transactions, and balances."""
        hashes = {name: _hashes(node, last) for name, node in self.nodes.items()}
        mine = hashes["sequencer"]
        receipts = {name: _receipts(node, accepted) for name, node in self.nodes.items()}
        promised = {key: value for load in self.loads for key, value in load.sent.promised.items()}
        theirs = receipts["sequencer"]
        different = {
            name: sum(own != other for own, other in zip(mine, hashes[name], strict=True))
            for name in FOLLOWERS
        }
        return {
            "different_blocks": different,
            "different_receipts": {
                name: sum(theirs[item] != receipts[name][item] for item in accepted)
                for name in FOLLOWERS
            },
            "reverted": sum(bool(item) and item["status"] == "0x0" for item in theirs.values()),
            "heads_served": len(self.served),
            "heads_lost": sum(mine[number] != item for number, item in self.served.items()),
            "receipts_promised": len(promised),
            "promises_broken": sum(
                theirs[item] is None or theirs[item]["blockHash"] != block
                for item, block in promised.items()
            ),
        }

    def _different_balances(self) -> int:
        """Returns how many token balances and supplies differ between nodes or do not add up.

        Reads the newest states, which are comparable because no more transactions are sent.
        """
        data = [call_data("totalSupply()")]
        data += [call_data("balanceOf(address)", item.address) for item in dev_accounts(ACCOUNTS)]
        calls = [
            ("eth_call", [{"to": self.tokens.dollar, "data": hex_bytes(item)}, "latest"])
            for item in data
        ]
        answers = []
        for node in self.nodes.values():
            with node.client() as client:
                answers.append([int(item, 16) for item in client.batch(calls)])
        supply, *balances = answers[0]
        wrong = sum(a != b for other in answers[1:] for a, b in zip(answers[0], other, strict=True))
        return wrong + (supply != sum(balances))


def _call(to: str, signature: str, *values: Any) -> dict[str, Any]:
    return _fields(to, call_data(signature, *values))


def _fields(to: str, data: bytes) -> dict[str, Any]:
    return {"to": bytes.fromhex(to[2:]), "data": data, "gas_limit": 2_000_000}


def _signed(account: DevAccount, nonce: int, fields: dict[str, Any]) -> bytes:
    prices = {"max_fee_per_gas": 10**10, "max_priority_fee_per_gas": 10**6}
    made = Transaction.build(chain_id=CHAIN_ID, nonce=nonce, **prices, **fields)
    return made.sign(account.private_key).raw


def _number(node: NodeProcess) -> int:
    return int(node.ask("eth_blockNumber"), 16)


def _has_reached(node: NodeProcess, number: int) -> bool:
    return _number(node) >= number


def _is_ready(node: NodeProcess) -> bool:
    try:
        with urllib.request.urlopen(node.url + "/readyz", timeout=RECOVER_SECONDS):
            return True
    except HTTPError:
        return False


def _hashes(node: NodeProcess, last: int) -> list[str]:
    """Returns the hashes of all blocks up to ``last``."""
    found: list[str] = []
    with node.client() as client:
        for start in range(0, last + 1, TOGETHER):
            numbers = range(start, min(last + 1, start + TOGETHER))
            calls = [("eth_getBlockByNumber", [hex(number), False]) for number in numbers]
            found += [block["hash"] for block in client.batch(calls)]
    return found


def _receipts(node: NodeProcess, hashes: list[str]) -> dict[str, Any]:
    """Returns transaction hash -> receipt in a canonical block, or None if there is none."""
    found: dict[str, Any] = {}
    with node.client() as client:
        for start in range(0, len(hashes), TOGETHER):
            part = hashes[start : start + TOGETHER]
            answers = client.batch([("eth_getTransactionReceipt", [item]) for item in part])
            found |= zip(part, answers, strict=True)
    return found


def processor_ticks(pid: int) -> int:
    """Returns the clock ticks that a process has used. Raises OSError if it has ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _age(age: Age) -> dict[str, Any]:
    return {
        "looks": age.looks,
        "oldest": round(age.oldest, 2),
        "oldest_while_ready": round(age.oldest_while_ready, 2),
        "old_and_said_so": age.old_and_said_so,
        "wrong": age.wrong,
    }


def _counters(metrics: dict[str, float]) -> dict[str, float]:
    """Returns the metrics about following that count events."""
    kinds = ("upstream_", "fork_", "local_pending_", "datadir_")
    return {
        name: value
        for name, value in sorted(metrics.items())
        if name.startswith(kinds) and value and "_bucket" not in name
    }


def _errors(log: Path) -> list[str]:
    """Returns the lines of a log that report errors, wrong values or tracebacks."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return [line for line in lines if any(sign in line for sign in SIGNS)][:20]


def failures(found: dict[str, Any]) -> list[str]:
    """Returns the failures in a report, as sentences."""
    wrong = list(found["complaints"])
    if found["never_in_a_block"]:
        wrong.append(f"{found['never_in_a_block']} accepted transactions are in no block")
    for name in FOLLOWERS:
        for what in ("blocks", "receipts"):
            if count := found[f"different_{what}"][name]:
                wrong.append(f"{name}: {count} {what} differ")
        wrong += found["age"][name]["wrong"]
    if found["heads_lost"]:
        wrong.append(f"{found['heads_lost']} blocks that were served are gone")
    if found["promises_broken"]:
        wrong.append(f"{found['promises_broken']} receipts that were sent are no longer true")
    if found["different_balances"]:
        wrong.append(f"{found['different_balances']} token balances differ")
    for name, lines in found["log_errors"].items():
        wrong += [f"{name}: {line}" for line in lines]
    for name, report in found["growth"].items():
        wrong += [f"{name}: {text}" for text in report["wrong"]]
    return wrong


def main() -> int:
    """Runs the soak and prints the report as JSON. Returns 1 if there was a failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.base_soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="of faults (%(default)s)")
    parser.add_argument("--rate", type=float, default=4.0, help="transactions per second (4)")
    parser.add_argument("--pause", type=float, default=8.0, help="seconds between faults (8)")
    parser.add_argument("--kill-every", type=float, default=60.0, help="seconds between kills (60)")
    parser.add_argument(
        "--fault-seconds", type=float, default=8.0, help="that a link is disturbed at least (8)"
    )
    parser.add_argument(
        "--max-age", type=milliseconds, default=5_000, metavar="TIME",
        help="age of pending from which on nodes must say so (5s)",
    )  # fmt: skip
    parser.add_argument(
        "--slack", type=float, default=2.0, metavar="SECONDS",
        help="beyond this age that a busy machine may add (2)",
    )  # fmt: skip
    parser.add_argument(
        "--samples", type=Path, metavar="FILE", help="memory of all nodes, a JSON object a line"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fastevm-base-soak-") as home:
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
