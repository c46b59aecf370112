"""Tests which fork is active at a block: mainnet, genesis configurations, test networks."""

import json

import pytest

from fastevm.core.spec import forks as f
from fastevm.core.spec.activation import MAINNET, NETWORK_FORKS, Activations, activations_named
from fastevm.core.spec.blobs import BlobParameters, read_blob_schedule
from fastevm.core.spec.schedule import schedule_for
from fastevm.errors import UnknownForkError
from tests.shared_data import SHARED

ALL_BLOCKS = {fork.config_key: 0 for fork in f.FORKS if fork.config_key.endswith("Block")}
ALL_BLOCKS["eip155Block"] = 0
BLOBS = {"target": 2, "max": 4, "baseFeeUpdateFraction": 1000}


def config(**changes):
    """Returns a configuration with all forks that have a block number at block 0, and changes."""
    return {"chainId": 1, **ALL_BLOCKS, "daoForkSupport": True, **changes}


@pytest.mark.parametrize(
    ("number", "timestamp", "fork"),
    [
        (0, 0, "Frontier"),
        (1_149_999, 0, "Frontier"),
        (1_150_000, 0, "Homestead"),
        (1_920_000, 0, "DAO"),
        (2_463_000, 0, "TangerineWhistle"),
        (2_675_000, 0, "SpuriousDragon"),
        (4_369_999, 0, "SpuriousDragon"),
        (4_370_000, 0, "Byzantium"),
        (7_280_000, 0, "Petersburg"),
        (9_069_000, 0, "Istanbul"),
        (9_200_000, 0, "MuirGlacier"),
        (12_244_000, 0, "Berlin"),
        (12_965_000, 0, "London"),
        (13_773_000, 0, "ArrowGlacier"),
        (15_050_000, 0, "GrayGlacier"),
        (15_537_393, 1_663_224_162, "GrayGlacier"),
        (15_537_394, 1_663_224_179, "Paris"),
        (17_034_869, 1_681_338_443, "Paris"),
        (17_034_870, 1_681_338_455, "Shanghai"),
        (19_426_587, 1_710_338_135, "Cancun"),
        (22_431_084, 1_746_612_311, "Prague"),
        (30_000_000, 1_764_798_550, "Prague"),
        (30_000_000, 1_764_798_551, "Osaka"),
        (30_000_000, 1_765_290_071, "BPO1"),
        (30_000_000, 1_767_747_671, "BPO2"),
        (30_000_000, 2_000_000_000, "BPO2"),
    ],
)
def test_mainnet(number, timestamp, fork):
    assert MAINNET.at(number, timestamp) is schedule_for(fork)


def test_mainnet_moved_the_dao_at_its_block():
    assert MAINNET.dao_block == 1_920_000


def test_who_knows_the_total_difficulty_decides_about_the_merge():
    assert MAINNET.at(15_537_394, 1_663_224_179, after_merge=False).name == "GrayGlacier"
    assert MAINNET.at(15_500_000, 1_663_000_000, after_merge=True).name == "Paris"
    assert MAINNET.at(15_500_000, 1_700_000_000, after_merge=False).name == "GrayGlacier"


@pytest.mark.parametrize("fork", f.FORKS, ids=lambda fork: fork.name)
def test_one_fork_from_the_start(fork):
    always = Activations.always(fork.name)
    assert always.at(0, 0) is always.at(10**9, 10**10) is schedule_for(fork)
    assert always.dao_block is None
    assert always.fork_blocks == always.fork_times == ()


def test_one_fork_with_blobs_of_its_own():
    blobs = BlobParameters(1, 2, 3)
    assert Activations.always("osaka", blobs=blobs).at(1, 1).blobs == blobs


def test_points_out_of_order_are_an_error():
    with pytest.raises(ValueError, match="must be in ascending order"):
        Activations([(5, f.BERLIN), (4, f.LONDON)])


