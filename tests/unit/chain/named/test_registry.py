"""Tests the registry of named chains, and the genesis blocks of real chains."""

import json
import lzma
import re
from pathlib import Path
from typing import Any

import pytest

from fastevm import fork_id
from fastevm.chain import named as chains
from fastevm.chain.config import ChainConfig
from fastevm.chain.genesis import genesis_block
from fastevm.core.primitives.replace import replace
from tests.op_stack_data import OP_STACK
from tests.shared_data import ROOT

WITH_GENESIS = [chain.name for chain in chains.chains() if chain.has_genesis]

# Hashes of the genesis blocks, from go-ethereum (params/config.go) and op-reth
# (crates/optimism/chainspec/src/lib.rs).
PUBLISHED = {
    "ethereum": "d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3",
    "sepolia": "25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9",
    "hoodi": "bbe312868b376a3001692a646dd2d7d1e4406380dfd86b98aa8a34d1557c971b",
    "base": "f712aa9241cc24369b143cf6dce85f0902a9731e70d66818a3a5845b296c73dd",
    "base-sepolia": "0dcc9e089e30b90ddfc55be9a37dd15bc551aeee999d2e2b51414c54eaf934e4",
    "op-sepolia": "102de6ffb001480cc9b8b548fd05c34cd4f46ae4aa91759393db90ea0409887d",
}


@pytest.mark.parametrize("name", WITH_GENESIS)
def test_a_genesis_gives_the_published_block(name: str) -> None:
    chain = chains.find(name)
    block, _ = genesis_block(chain.genesis(), chain.config())
    assert block.hash == chain.genesis_hash
    assert PUBLISHED.get(name, block.hash.hex()) == block.hash.hex()


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("optimism", "optimism"),
        ("op-mainnet", "optimism"),
        ("OP_Mainnet", "optimism"),
        (10, "optimism"),
        ("10", "optimism"),
        ("worldchain", "world"),
        ("World Chain", "world"),
        ("minato", "soneium-minato"),
        ("mainnet", "ethereum"),
        (1, "ethereum"),
        (560048, "hoodi"),
    ],
)
def test_a_chain_is_found_by_every_name_that_people_type(written: str | int, name: str) -> None:
    assert chains.find(written).name == name


def test_an_unknown_chain_is_answered_with_the_known_names() -> None:
    for unknown in ("optimsm", 2**40, ""):
        with pytest.raises(chains.UnknownChain, match="known are ethereum, sepolia, hoodi"):
            chains.find(unknown)


@pytest.mark.parametrize(
    ("written", "name"), [("mainet", "mainnet"), ("Op_Seplia", "op-sepolia"), ("holski", "holesky")]
)
def test_a_misspelt_chain_is_answered_with_the_nearest_name(written: str, name: str) -> None:
    with pytest.raises(chains.UnknownChain, match=rf"did you mean '{name}'\?\); known are"):
        chains.find(written)
    with pytest.raises(chains.UnknownChain, match="unknown chain 'zzz'; known are"):
        chains.find("zzz")


def test_no_two_chains_share_a_name_or_an_id() -> None:
    every = [
        key for chain in chains.chains() for key in (chain.name, *chain.aliases, chain.chain_id)
    ]
    assert len(every) == len(set(every))


def test_a_chain_without_a_genesis_file_says_why() -> None:
    with pytest.raises(chains.GenesisUnavailable, match="begin at block 105235063"):
        chains.find("optimism").genesis()
    with pytest.raises(chains.GenesisUnavailable, match="tokens of its own"):
        chains.find("celo").genesis()
    unpacked = replace(chains.find("zora"), name="zora-without-genesis")
    with pytest.raises(chains.GenesisUnavailable, match="give its genesis file too"):
        unpacked.genesis()


def test_the_blocks_of_a_chain_come_at_its_pace() -> None:
    assert chains.find("unichain").config().block_time_ms == 1_000
    assert chains.find("optimism").config().block_time_ms == 2_000
    assert chains.find("hoodi").config().block_time_ms == 12_000


def test_base_has_native_tokens_and_then_milliseconds() -> None:
    admins = {"base": "ce3a3bee7e72e2a24079f3c0cb3b97740ed425a9"}
    admins["base-sepolia"] = "5f43072722f59964d886cbb507f6a85ca0759d42"
    for name, admin in admins.items():
        activations = chains.find(name).config().activations
        last = activations.by_time[-1]
        assert (last.fork.name, last.timestamp) == ("Denim", activations.denim_time)
        rules = activations.at(2**40, last.timestamp).parameters
        assert rules["activation_admin"] == int(admin, 16)


