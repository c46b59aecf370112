"""Tests the terminal's lines about transactions and requests, as text and as JSON."""

import argparse
import asyncio
import io
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_abi import encode

from fastevm import simulate
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.keccak import keccak256
from fastevm.errors import StateUnavailableError, UnknownBlockError
from fastevm.node import Mining, dev_node
from fastevm.rpc import contract_files
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.dispatch.dispatcher import Dispatcher
from fastevm.rpc.terminal import terminal as terminals
from fastevm.rpc.terminal.options import (
    TerminalOptions,
    add_terminal_arguments,
    terminal_options,
)
from fastevm.rpc.terminal.terminal import Terminal
from fastevm.rpc.transport.server import Listener, Server
from fastevm.rpc.view import View
from fastevm.rpc_types import console
from tests.max_wait import MAX_WAIT

REVERTS = bytes.fromhex("365f5f37365ffd")  # reverts with its input
LOGS = bytes.fromhex("365f5f375f5f365f73") + console.ADDRESS + bytes.fromhex("5afa50")
CALLS_TWICE = bytes.fromhex("365f5f37") + 2 * (
    bytes.fromhex("5f5f365f5f73") + b"\xcc" * 20 + bytes.fromhex("5af150")
)
REVERTING, LOGGING, CALLING = b"\xdd" * 20, b"\xcc" * 20, b"\xee" * 20


class Harness:
    """A node that mines each transaction immediately, and the output of its terminal."""

    def __init__(self, **options: Any) -> None:
        self.node = dev_node(accounts=1, mining=Mining.INSTANT)
        codes = ((REVERTING, REVERTS), (LOGGING, LOGS), (CALLING, CALLS_TWICE))
        self.node.development.amend({"0x" + a.hex(): {"code": code.hex()} for a, code in codes})
        self.out = io.StringIO()
        self.terminal = Terminal(TerminalOptions(**options), self.out)
        self.terminal.start(self.node)
        self.nonce = 0

    def send(self, to: bytes | None, data: bytes = b"", value: int = 0) -> str:
        """Sends a transaction. Returns its hash."""
        made = Transaction.build(
            to=to, data=data, value=value, nonce=self.nonce, gas_limit=500_000, chain_id=31_337,
            max_fee_per_gas=10**10, max_priority_fee_per_gas=1,
        )  # fmt: skip
        self.nonce += 1
        return "0x" + self.node.submit(made.sign(self.node.accounts[0].private_key).raw).hex()

    def reported(self) -> str:
        """Ends the terminal and returns its output."""
        self.terminal.stop()
        return self.out.getvalue()


def data_of(signature: str, *values: object) -> bytes:
    types = [item for item in signature.partition("(")[2][:-1].split(",") if item]
    return keccak256(signature.encode())[:4] + encode(types, values)


def test_a_payment_is_a_block_of_lines() -> None:
    harness = Harness()
    tx_hash = harness.send(b"\xb0" * 20, value=15 * 10**17)
    block = harness.node.chain.head
    assert harness.reported() == (
        f"Transaction {tx_hash} ok\n"
        "  from      0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266\n"
        "  to        0xB0B0b0B0B0B0B0b0B0B0B0b0b0b0b0B0b0b0B0B0\n"
        "  value     1.5 ETH\n"
        "  gas       21,000 of 500,000\n"
        f"Block 1 0x{block.hash.hex()} 1 transaction, 21,000 gas\n\n"
    )


def test_a_creation_tells_the_address() -> None:
    harness = Harness()
    harness.send(None, bytes.fromhex("5f5ff3"))
    assert "  created   0x5FbDB2315678afecb367f032d93F642f64180aa3\n" in harness.reported()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (data_of("Error(string)", "not today"), "not today"),
        (data_of("Panic(uint256)", 0x12), "panic 0x12: division or modulo by zero"),
        (data_of("EnforcedPause()"), "EnforcedPause()"),
        (b"", "no reason given"),
    ],
    ids=["Error", "Panic", "custom", "none"],
)
def test_a_failure_has_its_reason(data: bytes, reason: str) -> None:
    harness = Harness()
    harness.send(REVERTING, data)
    reported = harness.reported()
    assert " failed\n" in reported
    assert f"  reverted  {reason}\n" in reported