@pytest.mark.parametrize(
    ("name", "before", "first", "after"),
    [
        ("FrontierToHomesteadAt5", "Frontier", (5, 50), "Homestead"),
        ("HomesteadToDaoAt5", "Homestead", (5, 50), "DAO"),
        ("HomesteadToEIP150At5", "Homestead", (5, 50), "TangerineWhistle"),
        ("EIP158ToByzantiumAt5", "SpuriousDragon", (5, 50), "Byzantium"),
        ("ByzantiumToConstantinopleFixAt5", "Byzantium", (5, 50), "Petersburg"),
        ("BerlinToLondonAt5", "Berlin", (5, 50), "London"),
        ("ParisToShanghaiAtTime15k", "Paris", (3, 15_000), "Shanghai"),
        ("ShanghaiToCancunAtTime15k", "Shanghai", (3, 15_000), "Cancun"),
        ("CancunToPragueAtTime15k", "Cancun", (3, 15_000), "Prague"),
        ("PragueToOsakaAtTime15k", "Prague", (3, 15_000), "Osaka"),
        ("OsakaToBPO1AtTime15k", "Osaka", (3, 15_000), "BPO1"),
        ("BPO1ToBPO2AtTime15k", "BPO1", (3, 15_000), "BPO2"),
        ("PragueToOsakaAtTime7", "Prague", (3, 7), "Osaka"),
    ],
)
def test_transition_networks(name, before, first, after):
    chain = activations_named(name)
    number, timestamp = first
    assert chain.at(0, 0).name == before
    assert chain.at(number - 1, timestamp - 1).name == before
    assert chain.at(number, timestamp).name == after


def test_the_dao_transition_knows_its_block():
    assert activations_named("HomesteadToDaoAt5").dao_block == 5
    assert activations_named("HomesteadToEIP150At5").dao_block is None


def test_the_transition_by_difficulty_waits_for_the_difficulty():
    chain = activations_named("ArrowGlacierToParisAtDiffC0000")
    assert chain.terminal_total_difficulty == 0xC0000
    assert chain.at(7, 10_000).name == "ArrowGlacier"
    assert chain.at(7, 10_000, after_merge=True).name == "Paris"


def test_test_networks_take_a_blob_schedule():
    schedule = read_blob_schedule({"Prague": BLOBS, "Osaka": {**BLOBS, "target": "0x03"}})
    chain = activations_named("PragueToOsakaAtTime15k", blob_schedule=schedule)
    assert chain.at(1, 1).blobs == BlobParameters(2, 4, 1000)
    assert chain.at(1, 15_000).blobs == BlobParameters(3, 4, 1000)
    assert activations_named("London", blob_schedule=schedule).at(0, 0).name == "London"


def test_networks_of_later_blob_forks_bring_their_own_blobs():
    schedule = read_blob_schedule({"BPO3": BLOBS, "bpo4": BLOBS | {"max": 8}})
    chain = activations_named("BPO2ToBPO3AtTime15k", blob_schedule=schedule)
    assert [chain.at(1, at).name for at in (14_999, 15_000)] == ["BPO2", "BPO3"]
    assert chain.at(1, 15_000).parameters["blob_max"] == 4
    always = activations_named("bpo4", blob_schedule=schedule)
    assert always.at(1, 1).parameters["blob_max"] == 8
    with pytest.raises(ValueError, match="bpo3 is missing"):
        activations_named("BPO3")


@pytest.mark.parametrize(
    "name",
    [
        "Berln",
        "BerlinToLodonAt5",
        "BerlinToLondonAtTime15k",
        "ParisToShanghaiAt5",
        "ParisToShanghaiAtDiff5",
        "BerlinToLondonAt",
        "",
    ],
)
def test_networks_that_nobody_knows_are_an_error(name):
    with pytest.raises(UnknownForkError):
        activations_named(name)


# --- genesis configurations -----------------------------------------------------------------------


def test_a_recorded_genesis_goes_through_all_forks():
    path = SHARED / "rpc-compat" / "genesis.json"
    if not path.exists():
        pytest.skip("no recorded genesis file")
    chain = Activations.from_genesis_config(json.loads(path.read_text())["config"])
    times = {0: "Homestead", 3: "TangerineWhistle", 6: "SpuriousDragon", 9: "Byzantium"}
    times |= {12: "Constantinople", 15: "Petersburg", 18: "Istanbul", 21: "MuirGlacier"}
    times |= {24: "Berlin", 27: "London", 30: "ArrowGlacier", 33: "GrayGlacier", 36: "Paris"}
    times |= {39: "Shanghai", 42: "Cancun", 45: "Prague", 48: "Osaka", 51: "BPO1", 54: "BPO2"}
    expected = None
    for number in range(60):
        expected = times.get(number, expected)
        assert chain.at(number, number * 10) is schedule_for(expected)
    assert chain.terminal_total_difficulty == 4732352


