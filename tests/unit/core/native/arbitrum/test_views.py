"""Tests views of Arbitrum's precompiles: results and gas."""

from __future__ import annotations

from typing import Any

import pytest

from fastevm.core.primitives.keccak import keccak256

from .support import (
    AGGREGATOR,
    ALICE,
    BASE_FEE,
    BOB,
    CHAIN_ID,
    GAS,
    GAS_INFO,
    INFO,
    L1,
    L1_NUMBER,
    L2,
    NUMBER,
    OWNER,
    OWNER_PUBLIC,
    RETRYABLE,
    STATISTICS,
    SYS,
    TIMESTAMP,
    WASM,
    WASM_CACHE,
    ArbOS,
    precompile,
    word,
)

HASHES = tuple(keccak256(bytes([index])) for index in range(256))
SEQUENCER = "0xa4b000000000000000000073657175656e636572"
TOKEN = bytes.fromhex("912ce59144191c1204e64559fe8253a0e49e6548")
TICKET = b"\x77" * 32
WEEK = 604_800
STYLUS = (b"\x08", b"\x00")
PROGRAMS = (b"\x08", b"\x01")


@pytest.mark.parametrize(
    ("signature", "result", "expected", "gas"),
    [
        ("arbBlockNumber()", "uint256", NUMBER, 803),
        ("arbChainID()", "uint256", CHAIN_ID, 803),
        ("arbOSVersion()", "uint256", 55 + 51, 803),
        ("getStorageGasAvailable()", "uint256", 0, 803),
        ("isTopLevelCall()", "bool", True, 803),
        ("wasMyCallersAddressAliased()", "bool", False, 803),
        ("myCallersAddressWithoutAliasing()", "address", "0x" + "00" * 20, 803),
    ],
)
def test_arb_sys(signature: str, result: str, expected: Any, gas: int) -> None:
    assert ArbOS().ask(SYS, signature, result) == (expected, gas)


def test_newest_version() -> None:
    assert ArbOS(61).ask(SYS, "arbOSVersion()", "uint256")[0] == 116


def test_hashes_of_arbitrums_blocks() -> None:
    arbos = ArbOS(block_hashes=HASHES)
    for back in (1, 2, 256):
        found = arbos.ask(SYS, "arbBlockHash(uint256)", "bytes32", NUMBER - back)
        assert found == (HASHES[back - 1], 806)
    for number in (NUMBER, NUMBER - 257, 2**64, 2**256 - 1):
        found = arbos.run(SYS, "arbBlockHash(uint256)", number)
        assert found.error.startswith("execution reverted")
        expected = number.to_bytes(32, "big") + NUMBER.to_bytes(32, "big")
        assert found.output == bytes.fromhex("d5dc642d") + expected
        assert found.gas_used == 800 + 3 + 9


def test_aliases() -> None:
    signature = "mapL1SenderContractAddressToL2Alias(address,address)"
    found = ArbOS().ask(SYS, signature, "address", TOKEN, ALICE)
    assert found == ("0xa23de59144191c1204e64559fe8253a0e49e7659", 9)
    assert ArbOS().ask(SYS, signature, "address", b"\xff" * 20, ALICE)[0] == (
        "0x1111000000000000000000000000000000001110"
    )


def test_prices_in_wei() -> None:
    arbos = ArbOS()
    arbos.put((L1,), 7, 1_679_857)
    arbos.put((L2,), 3, 20_000_000)
    prices = (3762879680, 26877712, 402280000000, 20000000, 114000, 20114000)
    types = ",".join(["uint256"] * 6)
    assert arbos.ask(GAS_INFO, "getPricesInWei()", types) == (prices, 2418)
    found = arbos.ask(GAS_INFO, "getPricesInWeiWithAggregator(address)", types, ALICE)
    assert found == (prices, 2421)
    arbos.put((L2,), 3, 10**9)
    found = arbos.ask(GAS_INFO, "getPricesInWei()", types)[0]
    assert found[3:] == (BASE_FEE, 0, BASE_FEE)


def test_prices_in_gas() -> None:
    arbos = ArbOS(base_fee=1005)
    arbos.put((L1,), 7, 5 * 10**10)
    prices = (111442786069, 796019900, 20000)
    types = "uint256,uint256,uint256"
    assert arbos.ask(GAS_INFO, "getPricesInArbGas()", types) == (prices, 1609)
    arbos.evm.set_block(base_fee=0)
    assert arbos.ask(GAS_INFO, "getPricesInArbGas()", types)[0] == (0, 0, 20000)
    # in a call without a gas price, BASEFEE is 0 and the prices follow from the header's base fee
    arbos.evm.set_block(header_base_fee=1005)
    assert arbos.ask(GAS_INFO, "getPricesInArbGas()", types)[0] == prices