# Ethereum: from go-ethereum, core/forkid/forkid_test.go; Amsterdam: from ethrex, pull request 7287.
# OP stack: from op-reth, crates/optimism/chainspec/src/lib.rs, tests op_mainnet_forkids,
# op_sepolia_forkids and base_sepolia_forkids. Each row: block number, timestamp, checksum, and next
# fork (None: the source does not list the fork that follows).
FORK_IDS = {
    "sepolia": (
        PUBLISHED["sepolia"],
        [
            (1_735_372, 1_791_294_815, "268956b6", 1_791_294_816),
            (1_735_372, 1_791_294_816, "6c1d9423", 0),
        ],
    ),
    "hoodi": (
        PUBLISHED["hoodi"],
        [
            (0, 0, "bef71d30", 1_742_999_832),
            (0, 1_742_999_832, "0929e24e", 1_761_677_592),
            (0, 1_761_677_592, "e7e0e7ff", 1_762_365_720),
            (0, 1_762_365_720, "3893353e", 1_762_955_544),
            (0, 1_762_955_544, "23aa1351", None),
        ],
    ),
    "optimism": (
        "7ca38a1916c42007829c55e69d3e9a73265554b586a499015373241b8a3fa48b",
        [
            (0, 0, "caf517ed", 3_950_000),
            (105_235_063, 0, "e3398d7c", 1_704_992_401),
            (105_235_063, 1_704_992_401, "bdd4fdb2", 1_710_374_401),
            (105_235_063, 1_710_374_401, "19da4c52", 1_720_627_201),
            (105_235_063, 1_720_627_201, "49fbfe1e", 1_726_070_401),
            (105_235_063, 1_726_070_401, "44704cde", 1_736_445_601),
            (105_235_063, 1_736_445_601, "2bd93dc8", 1_746_806_401),
            (105_235_063, 1_746_806_401, "37be758f", None),
        ],
    ),
    "op-sepolia": (
        PUBLISHED["op-sepolia"],
        [
            (0, 0, "67a40328", 1_699_981_200),
            (0, 1_699_981_200, "a48d6a00", 1_708_534_800),
            (0, 1_708_534_800, "cc17c7eb", 1_716_998_400),
            (0, 1_716_998_400, "540a8c5d", 1_723_478_400),
            (0, 1_723_478_400, "75dea41e", 1_732_633_200),
            (0, 1_732_633_200, "4a1c792e", 1_744_905_600),
            (0, 1_744_905_600, "6c625ee1", None),
        ],
    ),
    "base-sepolia": (
        PUBLISHED["base-sepolia"],
        [
            (0, 0, "b959b9f7", 1_699_981_200),
            (0, 1_699_981_200, "607cd5a1", 1_708_534_800),
            (0, 1_708_534_800, "be969b17", 1_716_998_400),
            (0, 1_716_998_400, "4e457a49", 1_723_478_400),
            (0, 1_723_478_400, "5edfa3b6", 1_732_633_200),
            (0, 1_732_633_200, "8b5e7629", 1_744_905_600),
            (0, 1_744_905_600, "060a4d1d", None),
        ],
    ),
}


@pytest.mark.parametrize("name", FORK_IDS)
def test_fork_ids_are_the_published_ones(name: str) -> None:
    genesis_hash, points = FORK_IDS[name]
    activations = chains.find(name).config().activations
    for number, timestamp, checksum, following in points:
        found = fork_id(
            activations, bytes.fromhex(genesis_hash), number=number, timestamp=timestamp
        )
        assert found.checksum.hex() == checksum
        assert following in (None, found.next)


# --- comparison with the data of the registry, if it is installed --------------------------------

needs_data = pytest.mark.skipif(not OP_STACK.exists(), reason="no folder of OP-stack data")


def registry() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((OP_STACK / "chains.json").read_text())
    return found


@needs_data
def test_the_constants_are_those_of_the_superchain_registry() -> None:
    for listed in registry().values():
        chain = chains.find(listed["chainId"])
        fees, config = listed["eip1559"], chain.fork_config
        times = {key[:-4]: at for key, at in config.items() if key.endswith("Time")}
        forks = {key: at for key, at in listed["forks"].items() if key in times}
        # these forks change only how blocks are derived from L1, so fork_config lacks them
        left_out = {"delta", "pectra_blob_schedule"}
        assert set(listed["forks"]) - set(times) <= left_out
        assert times == {"regolith": 0, **forks}
        assert config["optimism"] == {
            "eip1559Elasticity": fees["elasticity"],
            "eip1559Denominator": fees["denominator"],
            "eip1559DenominatorCanyon": fees["denominatorCanyon"],
        }
        assert chain.block_time_ms == 1_000 * listed["blockTime"]
        assert chain.genesis_number == listed["genesis"]["l2Number"]
        assert chain.genesis_hash.hex() == listed["genesis"]["l2Hash"][2:]