def test_mainnets_configuration_gives_mainnet():
    chain = Activations.from_genesis_config(
        {
            "chainId": 1,
            "homesteadBlock": 1_150_000,
            "daoForkBlock": 1_920_000,
            "daoForkSupport": True,
            "eip150Block": 2_463_000,
            "eip155Block": 2_675_000,
            "eip158Block": 2_675_000,
            "byzantiumBlock": 4_370_000,
            "constantinopleBlock": 7_280_000,
            "petersburgBlock": 7_280_000,
            "istanbulBlock": 9_069_000,
            "muirGlacierBlock": 9_200_000,
            "berlinBlock": 12_244_000,
            "londonBlock": 12_965_000,
            "arrowGlacierBlock": 13_773_000,
            "grayGlacierBlock": 15_050_000,
            "terminalTotalDifficulty": 58_750_000_000_000_000_000_000,
            "shanghaiTime": 1_681_338_455,
            "cancunTime": 1_710_338_135,
            "pragueTime": 1_746_612_311,
            "osakaTime": 1_764_798_551,
            "bpo1Time": 1_765_290_071,
            "bpo2Time": 1_767_747_671,
            "ethash": {},
        }
    )
    assert chain.by_block == MAINNET.by_block
    assert chain.by_time == MAINNET.by_time
    assert chain.terminal_total_difficulty == MAINNET.terminal_total_difficulty
    assert chain.dao_block == MAINNET.dao_block
    assert chain.fork_blocks == MAINNET.fork_blocks


def test_net_metering_lives_between_constantinople_and_a_later_petersburg():
    chain = Activations.from_genesis_config(
        config(constantinopleBlock=5, petersburgBlock=8, istanbulBlock=11, muirGlacierBlock=None)
        | dict.fromkeys(("berlinBlock", "londonBlock", "arrowGlacierBlock", "grayGlacierBlock"), 20)
    )
    metering = [chain.at(n, 0).parameters["sstore_net_metering"] for n in range(13)]
    assert metering == [False] * 5 + [True] * 3 + [False] * 3 + [True] * 2


def test_petersburg_left_out_begins_with_constantinople():
    changes = {"constantinopleBlock": 5, "petersburgBlock": None, "istanbulBlock": 9}
    later = dict.fromkeys(
        ("muirGlacierBlock", "berlinBlock", "londonBlock", "arrowGlacierBlock", "grayGlacierBlock")
    )
    chain = Activations.from_genesis_config(config(**changes, **later))
    assert chain.at(5, 0) is schedule_for("petersburg")
    assert chain.at(9, 0) is schedule_for("istanbul")
    assert chain.at(10**6, 0) is schedule_for("istanbul")


def test_a_glacier_left_out_leaves_the_bomb_where_it_was():
    chain = Activations.from_genesis_config(
        config(muirGlacierBlock=None, berlinBlock=3, londonBlock=6)
        | {"arrowGlacierBlock": None, "grayGlacierBlock": 9}
    )
    delays = [chain.at(n, 0).parameters["bomb_delay_blocks"] for n in (0, 3, 6, 9)]
    assert delays == [5_000_000, 5_000_000, 9_700_000, 11_400_000]
    assert chain.at(3, 0).name == "Berlin"
    assert chain.at(3, 0).gas("SLOAD") == 100
    assert chain.at(6, 0) is schedule_for("london")


def test_replay_protection_may_come_before_the_rest_of_its_fork():
    later = {
        key: 9 for key in ALL_BLOCKS if key not in ("homesteadBlock", "eip150Block", "daoForkBlock")
    }
    chain = Activations.from_genesis_config(config(**later) | {"eip155Block": 4})
    flags = ("has_chain_id_in_signature", "clears_empty_accounts")
    assert [chain.at(3, 0).parameters[flag] for flag in flags] == [False, False]
    assert [chain.at(4, 0).parameters[flag] for flag in flags] == [True, False]
    assert [chain.at(9, 0).parameters[flag] for flag in flags] == [True, True]
    assert chain.fork_blocks == (4, 9)


def test_the_dao_fork_needs_support():
    with_dao = {"homesteadBlock": 1, "daoForkBlock": 3, "daoForkSupport": True}
    assert Activations.from_genesis_config(with_dao).dao_block == 3
    assert Activations.from_genesis_config(with_dao).at(3, 0).name == "DAO"
    without = with_dao | {"daoForkSupport": False}
    assert Activations.from_genesis_config(without).dao_block is None
    assert Activations.from_genesis_config(without).at(3, 0).name == "Homestead"


def test_a_chain_born_merged_may_leave_the_old_forks_out():
    chain = Activations.from_genesis_config({"chainId": 5, "osakaTime": 0})
    assert chain.at(0, 0) is schedule_for("osaka")
    chain = Activations.from_genesis_config({"terminalTotalDifficulty": 0, "cancunTime": "0x64"})
    assert chain.at(0, 99) is schedule_for("paris")
    assert chain.at(0, 100) is schedule_for("cancun")