def test_accounting() -> None:
    arbos = ArbOS()
    arbos.put((L2,), 0, 7_000_000)
    arbos.put((L2,), 1, 32_000_000)
    types = "uint256,uint256,uint256"
    expected = ((7_000_000, 32_000_000, 32_000_000), 2409)
    assert arbos.ask(GAS_INFO, "getGasAccountingParams()", types) == expected


@pytest.mark.parametrize(
    ("signature", "type_", "ids", "key"),
    [
        ("getMinimumGasPrice()", "uint256", (L2,), 3),
        ("getL1BaseFeeEstimate()", "uint256", (L1,), 7),
        ("getL1GasPriceEstimate()", "uint256", (L1,), 7),
        ("getL1BaseFeeEstimateInertia()", "uint64", (L1,), 2),
        ("getGasBacklog()", "uint64", (L2,), 4),
        ("getPricingInertia()", "uint64", (L2,), 5),
        ("getGasBacklogTolerance()", "uint64", (L2,), 6),
        ("getAmortizedCostCapBips()", "uint64", (L1,), 10),
        ("getL1FeesAvailable()", "uint256", (L1,), 11),
        ("getL1RewardRate()", "uint64", (L1,), 3),
        ("getL1PricingEquilibrationUnits()", "uint256", (L1,), 1),
        ("getLastL1PricingUpdateTime()", "uint64", (L1,), 4),
        ("getL1PricingFundsDueForRewards()", "uint256", (L1,), 5),
        ("getL1PricingUnitsSinceUpdate()", "uint64", (L1,), 6),
        ("getMaxTxGasLimit()", "uint256", (L2,), 7),
        ("getMaxBlockGasLimit()", "uint64", (L2,), 1),
    ],
)
def test_a_view_of_a_slot(signature: str, type_: str, ids: tuple[bytes, ...], key: int) -> None:
    arbos = ArbOS()
    arbos.put(ids, key, 12_345)
    assert arbos.ask(GAS_INFO, signature, type_) == (12_345, 1603)


def test_signed_numbers() -> None:
    arbos = ArbOS()
    arbos.put((L1,), 9, 2**64 - 100)
    arbos.put((L1,), 8, 2**256 - 5)
    arbos.put((L1, b"\x00"), 0, 10)
    arbos.put((L1,), 5, 4)
    arbos.put((L1,), 11, 3)
    assert arbos.ask(GAS_INFO, "getPerBatchGasCharge()", "int64") == (-100, 1603)
    assert arbos.ask(GAS_INFO, "getLastL1PricingSurplus()", "int256") == (-5, 1603)
    assert arbos.ask(GAS_INFO, "getL1PricingSurplus()", "int256") == (3 - 10 - 4, 3203)


CONSTRAINTS = (
    (60_000_000, 9), (41_000_000, 52), (29_000_000, 329), (20_000_000, 2105), (14_000_000, 13485),
    (10_000_000, 86400),
)  # fmt: skip


def test_constraints() -> None:
    arbos = ArbOS()
    arbos.put((L2, b"\x00"), 0, len(CONSTRAINTS))
    expected = []
    for index, (target, window) in enumerate(CONSTRAINTS):
        values = (target, window, 1000 + index)
        for key, value in enumerate(values):
            arbos.put((L2, b"\x00", index.to_bytes(8, "big")), key, value)
        expected.append(values)
    found, gas = arbos.ask(GAS_INFO, "getGasPricingConstraints()", "uint64[3][]")
    assert found == tuple(expected)
    assert gas == 800 + 800 * (1 + 3 * len(CONSTRAINTS)) + 3 * (2 + 3 * len(CONSTRAINTS))