def test_the_console_is_shown_and_cannot_steer_the_terminal() -> None:
    harness = Harness()
    harness.send(LOGGING, data_of("log(string,uint256)", "a %d\x1b[2J\nb", 7))
    reported = harness.reported()
    assert "  console   a 7\\x1b[2J\n  console   b\n" in reported


@pytest.mark.parametrize("options", [{}, {"as_json": True}])
def test_the_console_is_left_out_on_request(options: dict[str, bool]) -> None:
    harness = Harness(console=False, **options)
    harness.send(LOGGING, data_of("log(string)", "a word"))
    reported = harness.reported()
    assert (
        "gas" in reported
        and "a word" not in reported.replace("log(", "")
        and "console" not in reported
    )


@pytest.mark.parametrize("coloured", [None, True, False])
def test_colours_are_those_of_a_terminal_or_as_reported(coloured: bool | None) -> None:
    harness = Harness(coloured=coloured)
    harness.send(LOGGING)
    assert ("\x1b[" in harness.reported()) is bool(coloured)


def test_console_lines_of_inner_calls_come_in_their_order_and_are_bounded() -> None:
    harness = Harness(as_json=True)
    harness.send(CALLING, data_of("log(string)", "again"))
    record = json.loads(harness.reported().splitlines()[0])
    assert record["console"] == ["again", "again"]
    assert "trace" not in record


def test_a_call_tree_is_shown_on_request() -> None:
    harness = Harness(traces=True)
    harness.send(CALLING, data_of("transfer(address,uint256)", "0x" + "b0" * 20, 5))
    lines = harness.reported().splitlines()
    calls = [line for line in lines if "] CALL " in line or "] STATICCALL " in line]
    tree = [line[4:].partition("[")[0] for line in calls]
    assert tree == ["", "├─ ", "│  └─ ", "└─ ", "   └─ "]
    assert "transfer(to: 0xB0B0" in calls[0]


def test_a_call_tree_has_events_in_their_order() -> None:
    harness = Harness(traces=True)
    emitter = b"\xab" * 20
    topic = keccak256(b"Paused(address)")
    # LOG1 of a word, a call, then LOG1 again
    emit = bytes.fromhex("7f") + topic + bytes.fromhex("60205fa1")
    called = bytes.fromhex("5f5f5f5f5f73") + LOGGING + bytes.fromhex("5af150")
    harness.node.development.amend({"0x" + emitter.hex(): {"code": (emit + called + emit).hex()}})
    harness.send(emitter)
    lines = harness.reported().splitlines()
    start = next(at for at, line in enumerate(lines) if "] CALL 0xabab" in line)
    tree = [line[4:].split("[")[0].rstrip() for line in lines[start : start + 5]]
    assert [item.split("(")[0] for item in tree] == [
        "", "├─ emit Paused", "├─", "│  └─", "└─ emit Paused",
    ]  # fmt: skip


def test_records_are_json_values_of_a_line() -> None:
    harness = Harness(as_json=True)
    tx_hash = harness.send(REVERTING, data_of("Error(string)", "why"))
    harness.terminal.listening(["http://127.0.0.1:1"])
    item, block, listening = map(json.loads, harness.reported().splitlines())
    assert (item["event"], item["hash"], item["status"], item["reason"]) == (
        "transaction", tx_hash, 0, "why",
    )  # fmt: skip
    assert (block["event"], block["transactions"]) == ("block", 1)
    assert (listening["event"], listening["url"]) == ("listening", "http://127.0.0.1:1")


def test_names_come_from_abi_files(tmp_path: Path) -> None:
    entry = {"type": "error", "name": "Late", "inputs": [{"name": "by", "type": "uint256"}]}
    (tmp_path / "One.json").write_text(json.dumps({"abi": [entry]}))
    harness = Harness(abis=(tmp_path,))
    harness.send(REVERTING, data_of("Late(uint256)", 5))
    assert "  reverted  Late(by: 5)\n" in harness.reported()