def test_a_configuration_without_forks_is_frontier():
    assert Activations.from_genesis_config({}).at(10**6, 10**9) is schedule_for("frontier")


def test_forks_by_time_do_not_begin_before_the_merge():
    chain = Activations.from_genesis_config(
        config(terminalTotalDifficulty=1000, shanghaiTime=100, mergeNetsplitBlock=7)
    )
    assert chain.at(3, 200, after_merge=False) is schedule_for("grayGlacier")
    assert chain.at(3, 200, after_merge=True) is schedule_for("shanghai")
    assert chain.fork_blocks == (7,)


def test_a_configuration_sets_its_own_blobs():
    chain = Activations.from_genesis_config(
        config(
            terminalTotalDifficulty=0,
            cancunTime=0,
            pragueTime=10,
            bpo3Time=20,
            blobSchedule={"cancun": BLOBS, "bpo3": {**BLOBS, "max": 5}},
        )
        | {"osakaTime": 15}
    )
    assert chain.at(1, 0).blobs == BlobParameters(2, 4, 1000)
    assert chain.at(1, 10).blobs == BlobParameters(6, 9, 5_007_716)
    assert chain.at(1, 20).blobs == BlobParameters(2, 5, 1000)
    assert chain.at(1, 20).name == "BPO3"
    assert chain.at(1, 20).gas("CLZ") == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"homesteadBlock": 2}, "homesteadBlock 2 comes after daoForkBlock 0"),
        ({"shanghaiTime": 9, "cancunTime": 8}, "shanghaiTime 9 comes after cancunTime 8"),
        ({"londonBlock": -1}, "londonBlock: expected a number that is not negative, found -1"),
        ({"londonBlock": True}, "londonBlock: expected a number"),
        ({"londonBlock": "soon"}, "londonBlock: expected a number that is not negative, found"),
        ({"londonBlock": 1.5}, "londonBlock: expected a number"),
        ({"bogotaTime": 0}, "bogotaTime: unknown fork"),
        ({"bpo4Time": 0}, "blobSchedule: bpo4 is missing"),
        ({"blobSchedule": {"cancun": {"target": 3, "max": 6}}}, "blobSchedule.cancun: baseFee"),
        ({"blobSchedule": {"cancun": {**BLOBS, "max": 1}}}, "blobSchedule.cancun: blob target 2"),
        ({"blobSchedule": {"cancun": 3}}, "blobSchedule.cancun: expected an object"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_an_error(changes, message):
    with pytest.raises(ValueError, match=message):
        Activations.from_genesis_config(config(**changes))


def test_amsterdam_keeps_the_blobs_of_the_fork_before():
    blobs = dict.fromkeys(("cancun", "prague", "osaka"), BLOBS)
    last = {"target": 3, "max": 4, "baseFeeUpdateFraction": 5}
    times = {"shanghaiTime": 0, "cancunTime": 0, "pragueTime": 0, "osakaTime": 0}
    schedule = {**blobs, "bpo1": BLOBS, "bpo3": last}
    later = {"bpo1Time": 10, "bpo3Time": 20, "amsterdamTime": 30, "terminalTotalDifficulty": 0}
    given = config(**times, **later, blobSchedule=schedule)
    chain = Activations.from_genesis_config(given)
    assert chain.at(1, 30).name == "Amsterdam"
    assert chain.at(1, 30).parameters["blob_target"] == 3


def test_a_fork_that_is_not_planned_yet_does_no_harm():
    Activations.from_genesis_config(config(bogotaTime=None))


def test_parameters_of_one_chain_hold_in_all_its_forks_and_move_none() -> None:
    for chain in (MAINNET, Activations.always("Osaka")):
        changed = chain.with_parameters(tx_gas_cap=0)
        assert repr(changed) == repr(chain)
        assert (changed.fork_blocks, changed.fork_times) == (chain.fork_blocks, chain.fork_times)
        for number, timestamp in ((1, 10), (12_965_000, 2**31), (30_000_000, 2**33)):
            before, after = chain.at(number, timestamp), changed.at(number, timestamp)
            assert after.parameters == {**before.parameters, "tx_gas_cap": 0}


def test_the_blob_forks_of_test_networks_come_before_every_later_fork() -> None:
    planned = [fork for fork in NETWORK_FORKS if fork in f.FORKS]
    assert planned == list(f.FORKS)
    after = NETWORK_FORKS.index(f.BPO2) + 1
    assert [fork.name for fork in NETWORK_FORKS[after : after + 3]] == ["BPO3", "BPO4", "BPO5"]