def test_constraints_of_several_kinds_of_gas() -> None:
    arbos = ArbOS(60)
    arbos.put((L2, b"\x01"), 0, 2)
    for index, weights in enumerate(({1: 10, 4: 20}, {})):
        ids = (L2, b"\x01", index.to_bytes(8, "big"))
        for key, value in enumerate((7_000_000, 102, 99)):
            arbos.put(ids, key, value + index)
        for kind, weight in weights.items():
            arbos.put(ids, 4 + kind, weight)
    types = "((uint8,uint64)[],uint32,uint64,uint64)[]"
    found, _ = arbos.ask(GAS_INFO, "getMultiGasPricingConstraints()", types)
    assert found == (
        (((1, 10), (4, 20)), 102, 7_000_000, 99),
        ((), 103, 7_000_001, 100),
    )
    arbos.put((L2,), 2, 500)
    arbos.put((L2, b"\x02"), 9 + 1, 300)
    arbos.put((L2, b"\x02"), 9 + 6, 400)
    fees, _ = arbos.ask(GAS_INFO, "getMultiGasBaseFee()", "uint256[]")
    assert fees == (500, 300, *[500] * 7)


def test_fees_of_the_running_transaction_are_zero() -> None:
    assert ArbOS().ask(GAS_INFO, "getCurrentTxL1GasFees()", "uint256") == (0, 803)


def test_owners() -> None:
    arbos = ArbOS()
    arbos.put_member((b"\x04",), 1, OWNER)
    arbos.put_member((b"\x04",), 2, BOB)
    assert arbos.ask(OWNER_PUBLIC, "isChainOwner(address)", "bool", OWNER) == (True, 1606)
    assert arbos.ask(OWNER_PUBLIC, "isChainOwner(address)", "bool", ALICE) == (False, 1606)
    found, gas = arbos.ask(OWNER_PUBLIC, "getAllChainOwners()", "address[]")
    assert found == ("0x" + OWNER.hex(), "0x" + BOB.hex())
    assert gas == 800 + 3 * 800 + 3 * 4
    arbos.put_member((b"\x0a",), 1, ALICE)
    assert arbos.ask(OWNER_PUBLIC, "isNativeTokenOwner(address)", "bool", ALICE)[0]


@pytest.mark.parametrize(
    ("signature", "key", "version"),
    [
        ("getNetworkFeeAccount()", 3, 51),
        ("getInfraFeeAccount()", 6, 51),
        ("getInfraFeeAccount()", 6, 10),
        ("getBrotliCompressionLevel()", 7, 51),
        ("getNativeTokenManagementFrom()", 8, 51),
        ("getTransactionFilteringFrom()", 9, 60),
        ("getFilteredFundsRecipient()", 10, 60),
        ("getCollectTips()", 11, 60),
    ],
)
def test_settings_of_the_chain(signature: str, key: int, version: int) -> None:
    arbos = ArbOS(version)
    arbos.put((), key, 1)
    assert arbos.ask(OWNER_PUBLIC, signature, "uint256") == (1, 1603)


def test_scheduled_upgrade() -> None:
    arbos = ArbOS()
    arbos.put((), 1, 60)
    arbos.put((), 2, 1_800_000_000)
    types = "uint64,uint64"
    expected = ((60, 1_800_000_000), 2406)
    assert arbos.ask(OWNER_PUBLIC, "getScheduledUpgrade()", types) == expected
    arbos.put((), 1, 51)
    assert arbos.ask(OWNER_PUBLIC, "getScheduledUpgrade()", types)[0] == (0, 0)


def test_features() -> None:
    arbos = ArbOS()
    signature = "isCalldataPriceIncreaseEnabled()"
    assert arbos.ask(OWNER_PUBLIC, signature, "bool") == (False, 1603)
    arbos.put((b"\x09",), 0, 3)
    assert arbos.ask(OWNER_PUBLIC, signature, "bool") == (True, 1603)


def test_batch_posters() -> None:
    arbos = ArbOS()
    posters = (L1, b"\x00", b"\x00")
    arbos.put_member(posters, 1, BOB)
    arbos.put((L1, b"\x00", b"\x01", BOB), 1, word(ALICE))
    found = arbos.ask(AGGREGATOR, "getPreferredAggregator(address)", "address,bool", ALICE)
    assert found == ((SEQUENCER, True), 800 + 3 + 6)
    assert arbos.ask(AGGREGATOR, "getDefaultAggregator()", "address") == (SEQUENCER, 803)
    assert arbos.ask(AGGREGATOR, "getBatchPosters()", "address[]")[0] == ("0x" + BOB.hex(),)
    found = arbos.ask(AGGREGATOR, "getFeeCollector(address)", "address", BOB)
    assert found == ("0x" + ALICE.hex(), 800 + 3 + 1600 + 3)
    refused = arbos.run(AGGREGATOR, "getFeeCollector(address)", ALICE)
    assert (refused.output, refused.gas_used) == (b"", 1603)
    assert arbos.ask(AGGREGATOR, "getTxBaseFee(address)", "uint256", ALICE) == (0, 806)