def test_what_does_not_fit_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminals, "QUEUE_LIMIT", 2)
    out = io.StringIO()
    terminal = Terminal(TerminalOptions(requests=True), out)
    for _ in range(5):  # before the terminal's thread runs
        terminal.request(b'{"method":"eth_chainId"}')
    terminal.start(dev_node(accounts=1, mining=Mining.INSTANT))
    terminal.stop()
    assert out.getvalue() == (
        "... 3 left out: more than 2 waited\neth_chainId\n  ... repeated once\n"
    )


async def test_requests_are_reported_where_they_are_asked_for() -> None:
    node = dev_node(accounts=1, mining=Mining.INSTANT)
    out = io.StringIO()
    terminal = Terminal(TerminalOptions(requests=True, params=True), out)
    server = Server(
        node, simulate, [Listener(DIALECTS["geth"], port=0)], threads=1, terminal=terminal
    )
    await server.start()
    (dispatcher,) = server._open[0].dispatchers
    body = b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}'
    assert await dispatcher.answer(body) == b'{"jsonrpc":"2.0","id":1,"result":"0x7a69"}'
    for other in (b"[%b,%b]" % (body, body), b"{", b"[1]"):
        await dispatcher.answer(other)
    await asyncio.wait_for(server.stop(), MAX_WAIT)
    assert out.getvalue() == "eth_chainId []\n  ... repeated 2 times\na body that is not JSON\n"


async def test_other_nodes_have_a_dispatcher_that_tells_nothing() -> None:
    node = dev_node(accounts=1, mining=Mining.INSTANT)
    server = Server(node, simulate, [Listener(DIALECTS["geth"], port=0)], threads=1)
    await server.start()
    assert [type(dispatcher) for dispatcher in server._open[0].dispatchers] == [Dispatcher]
    await server.stop()


async def test_calls_tell_what_they_wrote_to_the_console() -> None:
    harness = Harness()  # its terminal is not used
    out = io.StringIO()
    terminal = Terminal(TerminalOptions(), out)
    listener = Listener(DIALECTS["geth"], port=0)
    server = Server(harness.node, simulate, [listener], threads=1, terminal=terminal)
    await server.start()
    (dispatcher,) = server._open[0].dispatchers

    async def call(method: str, data: bytes, *more: object) -> None:
        asked = {"to": "0x" + LOGGING.hex(), "data": "0x" + data.hex()}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": [asked, *more]}
        await dispatcher.answer(json.dumps(body).encode())

    await call("eth_call", data_of("log(string)", "no code was seen"), "latest")
    harness.send(LOGGING, data_of("log(string)", "sent"))
    while "sent" not in out.getvalue():
        await asyncio.sleep(0.01)
    await call("eth_call", data_of("log(uint256)", 1), "latest")
    await call("eth_estimateGas", data_of("log(uint256)", 2))
    await call("eth_call", data_of("log(uint256)", 3), "what")
    await call("eth_call", data_of("transfer(address,uint256)", "0x" + "b0" * 20, 5), "latest")
    await asyncio.wait_for(server.stop(), MAX_WAIT)
    harness.terminal.stop()
    reported = out.getvalue().partition("gas\n\n")[2]
    assert reported == (
        "Call eth_call 0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC\n  console   1\n"
        "Call eth_estimateGas 0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC\n  console   2\n"
        "eth_call failed: invalid argument 1: hex string without 0x prefix\n"
        "  to        0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC\n"
        "  function  0xf82c50f1\n"
    )


@pytest.fixture
def parsers() -> Iterator[tuple[argparse.ArgumentParser, argparse.ArgumentParser]]:
    made = argparse.ArgumentParser(), argparse.ArgumentParser()
    for parser, tells in zip(made, (False, True), strict=True):
        add_terminal_arguments(parser, tells=tells)
    yield made