@needs_data
def test_a_genesis_file_without_forks_is_completed_by_the_name() -> None:
    packed = (OP_STACK / "genesis" / "world-chain.json.xz").read_bytes()
    chain = chains.find("world")
    genesis = chain.completed(json.loads(lzma.decompress(packed)))
    block, _ = genesis_block(genesis, ChainConfig.from_genesis(genesis))
    assert block.hash == chain.genesis_hash


def with_header() -> list[str]:
    listed = registry() if OP_STACK.exists() else {}
    return [name for name, item in listed.items() if "header" in item["genesis"]]


@pytest.mark.parametrize("name", with_header())
def test_the_header_of_a_genesis_is_the_listed_one(name: str) -> None:
    """Uses the state root in the list, so that chains without a packaged state are tested too."""
    listed = registry()[name]["genesis"]
    chain = chains.find(registry()[name]["chainId"])
    members = {**listed["header"], "coinbase": listed["header"]["miner"], "alloc": {}}
    header = genesis_block(chain.completed(members))[0].header
    assert (
        replace(header, state_root=bytes.fromhex(listed["stateRoot"][2:])).hash.hex()
        == (listed["l2Hash"][2:])
    )


def test_the_example_of_the_page_on_real_chains_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs/real-chains.md").read_text()
    for example in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(example, "real-chains.md", "exec"), {})
    assert "3425162ddf41a0a1f0106d67b71828c9a9577e6ddeb94e4f33d2cde1fdc3befe" in (
        capsys.readouterr().out
    )
    listed = set(re.findall(r"`([\w-]+)`", text.split("## Feeds")[0]))
    assert set(chains.names()) <= listed


def test_the_rules_follow_the_time_of_a_block() -> None:
    for chain in chains.chains():
        times = {
            # if several forks start at one time, this dictionary keeps the last of them
            at: key.removesuffix("Time").casefold()
            for key, at in chain.fork_config.items()
            if key.endswith("Time")
        }
        activations, number = chain.config().activations, 2**40
        for at, fork in times.items():
            assert activations.at(number, at).name.casefold() == fork
            if at:
                assert activations.at(number, at - 1).name.casefold() != fork


def test_sepolia_has_amsterdam_at_its_published_fork_id() -> None:
    item = chains.find("sepolia")
    activations, genesis = item.config().activations, bytes.fromhex(PUBLISHED["sepolia"])
    found = [
        fork_id(activations, genesis, number=10**7, timestamp=at, genesis_timestamp=1_633_267_481)
        for at in (1_791_294_815, 1_791_294_816)
    ]
    assert [entry.checksum.hex() for entry in found] == ["268956b6", "6c1d9423"]
    assert activations.at(10**7, 1_791_294_816).name == "Amsterdam"
    assert chains.find("hoodi").config().activations.at(10**7, 2**40).name == "BPO2"


def test_a_user_may_say_when_amsterdam_begins(tmp_path: Path) -> None:
    amsterdam = 1_793_036_568
    chosen = chains.chosen_chain("hoodi", None, amsterdam_time=amsterdam)
    assert chosen is not None
    activations = ChainConfig.from_genesis(chosen.genesis).activations
    names = [
        activations.at(9, time, after_merge=True).fork.name for time in (amsterdam - 1, amsterdam)
    ]
    assert names == ["BPO2", "Amsterdam"]
    decided = chains.chosen_chain("hoodi", None)
    assert decided is not None
    assert "amsterdamTime" not in decided.genesis["config"]
    file = tmp_path / "genesis.json"
    file.write_text(json.dumps({"config": {"chainId": 7}}))
    chosen = chains.chosen_chain(None, file, amsterdam_time=5)
    assert chosen is not None
    assert chosen.genesis["config"] == {"chainId": 7, "amsterdamTime": 5}


def test_an_op_chain_and_a_time_before_an_older_fork_are_refused() -> None:
    with pytest.raises(ValueError, match="OP stack has no fork Amsterdam"):
        chains.chosen_chain("unichain", None, amsterdam_time=5)
    chosen = chains.chosen_chain("hoodi", None, amsterdam_time=5)
    assert chosen is not None
    with pytest.raises(ValueError, match="amsterdamTime"):
        ChainConfig.from_genesis(chosen.genesis)