def test_accounts() -> None:
    arbos = ArbOS()
    arbos.evm.set_account(BOB, balance=77, code=b"\x60\x00" * 20)
    assert arbos.ask(INFO, "getBalance(address)", "uint256", BOB) == (77, 1506)
    found, gas = arbos.ask(INFO, "getCode(address)", "bytes", BOB)
    assert found == b"\x60\x00" * 20
    assert gas == 800 + 3 + 2100 + 3 * 2 + 3 * 4
    assert arbos.ask(INFO, "getCode(address)", "bytes", ALICE)[0] == b""


def test_statistics() -> None:
    found = ArbOS().ask(STATISTICS, "getStats()", ",".join(["uint256"] * 6))
    assert found == ((NUMBER, 0, 0, 0, 0, 0), 818)


def test_tickets() -> None:
    arbos = ArbOS()
    arbos.put((b"\x02", TICKET), 4, word(BOB))
    arbos.put((b"\x02", TICKET), 5, TIMESTAMP)
    arbos.put((b"\x02", TICKET), 6, 2)
    assert arbos.ask(RETRYABLE, "getLifetime()", "uint256") == (WEEK, 803)
    found = arbos.ask(RETRYABLE, "getTimeout(bytes32)", "uint256", TICKET)
    assert found == (TIMESTAMP + 2 * WEEK, 3206)
    found = arbos.ask(RETRYABLE, "getBeneficiary(bytes32)", "address", TICKET)
    assert found == ("0x" + BOB.hex(), 2406)
    assert arbos.ask(RETRYABLE, "getCurrentRedeemer()", "address")[0] == "0x" + "00" * 20
    arbos.evm.set_block(timestamp=TIMESTAMP + 1)  # the ticket has expired
    for signature in ("getTimeout(bytes32)", "getBeneficiary(bytes32)", "redeem(bytes32)"):
        refused = arbos.run(RETRYABLE, signature, TICKET)
        assert refused.output == bytes.fromhex("80698456")
        assert refused.gas_used == 800 + 3 + 800 + 3
    extended = ArbOS(60, timestamp=TIMESTAMP + 1)
    extended.evm.state = arbos.evm.state
    found = extended.ask(RETRYABLE, "getTimeout(bytes32)", "uint256", TICKET)
    assert found[0] == TIMESTAMP + 2 * WEEK


PARAMETERS = bytes.fromhex("000200271000040000000203e80080450b3231")
PARAMETERS += bytes.fromhex("016d001f00200002000002")


@pytest.mark.parametrize(
    ("signature", "result", "expected"),
    [
        ("stylusVersion()", "uint16", 2),
        ("inkPrice()", "uint32", 10_000),
        ("maxStackDepth()", "uint32", 262_144),
        ("freePages()", "uint16", 2),
        ("pageGas()", "uint16", 1000),
        ("pageRamp()", "uint64", 620_674_314),
        ("pageLimit()", "uint16", 128),
        ("minInitGas()", "uint64,uint64", (69 * 128, 11 * 32)),
        ("initCostScalar()", "uint64", 100),
        ("expiryDays()", "uint16", 365),
        ("keepaliveDays()", "uint16", 31),
        ("blockCacheSize()", "uint16", 32),
    ],
)
def test_parameters_of_stylus(signature: str, result: str, expected: Any) -> None:
    arbos = ArbOS()
    arbos.put(STYLUS, 0, word(PARAMETERS.ljust(32, b"\0")))
    words = 2 if isinstance(expected, tuple) else 1
    assert arbos.ask(WASM, signature, result) == (expected, 800 + 100 + 3 * words)