def test_options_say_what_is_shown(
    parsers: tuple[argparse.ArgumentParser, argparse.ArgumentParser], tmp_path: Path
) -> None:
    node, dev = parsers
    assert terminal_options(node.parse_args([])) is None
    assert terminal_options(dev.parse_args([])) == TerminalOptions()
    assert terminal_options(dev.parse_args(["-q", "-vvv"])) is None
    for parser in parsers:
        found = terminal_options(
            parser.parse_args(["-vvv", "--log-format", "json", "--abi", str(tmp_path)])
        )
        assert found == TerminalOptions(
            requests=True, params=True, traces=True, as_json=True, abis=(tmp_path,)
        )
    with pytest.raises(SystemExit):
        dev.parse_args(["--abi", str(tmp_path / "none")])


def test_nothing_is_reported_while_logging_is_off() -> None:
    harness = Harness()
    assert harness.node.development is not None
    harness.node.development.settings.set_logging(False)
    try:
        silent = harness.send(b"\xb0" * 20)
    finally:
        harness.node.development.settings.set_logging(True)
    reported = harness.send(b"\xb0" * 20)
    written = harness.reported()
    assert reported in written
    assert silent not in written


class Served:
    """A node with a listener. Its terminal writes to a buffer."""

    def __init__(self, dialect: str = "geth", **options: Any) -> None:
        self.harness = Harness()  # its terminal is not used
        self.out = io.StringIO()
        terminal = Terminal(TerminalOptions(**options), self.out)
        listener = Listener(DIALECTS[dialect], port=0)
        self.server = Server(self.harness.node, simulate, [listener], threads=1, terminal=terminal)

    async def ask(self, *calls: tuple[str, list[Any]]) -> str:
        """Sends a call or a batch, and ends server and terminal. Returns the terminal's output."""
        await self.server.start()
        (dispatcher,) = self.server._open[0].dispatchers
        bodies = [
            {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            for number, (method, params) in enumerate(calls)
        ]
        await dispatcher.answer(json.dumps(bodies[0] if len(bodies) == 1 else bodies).encode())
        await asyncio.wait_for(self.server.stop(), MAX_WAIT)
        self.harness.terminal.stop()
        return self.out.getvalue()


def call_of(to: bytes, data: bytes) -> dict[str, str]:
    return {"from": "0x" + "ab" * 20, "to": "0x" + to.hex(), "data": "0x" + data.hex()}


@pytest.mark.parametrize("dialect", ["geth", "preconf"])
async def test_a_revert_without_data_has_an_inferred_reason(dialect: str, tmp_path: Path) -> None:
    write_vault(tmp_path)
    served = Served(dialect, abis=(tmp_path,))
    served.server.contracts = contract_files.ContractFiles([tmp_path])
    served.harness.node.development.amend({"0x" + REVERTING.hex(): {"code": VAULT.hex()}})
    lines = (await served.ask(("eth_call", [call_of(REVERTING, b""), "latest"]))).splitlines()
    assert lines[0] == "eth_call failed"
    assert lines[2].startswith("  to        Vault 0xDDdD")
    assert lines[-1] == (
        "  reverted  function selector was not recognized and there's no fallback nor receive"
        " function"
    )


def test_a_transaction_that_reverts_without_data_has_an_inferred_reason(tmp_path: Path) -> None:
    write_vault(tmp_path)
    harness = Harness(abis=(tmp_path,))
    harness.node.development.amend({"0x" + REVERTING.hex(): {"code": VAULT.hex()}})
    harness.send(REVERTING)
    assert "  reverted  function selector was not recognized and" in harness.reported()


@pytest.mark.parametrize("dialect", ["geth", "preconf"])
async def test_a_failed_request_is_logged_without_an_option(dialect: str) -> None:
    failing = call_of(REVERTING, data_of("EnforcedPause()"))
    reported = await Served(dialect).ask(
        ("eth_call", [failing, "latest"]), ("eth_chainId", []), ("eth_foo", [])
    )
    assert reported.splitlines() == [
        "eth_call failed",
        "  from      0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB",
        "  to        0xDDdDddDdDdddDDddDDddDDDDdDdDDdDDdDDDDDDd",
        f"  function  0x{data_of('EnforcedPause()').hex()}",
        "  reverted  EnforcedPause()",
        "eth_foo failed: the method eth_foo does not exist/is not available",
    ]


async def test_answers_are_logged_as_json_with_time_duration_and_error() -> None:
    reported = await Served(requests=True, as_json=True).ask(("eth_chainId", []), ("eth_foo", []))
    first, second = map(json.loads, reported.splitlines())
    assert (first["event"], first["method"]) == ("request", "eth_chainId")
    assert "error" not in first
    assert "does not exist" in second["error"]
    for record in (first, second):
        assert record["seconds"] >= 0
        assert record["time"].endswith("+00:00")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"nonce": 3}, "waits: nonce 3 is above the next one of its sender, 0"),
        ({"max_fee_per_gas": 10}, "waits: fee below the base fee of "),
    ],
)
async def test_a_transaction_that_waits_is_logged_with_the_reason(
    fields: dict[str, int], reason: str
) -> None:
    served = Served()
    values = {"nonce": 0, "max_fee_per_gas": 10**10, "max_priority_fee_per_gas": 1} | fields
    made = Transaction.build(to=b"\xb0" * 20, gas_limit=21_000, chain_id=31_337, **values)
    raw = made.sign(served.harness.node.accounts[0].private_key).raw
    reported = await served.ask(("eth_sendRawTransaction", ["0x" + raw.hex()]))
    assert reported.startswith("Transaction 0x")
    assert reason in reported


