"""Tests the effects of ``fastevm dev``'s options on a node."""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import pytest

import fastevm
from fastevm.bench.node.launch import ServerThread
from fastevm.core.primitives.hex import hex_bytes
from fastevm.errors import InvalidTransaction
from fastevm.node.dev_accounts import ETHER
from fastevm.rpc.command import ipc_path, limits_of
from fastevm.rpc.contract_files import ContractFiles, default_directories
from fastevm.rpc.dev import command
from fastevm.rpc.dev.options import REFUSED
from fastevm.rpc.dev.settings import configured
from fastevm.rpc.dev.state_file import StateFile

THIRD = b"\xa3" * 20
PROXY = bytes.fromhex("4e59b44847b379578588920ca78fbf26c0b4956c")


def parsed(*options: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(options)


def node_of(*options: str) -> Any:
    return command.node_of(parsed(*options))


def head_layer(node: Any) -> Any:
    return node.chain.layer_of(node.chain.head.hash)


def test_the_version_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed("--version")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"fastevm {fastevm.__version__}\n"


def test_without_options_it_is_the_chain_that_tools_expect() -> None:
    node = node_of()
    first = node.chain.genesis.header
    layer = node.chain.layer_of(node.chain.genesis.hash)
    assert node.mines_at_once
    assert node.config.chain_id == 31_337
    assert (first.gas_limit, first.base_fee_per_gas) == (30_000_000, 10**9)
    assert [layer.balance(account.address) for account in node.accounts] == [10_000 * ETHER] * 10
    assert hex_bytes(layer.code(PROXY)).startswith("0x7fff")


def test_the_longest_contract_of_amsterdam_fits_into_a_block() -> None:
    node = node_of("--hardfork", "amsterdam")
    assert node.chain.genesis.header.gas_limit == 200_000_000
    data = bytes.fromhex("62010000805f5f395ff3") + bytes(65_536)  # CODECOPY and RETURN of 65,536
    fields = {"nonce": 0, "gas_limit": 130_000_000, "chain_id": 31_337, "data": data}
    creation = fastevm.Transaction.build(**fields, gas_price=2 * 10**9)
    node.submit(creation.sign(node.accounts[0].private_key).raw)
    (receipt,) = node.chain.receipts_of(node.chain.head.hash)
    assert receipt.status == 1 and receipt.gas_used > 65_536 * 1_530


def test_the_options_of_the_chain() -> None:
    options = "-a 2 --balance 7 --chain-id 0x9 --gas-limit 1000000 --base-fee 5 --timestamp 77"
    node = node_of(*options.split())
    first = node.chain.genesis.header
    layer = node.chain.layer_of(node.chain.genesis.hash)
    assert node.config.chain_id == 9
    assert (first.gas_limit, first.base_fee_per_gas, first.timestamp) == (1_000_000, 5, 77)
    assert [layer.balance(account.address) for account in node.accounts] == [7 * ETHER] * 2


@pytest.mark.parametrize("options", ["--base-fee x", "--gas-limit 0", "--balance -1"])
def test_numbers_that_are_none_are_refused(
    options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed(*options.split())
    assert "expected a number >= " in capsys.readouterr().err


@pytest.mark.parametrize(("option", "cap"), [((), 0), (("--enable-tx-gas-limit",), 1 << 24)])
def test_the_most_gas_of_a_transaction_counts_on_request(option: tuple[str, ...], cap: int) -> None:
    node = node_of(*option)
    header = node.chain.head.header
    schedule = node.chain.schedule_for_child(header, header.timestamp + 1)
    assert schedule.parameters["tx_gas_cap"] == cap


CODE_SIZES = [
    ((), 0x6000, 0xC000),
    (("--code-size-limit", "30000"), 30_000, 60_000),
    (("--disable-code-size-limit",), 0, 0),
]


@pytest.mark.parametrize(("option", "code", "initcode"), CODE_SIZES)
def test_contracts_may_be_larger_also_after_a_reset(
    option: tuple[str, ...], code: int, initcode: int
) -> None:
    node = node_of(*option, "-a", "1", "--no-mining")

    def rules() -> tuple[int, ...]:
        header = node.chain.head.header
        found = node.chain.schedule_for_child(header, header.timestamp + 1).parameters
        return tuple(found[name] for name in ("max_code_size", "max_initcode_size", "tx_gas_cap"))

    assert rules() == (code, initcode, 0)
    node.development.reset.to_development()
    assert rules() == (code, initcode, 0)
    data = bytes.fromhex("61ea605ff3") + bytes(150_000)  # a contract of 60,000 bytes
    fields = {"nonce": 0, "gas_limit": 20_000_000, "chain_id": 31_337, "data": data}
    creation = fastevm.Transaction.build(**fields, gas_price=2 * 10**9)
    raw = creation.sign(node.accounts[0].private_key).raw
    if initcode:
        with pytest.raises(InvalidTransaction, match=r"oversized|max initcode size"):
            node.submit(raw)
    else:
        node.submit(raw)
        (receipt,) = node.chain.receipts_of(node.mine(1)[0].hash)
        assert receipt.status == 1 and receipt.gas_used > 60_000 * 200


ALIASES = [
    ("--no-mine", "--no-mining"), ("--auto-unlock", "--auto-impersonate"), ("-p 1", "--port 1"),
    ("--jobs 2", "--threads 2"), ("--tx-gas-limit", "--enable-tx-gas-limit"), ("--tracing", ""),
    ("--no-priority-fee --slots-in-an-epoch 32 --gas-price 1 --prune-history 5 -n ethereum", ""),
    ("--no-create2", "--disable-default-create2-deployer"), ("--json", "--log-format json"),
    ("--print-traces", "-vvv"), ("--no-console-log", "--disable-console-log"),
    ("--ipcpath x", "--ipc x"),
]  # fmt: skip
WITHOUT_EFFECT = {
    "steps_tracing", "disable_min_priority_fee", "slots_in_an_epoch", "gas_price", "prune_history",
    "network",
}  # fmt: skip


@pytest.mark.parametrize(("words", "others"), ALIASES)
def test_other_names_of_options_mean_the_same(words: str, others: str) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    found, expected = (vars(parser.parse_args(item.split())) for item in (words, others))
    assert {name for name in found if found[name] != expected[name]} <= WITHOUT_EFFECT


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("optimism", "fastevm node --op starts a chain of the OP stack"),
        ("base", "fastevm dev --hardfork denim starts a chain of Base"),
        ("xdai", "'xdai' is not supported: only ethereum"),
    ],
)
def test_other_networks_say_how_to_start_them(
    name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed("--network", name)
    assert words in capsys.readouterr().err
    assert parsed("--network", "ethereum").network == "ethereum"


@pytest.mark.parametrize("name", REFUSED)
def test_options_of_anvil_that_are_not_there_say_why(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed(name, "1")
    assert f"{name} is not supported: {REFUSED[name]}" in capsys.readouterr().err


def test_accounts_of_others_are_funded() -> None:
    first, second = "0x" + "a1" * 20, "0x" + PROXY.hex()
    node = node_of("--fund-accounts", f"{first}:1.5", f"{second}:7",
                   f"0x{THIRD.hex()}:123456789012.123456789012345678", "--fund-accounts",
                   "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266:0")  # fmt: skip
    layer = head_layer(node)
    assert layer.balance(bytes.fromhex(first[2:])) == 15 * 10**17
    assert layer.balance(THIRD) == 123_456_789_012 * ETHER + 123_456_789_012_345_678
    assert layer.balance(PROXY) == 7 * ETHER and layer.code(PROXY) != b""
    balances = [layer.balance(account.address) for account in node.accounts]
    assert balances == [0, *[10_000 * ETHER] * 9]


def test_a_kept_chain_is_funded_once(tmp_path: Path) -> None:
    options = ("--datadir", str(tmp_path / "data"), "--fund-accounts", "0x" + "a1" * 20 + ":5")
    payee = bytes.fromhex("a1" * 20)
    node = node_of(*options)
    assert head_layer(node).balance(payee) == 5 * ETHER
    node.development.amend({hex_bytes(payee): {"balance": "0x3"}})
    node.directory.close()
    node = node_of(*options)
    assert head_layer(node).balance(payee) == 3
    node.directory.close()


def test_a_contract_of_a_forked_chain_is_funded_and_keeps_its_code() -> None:
    upstream = command.node_of(parsed())
    contract = b"\xc0" * 20
    upstream.development.amend({hex_bytes(contract): {"code": "0x5f5ff3", "nonce": "0x7"}})
    with ServerThread(upstream) as server:
        node = node_of("--fork-url", server.url(), "--no-storage-caching",
                       "--fund-accounts", f"0x{contract.hex()}:2")  # fmt: skip
        layer = head_layer(node)
        assert layer.balance(contract) == 2 * ETHER
        assert (layer.code(contract), layer.nonce(contract)) == (bytes.fromhex("5f5ff3"), 7)
        node.remote.close()


@pytest.mark.parametrize(
    "text",
    ["0xa1:1", "0x" + "a1" * 20, "0x" + "a1" * 20 + ":-1", "0x" + "a1" * 20 + ":1e-19",
     "0x" + "a1" * 20 + ":nan", "0x" + "a1" * 20 + ":inf", "0x" + "a1" * 20 + ":1e99",
     "0x" + "a1" * 20 + ":1e999999999", "0xF39Fd6e51aad88F6F4ce6aB8827279cffFb92266:1"],
)  # fmt: skip
def test_an_account_to_fund_needs_an_address_and_an_amount(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed("--fund-accounts", text)
    assert f"invalid account '{text}': expected an address, a colon" in capsys.readouterr().err


def test_a_chain_without_the_deployment_proxy() -> None:
    assert head_layer(node_of("--no-create2")).code(PROXY) == b""


def test_a_genesis_file_counts_before_other_options(tmp_path: Path) -> None:
    path = tmp_path / "genesis.json"
    genesis = {
        "config": {"chainId": 77, "homesteadBlock": 0, "londonBlock": 0},
        "difficulty": "0x20000", "timestamp": "0x65000000",
        "alloc": {"B0" * 20: {"balance": "0x5"}},
    }  # fmt: skip
    path.write_text(json.dumps(genesis))
    node = node_of("--init", str(path), "-a", "1", "--gas-limit", "5000000", "--no-mining")
    first = node.chain.genesis.header
    assert (first.difficulty, first.timestamp, first.gas_limit) == (0x20000, 0x65000000, 5_000_000)
    assert node.config.chain_id == 77
    assert head_layer(node).balance(b"\xb0" * 20) == 5
    assert head_layer(node).balance(node.accounts[0].address) == 10_000 * ETHER
    assert node.mine(1)[0].header.withdrawals_root is not None
    assert node_of("--init", str(path), "--chain-id", "9").config.chain_id == 9
    for text, words in (("[]", "expected an object"), ('{"alloc": 5}', "alloc: expected")):
        path.write_text(text)
        with pytest.raises(ValueError, match=rf"genesis\.json: {words}"):
            node_of("--init", str(path))


@pytest.mark.parametrize(("option", "size"), [((), 5), (("--no-request-size-limit",), 256)])
def test_the_size_of_requests(option: tuple[str, ...], size: int) -> None:
    assert limits_of(parsed(*option)).body_size == size * 1024 * 1024


def test_accounts_of_other_words_and_paths() -> None:
    first = node_of("-a", "1").accounts[0].address
    words = "candy maple cake sugar pudding cream honey rich smooth crumble sweet treat"
    assert node_of("-a", "1", "--mnemonic", words).accounts[0].address.hex() == (
        "627306090abab3a6e1400e9345bc60c78a8bef57"
    )
    assert node_of("-a", "1", "--derivation-path", "m/44'/60'/1'/0/").accounts[0].address != first
    with pytest.raises(ValueError, match="derivation path"):
        node_of("--derivation-path", "m/x")


def test_a_number_selects_the_accounts_of_anvil() -> None:
    """The expected keys come from projects that use ``anvil --mnemonic-seed-unsafe 2``."""
    first, second = node_of("-a", "2", "--mnemonic-seed-unsafe", "2").accounts
    assert first.private_key.hex() == (
        "d6a036f561e03196779dd34bf3d141dec4737eec5ed0416e413985ca05dad51a"
    )
    assert hex_bytes(first.address) == "0x8995e44a22e303a79bdd2e6e41674fb92d620863"
    assert hex_bytes(second.address) == "0xe9e05c9f02e10fa833d379cb1c7ac3a3f23b247e"


def test_the_modes_of_mining() -> None:
    assert node_of("--no-mining").mines_at_once is False
    mixed = node_of("--block-time", "0.5", "--mixed-mining")
    miner = mixed.development.miner
    assert (mixed.mines_at_once, miner.interval) == (True, 0.5)
    miner.stop()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--mixed-mining"], "--mixed-mining needs --block-time"),
        (["--no-mining", "--block-time", "1"], "--no-mining and --block-time exclude"),
        (["--gas-limit", "9", "--disable-block-gas-limit"], "exclude each other"),
        (["-q", "-vv"], "-q and -v exclude each other"),
        (["-m", "test test junk"], "the mnemonic has 3 words"),
        (["--mnemonic", " ".join(["test"] * 12)], "the checksum of the mnemonic is wrong"),
        (["--mnemonic-random", "13"], "no mnemonic has 13 words"),
        (
            ["--mnemonic-seed-unsafe", str(2**64)],
            "the seed of the mnemonic is 18446744073709551616",
        ),
        (["--mnemonic-seed-unsafe", "x"], "invalid value 'x': expected a number >= 0"),
        (["--mnemonic-seed-unsafe", "1", "--mnemonic-random"], "not allowed with argument"),
    ],
)
def test_contradictory_options_and_wrong_mnemonics_are_usage_errors(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        node_of(*options)
    assert exit_.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_rules_number_and_gas_without_limit() -> None:
    node = node_of("--hardfork", "Cancun", "--number", "500", "--disable-block-gas-limit")
    node.mine()
    assert node.chain.head.number == 501
    assert node.chain.schedule_of(node.chain.head.hash).fork.name == "Cancun"
    assert node.chain.head.header.gas_limit >= 2**61
    with pytest.raises(ValueError, match="unknown fork 'Lisbon'"):
        node_of("--hardfork", "Lisbon")


def test_time_goes_on_from_the_first_block() -> None:
    node = node_of("--timestamp", "1000000000")
    node.mine()
    assert node.chain.head.header.timestamp in range(1_000_000_000, 1_000_000_100)


def test_every_account_may_send_and_tips_are_optional() -> None:
    node = node_of("--auto-impersonate")
    assert node.development.impersonation.covers(b"\x99" * 20)
    assert node.submission.min_tip == 0


def test_the_constants_are_written_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    node_of("-a", "1", "--config-out", str(path))
    written = json.loads(path.read_text())
    assert written["available_accounts"] == ["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"]
    assert (written["chain_id"], written["base_fee"]) == (31_337, "1000000000")


def test_a_state_file_is_written_at_the_end_and_gone_on_with(tmp_path: Path) -> None:
    options = parsed("--state", str(tmp_path))
    with StateFile(command.node_of(options), options) as file:
        file.node.mine(3)
    again = command.node_of(options)
    with StateFile(again, options):
        assert again.chain.head.number == 3
    (tmp_path / "state.json").write_text("{}")
    with (
        pytest.raises(ValueError, match=r"state\.json: "),
        StateFile(command.node_of(options), options),
    ):
        pass
    options = parsed("--dump-state", str(tmp_path / "none" / "file"))
    with (
        pytest.raises(ValueError, match=r"directory .*none does not exist"),
        StateFile(command.node_of(options), options),
    ):
        pass


def test_options_come_from_the_line_then_variables_then_the_file(tmp_path: Path) -> None:
    path = tmp_path / "fastevm.toml"
    path.write_text(
        "[dev]\nport = 1\nchain_id = 5\nno-mining = true\nquiet = false\naccounts = 3\n"
    )
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    environment = {"FASTEVM_CONFIG_FILE": str(path), "FASTEVM_PORT": "2", "FASTEVM_ACCOUNTS": "4"}
    words = ["--accounts", "6"]
    found = parser.parse_args([*configured(parser, words, environment), *words])
    assert (found.port, found.chain_id, found.accounts) == (2, 5, 6)
    assert (found.no_mining, found.quiet) == (True, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[dev]\nprot = 1\n", "unknown option 'prot' in [dev]; did you mean 'port'?"),
        ("[dev]\nno-mining = 5\n", "no-mining: 5 is not valid here"),
        ("[dev]\nport = 65536\n", "[dev] port: invalid port '65536': expected 0 to 65535"),
        ("[dev]\norder = 'x'\n", "[dev] order: 'x' is not one of fees, fifo"),
        ("[dev", "Expected"),
        ("dev = 3", "unexpected 'dev': options belong in [dev]"),
        ("[devel]", "unexpected 'devel'"),
        ("port = 1", "unexpected 'port'"),
        ("[dev]\nconfig-file = 'x'\n", "unknown option 'config-file'"),
        ("[dev]\nno-config = true\n", "unknown option 'no-config'"),
    ],
)
def test_what_is_wrong_in_the_file_is_reported_with_its_name(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "fastevm.toml"
    path.write_text(text)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    with pytest.raises(ValueError) as caught:
        configured(parser, ["--config-file", str(path)])
    assert str(caught.value).startswith(f"{path}: ") and message in str(caught.value)
    with pytest.raises(ValueError, match=r"FASTEVM_CONFIG_FILE: file .* does not exist"):
        configured(parser, (), {"FASTEVM_CONFIG_FILE": str(tmp_path / "none")})
    with pytest.raises(ValueError, match=r"--config-file: file .* does not exist"):
        configured(parser, [f"--config-file={tmp_path}"])
    with pytest.raises(ValueError, match="FASTEVM_BALANCE: invalid value 'x': expected"):
        configured(parser, (), {"FASTEVM_BALANCE": "x"})


def options_in(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str, **variables: str) -> Any:
    """Parses a command line in the working directory ``folder``. ``variables``: environment."""
    monkeypatch.chdir(folder)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args([*configured(parser, words, variables), *words])


def test_the_file_is_found_in_the_nearest_parent_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "contracts" / "src"
    inner.mkdir(parents=True)
    outer = tmp_path / "fastevm.toml"
    outer.write_text("[dev]\nport = 1\n")
    found = options_in(inner, monkeypatch)
    assert (found.port, found.config_file) == (1, outer)
    assert f"Options of {outer} are in use." in command.about(found)
    (inner.parent / "fastevm.toml").write_text("[dev]\nport = 2\n")
    assert options_in(inner, monkeypatch).port == 2
    here = options_in(inner.parent, monkeypatch)
    assert (here.port, here.config_file) == (2, Path("fastevm.toml"))


@pytest.mark.parametrize("kind", ["folder", "file of a worktree"])
def test_the_search_ends_at_the_root_of_a_repository(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, inner = tmp_path / "project", tmp_path / "project" / "src"
    inner.mkdir(parents=True)
    (tmp_path / "fastevm.toml").write_text("[dev]\nport = 1\n")
    assert options_in(inner, monkeypatch).port == 1
    mark = root / ".git"
    mark.mkdir() if kind == "folder" else mark.write_text("gitdir: x")
    found = options_in(inner, monkeypatch)
    assert (found.port, found.config_file) == (8545, None)
    (root / "fastevm.toml").write_text("[dev]\nport = 2\n")
    assert options_in(inner, monkeypatch).port == 2


def test_paths_in_the_file_are_relative_to_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, abis = tmp_path / "src", tmp_path / "abis"
    inner.mkdir()
    abis.mkdir()
    (tmp_path / "fastevm.toml").write_text(
        "[dev]\nstate = 'chain.json'\nabi = ['abis']\nipc = 'node.ipc'\ntrusted-setup = '/x'\n"
        "derivation-path = \"m/44'/60'/1'/0/\"\n"
    )
    found = options_in(inner, monkeypatch)
    assert found.state == tmp_path / "chain.json"
    assert (found.abi, found.trusted_setup) == ([abis], Path("/x"))
    assert ipc_path(found) == tmp_path / "node.ipc"
    assert found.derivation_path == "m/44'/60'/1'/0/"
    assert options_in(inner, monkeypatch, "--state", "own.json").state == Path("own.json")
    assert options_in(inner, monkeypatch, FASTEVM_STATE="own.json").state == Path("own.json")
    assert tmp_path / "out" in default_directories(found.config_file)
    monkeypatch.chdir(tmp_path)
    assert ContractFiles(default_directories(Path("fastevm.toml"))).directories == (
        Path("out"), Path("artifacts"),
    )  # fmt: skip


def test_the_file_is_chosen_or_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fastevm.toml").write_text("[dev]\nport = 1\n")
    (tmp_path / "ci.toml").write_text("[dev]\nport = 2\n")

    def found(*words: str, **variables: str) -> tuple[Any, Any]:
        options = options_in(tmp_path, monkeypatch, *words, **variables)
        return options.port, options.config_file

    none, chosen = (8545, None), (2, Path("ci.toml"))
    assert found() == (1, Path("fastevm.toml"))
    assert found("--config-file", "ci.toml") == chosen
    assert found(FASTEVM_CONFIG_FILE="ci.toml") == chosen
    assert found("--no-config") == found(FASTEVM_NO_CONFIG="1") == none
    assert found("--no-config", FASTEVM_CONFIG_FILE="ci.toml") == none
    assert found("--config-file", "ci.toml", FASTEVM_NO_CONFIG="1") == chosen
    assert found(FASTEVM_CONFIG_FILE="ci.toml", FASTEVM_NO_CONFIG="1") == none
    with pytest.raises(ValueError, match="--config-file and --no-config exclude each other"):
        found("--config-file", "ci.toml", "--no-config")
    with pytest.raises(SystemExit):  # argparse reports the missing file name
        found("--config-file")


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fastevm.toml"
    path.write_text("[dev]\nport = 1\n")
    user = os.getuid() + 1  # a user other than the one who runs the test

    original = Path.stat

    def stat(self: Path, **words: Any) -> os.stat_result:
        found = original(self, **words)
        return os.stat_result((*found[:4], user, *found[5:])) if self == path else found

    monkeypatch.setattr(Path, "stat", stat)
    with pytest.raises(ValueError, match="belongs to another user: pass --config-file to read it"):
        options_in(tmp_path, monkeypatch)
    assert options_in(tmp_path, monkeypatch, "--config-file", str(path)).port == 1
    assert options_in(tmp_path, monkeypatch, "--no-config").port == 8545


def test_a_fee_cap_below_the_next_base_fee_is_refused_and_blocks_nobody() -> None:
    node = node_of("-a", "1", "--no-mining")
    fields = {"nonce": 0, "gas_limit": 21_000, "chain_id": 31_337, "to": PROXY}
    head = node.chain.head.hash
    node.producer.settings.set_child(head, base_fee=50)

    def signed(cap: int) -> bytes:
        prices = {"max_fee_per_gas": cap, "max_priority_fee_per_gas": 1}
        signature = fastevm.Transaction.build(**fields, **prices)
        return signature.sign(node.accounts[0].private_key).raw

    with pytest.raises(InvalidTransaction, match="max fee per gas less than block base fee") as low:
        node.submit(signed(49))
    assert low.value.code == "fee_cap_too_low"
    assert len(node.pool) == 0
    node.submit(signed(50))
    node.producer.mine()
    assert len(node.chain.head.transactions) == 1