def test_programs_of_stylus() -> None:
    arbos = ArbOS(61)
    arbos.put(STYLUS, 0, word(PARAMETERS.ljust(32, b"\0")))
    arbos.evm.set_code(BOB, b"\xef\xf0\x00\x00")
    hours = (TIMESTAMP - 1_421_388_000) // 3600 - 24
    program = bytes.fromhex("0002006400320003") + hours.to_bytes(3, "big")
    program += bytes.fromhex("00000501")
    code_hash = keccak256(b"\xef\xf0\x00\x00")
    arbos.put(PROGRAMS, word(code_hash), word(program.ljust(32, b"\0")))
    assert arbos.ask(WASM, "programVersion(address)", "uint16", BOB) == (2, 4306)
    assert arbos.ask(WASM, "codehashVersion(bytes32)", "uint16", code_hash) == (2, 1706)
    assert arbos.ask(WASM, "codehashAsmSize(bytes32)", "uint32", code_hash)[0] == 5 * 1024
    assert arbos.ask(WASM, "programMemoryFootprint(address)", "uint16", BOB)[0] == 3
    cached = 11 * 32 + 49
    found, _ = arbos.ask(WASM, "programInitGas(address)", "uint64,uint64", BOB)
    assert found == (69 * 128 + 100 + cached, cached)
    age = TIMESTAMP - (1_421_388_000 + 3600 * hours)
    left = arbos.ask(WASM, "programTimeLeft(address)", "uint64", BOB)[0]
    assert left == 365 * 86_400 - age
    assert arbos.ask(WASM_CACHE, "codehashIsCached(bytes32)", "bool", code_hash) == (True, 1606)
    absent = arbos.run(WASM, "programVersion(address)", ALICE)
    assert absent.output == bytes.fromhex("6f809c4e")
    arbos.evm.set_block(timestamp=TIMESTAMP + 366 * 86_400)
    expired = arbos.run(WASM, "programVersion(address)", BOB)
    assert expired.output[:4] == bytes.fromhex("c9b12e52")
    assert word(expired.output[4:]) == age + 366 * 86_400
    arbos.put(STYLUS, 0, word((b"\x00\x03" + PARAMETERS[2:]).ljust(32, b"\0")))
    old = arbos.run(WASM, "programVersion(address)", BOB)
    assert old.output[:4] == bytes.fromhex("637d968f")
    assert (word(old.output[4:36]), word(old.output[36:])) == (2, 3)


def test_cache_managers() -> None:
    arbos = ArbOS()
    arbos.put_member((b"\x08", b"\x04"), 1, BOB)
    assert arbos.ask(WASM_CACHE, "isCacheManager(address)", "bool", BOB) == (True, 1606)
    assert arbos.ask(WASM_CACHE, "allCacheManagers()", "address[]")[0] == ("0x" + BOB.hex(),)


def test_what_old_callers_find() -> None:
    arbos = ArbOS()
    table, test, acts = map(precompile, (0x68, 0x69, 0xA4B05))
    assert arbos.ask(table, "size(address)", "uint256", ALICE)[0] == 0
    assert arbos.run(table, "upload(bytes)", b"12").success
    assert not arbos.run(table, "get(address,uint256)", ALICE, 0).success
    assert arbos.run(test, "burnArbGas(uint256)", 5000).gas_used == 3 + 5000
    burned = arbos.run(test, "burnArbGas(uint256)", GAS)
    assert (burned.success, burned.gas_used) == (True, GAS)
    refused = arbos.run(acts, "startBlock(uint256,uint64,uint64,uint64)", 0, 1, 2, 3)
    assert refused.output == bytes.fromhex("f812e656")


def test_numbers_of_l1_in_opcodes() -> None:
    arbos = ArbOS(block_hashes=HASHES)
    # Codes that return one word: NUMBER, PREVRANDAO, and BLOCKHASH of the number in the calldata.
    number = bytes.fromhex("435f5260205ff3")
    randomness = bytes.fromhex("445f5260205ff3")
    arbos.evm.set_code(BOB, number)
    assert word(arbos.evm.call(BOB).output) == L1_NUMBER
    arbos.evm.set_code(BOB, randomness)
    assert word(arbos.evm.call(BOB).output) == 1
    blockhash = bytes.fromhex("5f35405f5260205ff3")
    arbos.evm.set_code(BOB, blockhash)
    for back in (1, 255, 256):
        asked = L1_NUMBER - back
        arbos.put((b"\x06",), 1 + asked % 256, 1_000 + back)
        result = arbos.evm.call(BOB, asked.to_bytes(32, "big"))
        assert word(result.output) == 1_000 + back
    for asked in (L1_NUMBER, L1_NUMBER + 1, L1_NUMBER - 257, 2**64 + L1_NUMBER - 1, NUMBER - 1):
        assert word(arbos.evm.call(BOB, asked.to_bytes(32, "big")).output) == 0