async def test_an_executable_transaction_does_not_wait() -> None:
    served = Served()
    sender = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
    reported = await served.ask(("eth_sendTransaction", [{"from": sender, "to": sender}]))
    assert "Transaction " in reported
    assert "waits" not in reported


async def test_repeated_requests_are_counted() -> None:
    reported = await Served(requests=True).ask(*[("eth_blockNumber", [])] * 4, ("eth_chainId", []))
    assert reported == "eth_blockNumber\n  ... repeated 3 times\neth_chainId\n"


VAULT = REVERTS + bytes(20)  # long enough: artifact files with shorter code are ignored


def write_vault(folder: Path) -> None:
    late = {"type": "error", "name": "Late", "inputs": []}
    content = {"contractName": "Vault", "abi": [late], "deployedBytecode": "0x" + VAULT.hex()}
    (folder / "Vault.json").write_text(json.dumps(content))


def test_a_contract_of_an_artifact_file_has_its_name(tmp_path: Path) -> None:
    write_vault(tmp_path)
    harness = Harness(abis=(tmp_path,))
    harness.node.development.amend({"0x" + REVERTING.hex(): {"code": VAULT.hex()}})
    harness.send(REVERTING)
    assert "  to        Vault 0xDDdD" in harness.reported()


def test_files_of_a_compiler_are_read_while_the_node_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract_files, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(contract_files, "LOOK_SHARE", 1e9)
    harness = Harness(abis=(tmp_path,))
    harness.node.development.amend({"0x" + REVERTING.hex(): {"code": VAULT.hex()}})
    harness.send(REVERTING, data_of("Late()"))
    while "Block 1" not in harness.out.getvalue():
        time.sleep(0.01)
    write_vault(tmp_path)
    harness.send(REVERTING, data_of("Late()"))
    before, _, after = harness.reported().partition("Block 1")
    assert "Vault" not in before and f"  reverted  0x{data_of('Late()').hex()}\n" in before
    assert "  to        Vault 0xDDdD" in after and "  reverted  Late()\n" in after


@pytest.mark.parametrize(("count", "line"), [(0, "no ABI below {}"), (1, "1 contract from {}")])
def test_the_terminal_says_where_names_come_from(tmp_path: Path, count: int, line: str) -> None:
    if count:
        write_vault(tmp_path)
    harness = Harness(abis=(tmp_path,))
    harness.terminal.warm_up()
    assert harness.reported() == line.format(tmp_path) + "\n"


