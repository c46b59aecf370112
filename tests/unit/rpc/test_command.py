"""Tests the node's command line: effects of options, and errors."""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from fastevm.chain import named as chains
from fastevm.core.primitives.replace import replace
from fastevm.node import Mining, dev_node
from fastevm.node.from_genesis import dev_genesis
from fastevm.node.remote.options import ForkOptions
from fastevm.rpc import command
from fastevm.rpc.limits import Limits

GENESIS_TIME = 1_700_000_000


def parsed(*options: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(options)


def node_of(*options: str) -> Any:
    return command.node_of(parsed(*options))


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Writes two genesis files, and a file with three blocks on the first."""
    source = dev_node(accounts=2, mining=Mining.MANUAL, timestamp=GENESIS_TIME)
    source.mine(3)
    numbers = range(1, 4)
    blocks = b"".join(source.chain.block_by_number(number).rlp() for number in numbers)
    (tmp_path / "chain.rlp").write_bytes(blocks)
    for name, time in (("one", GENESIS_TIME), ("other", GENESIS_TIME + 1)):
        genesis = dev_genesis(source.accounts, timestamp=time)
        (tmp_path / f"{name}.json").write_text(json.dumps(genesis))
    names = ("one.json", "other.json", "chain.rlp", "data")
    return {Path(name).stem: str(tmp_path / name) for name in names}


def test_an_import_into_a_directory_is_kept_and_may_be_repeated(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--genesis", files["one"], "--datadir", files["data"])
    for _ in range(2):
        node = node_of(*options, "--import", files["chain"])
        assert node.chain.head.number == 3
        assert "imported 3 blocks, head 3" in capsys.readouterr().out
        node.directory.close()
    node = node_of(*options)
    assert node.chain.head.number == 3
    assert node.directory.blocks.file.size < 3_000
    node.directory.close()


@pytest.mark.parametrize(
    ("options", "path"),
    [
        (("--ipc",), f"{tempfile.gettempdir()}/fastevm.ipc"),
        (("--ipc", "a.ipc"), f"{tempfile.gettempdir()}/a.ipc"),
        (("--ipc", "./a.ipc"), "a.ipc"),
        (("--ipc", "/x/a.ipc", "--datadir", "data"), "/x/a.ipc"),
        (("--ipc", "--datadir", "data"), "data/fastevm.ipc"),
    ],
)
def test_the_file_of_a_unix_socket_lies_where_geth_puts_it(
    options: tuple[str, ...], path: str
) -> None:
    assert command.ipc_path(parsed(*options)) == Path(path)


def test_a_directory_of_another_genesis_is_refused_and_left_to_its_chain(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    node_of("--genesis", files["one"], "--datadir", files["data"]).directory.close()
    wrong = parsed("--genesis", files["other"], "--datadir", files["data"])
    assert command.run(wrong) == 1
    assert f"{files['data']} holds another chain: genesis 0x" in capsys.readouterr().err
    node_of("--genesis", files["one"], "--datadir", files["data"]).directory.close()


def test_a_development_chain_goes_on_with_its_own_genesis(files: dict[str, str]) -> None:
    options = ("--no-mining", "--datadir", files["data"])
    node = node_of(*options, "--genesis-time", str(GENESIS_TIME))
    node.mine(2)
    node.directory.close()
    again = node_of(*options)
    assert again.chain.head == node.chain.head
    again.directory.close()


def test_long_work_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    report = command.progress("restored", False)
    for blocks in (0, 1, 999, 1_000, 1_001, 2_000):
        report(blocks, 10 * blocks, 30_000)
    assert capsys.readouterr().out.splitlines() == [
        "restored 1000 blocks (10000 of 30000 bytes)",
        "restored 2000 blocks (20000 of 30000 bytes)",
    ]
    command.progress("restored", True)(1_000, 1, 2)
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--preconf-url", "ws://127.0.0.1:1/feed"), "--preconf-url needs --upstream-url"),
        (("--upstream-url", "http://127.0.0.1:1", "--instant"), "makes no blocks"),
        (("--upstream-url", "somewhere", "--genesis-time", "1"), "is not http"),
        (("--datadir", "/proc/none"), "none"),
    ],
)
def test_what_cannot_be_is_said(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], words: str
) -> None:
    assert command.run(parsed(*options)) == 1
    assert words in capsys.readouterr().err


FORKED = ("--fork-url", "http://127.0.0.1:1")


def test_a_fork_of_a_named_chain_has_its_chain_id() -> None:
    fork = ForkOptions(urls=("http://127.0.0.1:1",))
    assert command.of_chain(fork, None) is fork
    assert command.of_chain(fork, "base").chain_id == 8453
    assert command.of_chain(replace(fork, chain_id=8453), "8453").chain_id == 8453
    with pytest.raises(ValueError, match="8453, --fork-chain-id is 5"):
        command.of_chain(replace(fork, chain_id=5), "base")
    with pytest.raises(ValueError, match="nowhere"):
        command.of_chain(fork, "nowhere")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((*FORKED, "--op"), "--hardfork selects others"),
        ((*FORKED, "--genesis", "x.json"), "--genesis: the fork uses the upstream's chain"),
        (
            (*FORKED, "--upstream-url", "http://127.0.0.1:1"),
            "--follow continues with the upstream's blocks",
        ),
        (
            ("--hardfork", "london", "--chain", "sepolia"),
            "the chain of --genesis or --chain has its own forks",
        ),
        (("--op-fork", "jovian"), "--op-fork needs --op"),
        (("--no-mining", "--block-time", "2s"), "--block-time does not go with --no-mining"),
        (("--instant", "--block-time", "2s"), "which have no schedule"),
        (("--chain", "sepolia", "--chain-id", "5"), "has its own id"),
        (("--chain", "sepolia", "--genesis-time", "5"), "has its own"),
        (("--full-replay",), "--full-replay needs --datadir"),
        (("-q", "-v"), "-q and -v exclude each other"),
        (("--hardfork", "london", "--op"), "use --op-fork"),
        ((*FORKED, "--base"), "--hardfork selects others"),
        (("--hardfork", "london", "--base"), "use --base-fork"),
        (("--op", "--base"), "--base does not go with --op"),
        (("--base", "--chain", "sepolia"), "--base starts its own chain"),
        (("--base-fork", "beryl"), "--base-fork needs --base"),
    ],
)
def test_options_that_exclude_each_other_are_refused_with_what_to_do(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], words: str
) -> None:
    with pytest.raises(SystemExit):
        command.run(parsed(*options))
    assert words in " ".join(capsys.readouterr().err.split())


def test_the_development_chain_has_the_rules_of_a_hardfork() -> None:
    for name in ("london", "amsterdam"):
        chain = command.node_of(parsed("--hardfork", name)).chain
        assert chain.schedule_of(chain.head.hash).fork.name.lower() == name


def test_an_unknown_hardfork_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(parsed("--hardfork", "amsterdm")) == 1
    assert "hardfork: unknown fork 'amsterdm'" in capsys.readouterr().err


def test_a_bad_time_of_the_disk_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--fsync", "sometimes")
    assert "invalid choice: 'sometimes'" in capsys.readouterr().err


def test_whoever_is_on_another_chain_than_the_genesis_file_does_not_start_over_for_ever(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served = []
    monkeypatch.setattr(
        command,
        "serve_node",
        lambda node, *options: served.append(node) or "it is foreign",
    )
    upstream = ("--upstream-url", "http://127.0.0.1:1")
    assert command.run(parsed("--genesis", files["one"], *upstream)) == 1
    assert len(served) == 1
    assert "on another chain than these options describe" in capsys.readouterr().err
    stop = ("--foreign-chain", "stop")
    assert command.run(parsed("--genesis", files["one"], *upstream, *stop)) == 1
    assert "it is foreign (--foreign-chain start-over would follow it)" in capsys.readouterr().err


def test_limits_of_logs_are_set_by_options() -> None:
    defaults = Limits()
    assert command.limits_of(parsed()) == defaults
    options = ("--max-log-blocks", "500", "--max-logs", "7", "--log-index-size", "3")
    found = command.limits_of(parsed(*options))
    assert (found.log_blocks, found.logs, found.log_index_size) == (500, 7, 3 * 2**20)


def test_epochs_are_set_by_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[int] = []

    def serve(node: Any, *_: Any) -> None:
        served.append(node.slots_in_an_epoch)

    monkeypatch.setattr(command, "serve_node", serve)
    for options in ((), ("--slots-in-an-epoch", "32")):
        assert command.run(parsed(*options)) == 0
    assert served == [0, 32]


@pytest.mark.parametrize("text", ["65536", "-1", "http", "١"])
def test_a_port_is_one_that_exists(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(f"--port={text}")
    assert f"invalid port {text!r}: expected 0 to 65535" in capsys.readouterr().err
    assert parsed("--port", "65535").port == 65_535


def test_a_chain_id_is_decimal_or_hexadecimal(capsys: pytest.CaptureFixture[str]) -> None:
    assert parsed("--chain-id", "10").chain_id == parsed("--chain-id", "0xa").chain_id == 10
    with pytest.raises(SystemExit):
        parsed("--chain-id", "ten")
    assert "invalid chain id 'ten': expected one such as 31337 or 0x7a69" in capsys.readouterr().err


def test_a_fault_of_a_genesis_names_its_file(tmp_path: Path) -> None:
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps({"config": {"chainId": "x"}}))
    with pytest.raises(ValueError, match=r"wrong\.json: config\.chainId: expected a number"):
        node_of("--genesis", str(file))


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_a_limit_is_a_number_of_at_least_one(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(f"--max-logs={text}")
    assert f"invalid value {text!r}: expected a number >= 1" in capsys.readouterr().err


def test_a_chain_by_name_is_the_published_one() -> None:
    node = node_of("--chain", "Unichain-Sepolia", "--quiet")
    chain = chains.find("unichain-sepolia")
    assert node.chain.genesis.hash == chain.genesis_hash
    expected = chain.config()
    assert replace(node.config, activations=expected.activations) == expected
    assert node.mining is Mining.NEVER


def test_a_chain_by_name_takes_its_state_from_a_file_too(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    genesis = {**chains.find("hoodi").genesis(), "config": None}
    path = tmp_path / "hoodi.json"
    path.write_text(json.dumps(genesis))
    node = node_of("--chain", "hoodi", "--genesis", str(path))
    assert node.chain.genesis.hash == chains.find("hoodi").genesis_hash
    assert command.run(parsed("--chain", "hoodi", "--genesis", files["one"])) == 1
    assert "genesis: expected the block 0xbbe31286" in capsys.readouterr().err


def test_amsterdam_begins_when_the_user_says(capsys: pytest.CaptureFixture[str]) -> None:
    option = ("--override-amsterdam", "1793036568")
    node = node_of("--chain", "hoodi", *option)
    assert node.chain.genesis.hash == chains.find("hoodi").genesis_hash
    found = [node.config.activations.at(1, time).name for time in (1793036567, 1793036568)]
    assert found == ["BPO2", "Amsterdam"]
    assert command.run(parsed("--chain", "unichain", *option)) == 1
    assert "a chain of the OP stack has no fork Amsterdam" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.run(parsed(*option))
    assert "--override-amsterdam needs --genesis or --chain" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("optimism", "OP Mainnet has no genesis file: its rules begin at block 105235063"),
        ("celo", "Celo has no genesis file: it pays gas in tokens of its own"),
        (
            "otpimism",
            "unknown chain 'otpimism' (did you mean 'optimism'?); known are ethereum, sepolia",
        ),
    ],
)
def test_a_chain_that_cannot_be_begun_is_refused(
    name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.run(parsed("--chain", name)) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(("option", "cap"), [((), 1 << 24), (("--disable-tx-gas-limit",), 0)])
def test_the_most_gas_of_a_transaction_may_be_left_open(option: tuple[str, ...], cap: int) -> None:
    node = node_of("--no-mining", *option)
    header = node.chain.head.header
    schedule = node.chain.schedule_for_child(header, header.timestamp + 1)
    assert schedule.parameters["tx_gas_cap"] == cap


def test_caps_of_fees_and_of_calls_have_the_names_of_geth() -> None:
    found = parsed("--rpc-txfeecap", "2.5", "--rpc-gascap", "1000000")
    assert found.tx_fee_cap == 2.5
    assert command.limits_of(found).call_gas == 1_000_000
    assert command.limits_of(parsed()).call_gas == Limits().call_gas


@pytest.mark.parametrize(
    ("text", "milliseconds"), [("2", 2000), ("0.5", 500), ("200ms", 200), ("1m", 60_000)]
)
def test_a_block_time_without_a_unit_is_in_seconds(text: str, milliseconds: int) -> None:
    assert parsed("--block-time", text).block_time == milliseconds


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--block-time", "2000"), "2000: add a unit, as in 2000ms or 2000s"),
        (("--block-time", "0.1ms"), "expected at least 1ms"),
        (("--slice-interval", "soon"), "invalid duration 'soon'"),
    ],
)
def test_an_ambiguous_or_wrong_duration_is_refused(
    options: tuple[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed(*options)
    assert message in " ".join(capsys.readouterr().err.split())


def test_other_durations_without_a_unit_are_in_milliseconds() -> None:
    found = parsed("--slice-interval", "100", "--pending-max-age", "1s", "--poll-interval", "0.5s")
    assert (found.slice_interval, found.pending_max_age, found.poll_interval) == (100, 1000, 500)


def test_receipts_are_chosen_for_the_first_listener() -> None:
    node = node_of("--no-mining")
    for options, given in ((("--receipts", "preconfirmed"), True), ((), False)):
        server = command.server_of(node, parsed(*options), command.DEFAULT_ACCESS, None)
        assert server.listeners[0].dialect.receipts_of_slices is given