def returning(code: bytes) -> bytes:
    """Returns init code that creates a contract with this code."""
    return (
        bytes.fromhex(f"60{len(code):02x}600b5f3960{len(code):02x}5ff3").ljust(11, b"\x00") + code
    )


def test_created_contracts_have_names(tmp_path: Path) -> None:
    write_vault(tmp_path)
    harness = Harness(abis=(tmp_path,))
    harness.send(None, returning(VAULT))
    factory = bytes.fromhex("365f5f37365f5ff0505f365f5ff550")  # CREATE and CREATE2 of its input
    harness.node.development.amend({"0x" + "fa" * 20: {"code": factory.hex()}})
    harness.send(b"\xfa" * 20, returning(VAULT))
    lines = [line for line in harness.reported().splitlines() if line.startswith("  created")]
    assert len(lines) == 3
    assert all(line.startswith("  created   Vault 0x") for line in lines)


def test_data_for_an_account_without_code_is_pointed_out() -> None:
    harness = Harness()
    harness.send(b"\xb0" * 20, data_of("deposit()"))
    harness.send(b"\xb0" * 20)
    harness.send((4).to_bytes(20), b"a precompile")
    reported = harness.reported()
    assert reported.count("no code at this address") == 1
    assert "0xB0B0b0B0B0B0B0b0B0B0B0b0b0b0b0B0b0b0B0B0\n            no code at this" in reported


class Held:
    """Blocks the terminal's thread, so that the chain changes before the thread writes."""

    def __init__(self, harness: Harness) -> None:
        self.event = threading.Event()
        harness.terminal._hand_over(self._wait)

    def _wait(self) -> Iterator[Any]:
        self.event.wait(MAX_WAIT)
        return iter(())


def test_a_transaction_of_a_reverted_block_keeps_its_states() -> None:
    harness = Harness()
    held = Held(harness)
    development = harness.node.development
    sender = "0x" + harness.node.accounts[0].address.hex()
    development.amend({sender: {"balance": "0x0"}})
    number = development.snapshot()
    development.amend({sender: {"balance": hex(10**18)}})
    harness.send(LOGGING, data_of("log(string)", "ran"))
    assert development.revert(number)
    held.event.set()
    reported = harness.reported()
    assert " ok\n" in reported and "  console   ran\n" in reported
    assert "trace" not in reported


def test_a_block_that_is_gone_is_logged_without_its_transactions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(View, "hold", lambda view: None)
    harness = Harness()
    saved = harness.node.dump_state()
    held = Held(harness)
    harness.send(LOGGING, data_of("log(string)", "ran"))
    harness.node.load_state(saved)
    held.event.set()
    reported = harness.reported()
    assert reported.startswith("Block 1 0x") and reported.endswith(" 1 transaction, 24,156 gas\n\n")


@pytest.mark.parametrize("error", [StateUnavailableError, UnknownBlockError])
def test_a_transaction_whose_state_is_gone_is_logged_without_it(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(chain: Any, block_hash: bytes) -> None:
        raise error(block_hash.hex())

    harness = Harness()
    held = Held(harness)
    monkeypatch.setattr(View, "hold", lambda view: None)
    tx_hash = harness.send(LOGGING, data_of("log(string)", "ran"))
    monkeypatch.setattr(type(harness.node.chain), "layer_of", gone)
    held.event.set()
    reported = harness.reported()
    assert reported.startswith(f"Transaction {tx_hash} ok\n")
    assert "  trace     left out: the chain was reverted\nBlock 1 0x" in reported


async def asked(served: Served, *calls: tuple[str, list[Any]], mark: str = "") -> str:
    """Sends calls one by one, and ends server and terminal. Returns the terminal's output.

    ``mark``: prefix of the request ids.
    """
    await served.server.start()
    (dispatcher,) = served.server._open[0].dispatchers
    for number, (method, params) in enumerate(calls):
        request_id = f"{mark}{number}"
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        answer = json.loads(await dispatcher.answer(json.dumps(body).encode()))
        assert answer["id"] == request_id
    await asyncio.wait_for(served.server.stop(), MAX_WAIT)
    served.harness.terminal.stop()
    return served.out.getvalue()


async def test_the_explorers_own_calls_are_not_logged() -> None:
    probe = ("eth_call", [call_of(REVERTING, data_of("symbol()")), "latest"])
    assert await asked(Served(), probe, ("eth_foo", []), mark="explorer-") == ""
    assert "eth_call failed" in await asked(Served(), probe)
    reported = await asked(Served(requests=True), probe, mark="explorer-")
    assert reported == ""


async def test_events_without_a_transaction_have_a_line() -> None:
    served = Served()
    reported = await asked(
        served,
        ("evm_mine", []),
        ("evm_increaseTime", [3600]),
        ("anvil_mine", ["0x10", "0x3c"]),
        ("hardhat_mine", []),
        ("anvil_reset", []),
    )
    lines = reported.splitlines()
    assert lines[0].startswith("Block 1 0x") and lines[0].endswith(" empty")
    assert lines[1:3] == ["Time +3600 s", "Mined 16 blocks, 2 to 17"]
    assert lines[3].startswith("Block 18 0x")
    assert lines[4:] == ["Chain reset"]


async def test_a_block_with_transactions_is_logged_once() -> None:
    served = Served()
    sender = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
    reported = await asked(
        served,
        ("evm_setAutomine", [False]),
        ("eth_sendTransaction", [{"from": sender, "to": sender}]),
        ("evm_mine", []),
    )
    waiting, first, *_ = reported.splitlines()
    assert waiting.startswith("Transaction 0x") and waiting.endswith(" waits for evm_mine")
    assert first.endswith(" ok")
    assert reported.count("Block 1 ") == 1


async def test_parameters_follow_the_reason() -> None:
    failing = call_of(REVERTING, data_of("EnforcedPause()"))
    reported = await Served(requests=True, params=True).ask(("eth_call", [failing, "latest"]))
    lines = reported.splitlines()
    assert lines[1] == "eth_call failed"
    assert lines[-2] == "  reverted  EnforcedPause()"
    assert lines[-1].startswith("  params    [{")


@pytest.mark.parametrize("block", ["latest", "pending", None])
async def test_console_lines_of_a_call_are_those_of_its_state(block: str | None) -> None:
    """The terminal's thread repeats a call to find its console lines. The state changes before."""
    served = Served()
    counting, await_line = b"\xca" * 20, data_of("log(uint256)", 0)[:4]
    # increments slot 0 and logs the previous number
    code = bytes.fromhex("63") + await_line + bytes.fromhex(
        "60e01b5f525f546004525f5f60245f73"
    ) + console.ADDRESS + bytes.fromhex("5afa505f546001015f55")  # fmt: skip
    harness = served.harness
    harness.node.development.amend({"0x" + counting.hex(): {"code": code.hex()}})
    await served.server.start()
    (dispatcher,) = served.server._open[0].dispatchers
    harness.send(counting)
    while "Block 1 " not in served.out.getvalue():
        await asyncio.sleep(0.01)
    event = threading.Event()

    def wait() -> Iterator[Any]:
        event.wait(MAX_WAIT)
        return iter(())

    served.server.terminal._hand_over(wait)
    params = [call_of(counting, b"")] + ([] if block is None else [block])
    body = {"jsonrpc": "2.0", "id": 1, "method": "eth_estimateGas", "params": params}
    await dispatcher.answer(json.dumps(body).encode())
    harness.send(counting)
    event.set()
    await asyncio.wait_for(served.server.stop(), MAX_WAIT)
    harness.terminal.stop()
    reported = served.out.getvalue()
    assert (
        "  console   1\n"
        in reported.partition("Call eth_estimateGas")[2].partition("Transaction")[0]
    )
