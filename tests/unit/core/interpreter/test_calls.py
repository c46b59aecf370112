"""Tests calls: passed gas, stipend, depth, balance, return data, delegations, precompiles."""

import pytest

from fastevm.testing.interpreter import SENDER, BareMachine

from .programs import MAIN, OTHER, THIRD, asm, returning

IDENTITY = bytes(19) + b"\x04"
RIPEMD160 = bytes(19) + b"\x03"
WORD_END = (1 << 256) - 1


def word(output: bytes) -> int:
    return int.from_bytes(output, "big")


def call_of(to: bytes, gas: int = WORD_END, value: int = 0, kind: str = "CALL") -> bytes:
    values = [value] if kind in ("CALL", "CALLCODE") else []
    return asm(0, 0, 0, 0, *values, to, gas, kind)


@pytest.mark.parametrize(("fork", "warm"), [("tangerinewhistle", 700), ("osaka", 100)])
def test_a_frame_keeps_one_64th_of_its_gas(fork: str, warm: int) -> None:
    # OTHER returns the gas that it received, minus the price of GAS.
    caller = asm(32, 0, 0, 0, 0, OTHER, WORD_END, "CALL", 32, 0, "RETURN")
    accounts = {MAIN: {"code": caller}, OTHER: {"code": returning("GAS")}}
    outcome = BareMachine(fork, accounts).call(MAIN, gas=100_000)
    cold = 2_500 if fork == "osaka" else 0
    left = 100_000 - 7 * 3 - warm - cold - 3
    assert word(outcome.output) == left - left // 64 - 2


def test_before_that_asking_for_more_than_there_is_is_out_of_gas() -> None:
    accounts = {MAIN: {"code": call_of(OTHER, 99_000)}, OTHER: {"code": asm("STOP")}}
    assert BareMachine("homestead", accounts).call(MAIN, gas=99_000).error == "out of gas"
    assert BareMachine("homestead", accounts).call(MAIN, gas=99_100).status == 1


def test_value_brings_a_stipend() -> None:
    caller = asm(32, 0, 0, 0, 1, OTHER, 0, "CALL", 32, 0, "RETURN")
    accounts = {MAIN: {"code": caller, "balance": 5}, OTHER: {"code": returning("GAS")}}
    assert word(BareMachine("osaka", accounts).call(MAIN).output) == 2_300 - 2


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("fork", ["homestead", "tangerinewhistle", "spuriousdragon", "osaka"])
def test_a_call_that_brings_an_account_to_life_pays_for_it(fork: str, value: int) -> None:
    accounts = {MAIN: {"code": call_of(THIRD, 0, value), "balance": 5}}
    machine = BareMachine(fork, accounts)
    used = 100_000 - machine.call(MAIN, gas=100_000).gas_left
    base = {"homestead": 40, "osaka": 2_600}.get(fork, 700)
    pays = value or fork in ("homestead", "tangerinewhistle")
    assert used == 7 * 3 + base + (25_000 if pays else 0) + (9_000 - 2_300 if value else 0)
    assert (machine.account(THIRD) is not None) == bool(pays)


def test_the_depth_limit_gives_the_gas_back() -> None:
    # Each frame calls itself and adds 1 to the result of the inner frame.
    inner = asm(32, 0, 0, 0, 0, MAIN, "GAS CALL POP")
    deeper = inner + returning(1, 0, "MLOAD ADD")
    machine = BareMachine("osaka", {MAIN: {"code": deeper}})
    outcome = machine.call(MAIN, gas=1 << 55)
    assert word(outcome.output) == 1025


def test_too_little_balance_fails_the_call_only() -> None:
    caller = asm(1, 0, "MSTORE8") + returning(0, 0, 0, 0, 9, OTHER, 50_000, "CALL")
    accounts = {MAIN: {"code": caller, "balance": 8}, OTHER: {"code": asm(1, 0, "SSTORE")}}
    machine = BareMachine("osaka", accounts)
    outcome = machine.call(MAIN, gas=100_000)
    assert word(outcome.output) == 0
    assert machine.account(MAIN)["balance"] == 8
    assert machine.storage(OTHER, 0) == 0


@pytest.mark.parametrize(
    ("kind", "address", "caller", "value", "storage"),
    [
        ("CALL", OTHER, MAIN, 3, OTHER),
        ("CALLCODE", MAIN, MAIN, 3, MAIN),
        ("DELEGATECALL", MAIN, SENDER, 7, MAIN),
    ],
)
def test_each_kind_of_call_has_its_own_view(
    kind: str, address: bytes, caller: bytes, value: int, storage: bytes
) -> None:
    view = asm(
        "ADDRESS", 0, "MSTORE CALLER", 32, "MSTORE CALLVALUE", 64, "MSTORE", 1, 1, "SSTORE",
        96, 0, "RETURN",
    )  # fmt: skip
    values = [3] if kind != "DELEGATECALL" else []
    code = asm(96, 0, 0, 0, *values, OTHER, "GAS", kind, "POP", 96, 0, "RETURN")
    machine = BareMachine(
        "osaka",
        {MAIN: {"code": code, "balance": 10}, OTHER: {"code": view}, SENDER: {"balance": 10}},
    )
    output = machine.call(MAIN, value=7).output
    assert output[12:32] == address
    assert output[44:64] == caller
    assert word(output[64:]) == value
    assert machine.storage(storage, 1) == 1


def test_output_is_cut_to_the_space_for_it_and_return_data_is_whole() -> None:
    callee = asm(word(b"\x11" * 32), 0, "MSTORE", 32, 0, "RETURN")
    caller = asm(
        4, 0, 0, 0, 0, OTHER, "GAS CALL POP RETURNDATASIZE", 32, "MSTORE",
        8, 24, 64, "RETURNDATACOPY", 96, 0, "RETURN",
    )  # fmt: skip
    output = (
        BareMachine("osaka", {MAIN: {"code": caller}, OTHER: {"code": callee}}).call(MAIN).output
    )
    assert output[:32] == b"\x11" * 4 + bytes(28)
    assert word(output[32:64]) == 32
    assert output[64:] == b"\x11" * 8 + bytes(24)


@pytest.mark.parametrize(
    ("step", "size"),
    [
        (call_of(OTHER), 32),
        (asm(0, 0, 0, "CREATE"), 0),
        (call_of(THIRD), 0),
        (asm(0, 0, 0, 0, 99, THIRD, 0, "CALL"), 0),
        (asm(0, 0, 99, "CREATE"), 0),
    ],
)
def test_return_data_is_of_the_last_call_or_creation(step: bytes, size: int) -> None:
    reverting = {"code": asm(32, 0, "REVERT")}
    code = call_of(OTHER) + step + returning("RETURNDATASIZE")
    machine = BareMachine("osaka", {MAIN: {"code": code}, OTHER: reverting})
    assert word(machine.call(MAIN).output) == size


def test_an_account_that_delegates_runs_the_others_code_on_its_own_storage() -> None:
    designator = b"\xef\x01\x00" + THIRD
    delegate = asm(1, 1, "SSTORE ADDRESS", 0, "MSTORE", 32, 0, "RETURN")
    caller = asm(32, 0, 0, 0, 0, OTHER, "GAS CALL POP", 32, 0, "RETURN")
    accounts = {MAIN: {"code": caller}, OTHER: {"code": designator}, THIRD: {"code": delegate}}
    machine = BareMachine("osaka", accounts)
    assert machine.call(MAIN).output[12:] == OTHER
    assert (machine.storage(OTHER, 1), machine.storage(THIRD, 1)) == (1, 0)
    assert machine.call(OTHER).output[12:] == OTHER
    size = returning(OTHER, "EXTCODESIZE")
    assert word(BareMachine("osaka", accounts | {MAIN: {"code": size}}).call(MAIN).output) == 23
    assert BareMachine("cancun", accounts).call(OTHER).error == "invalid opcode"


@pytest.mark.parametrize(("delegate", "extra"), [(MAIN, 100), (THIRD, 2_600)])
def test_the_delegate_is_paid_for_as_one_more_account(delegate: bytes, extra: int) -> None:
    designator = b"\xef\x01\x00" + delegate
    code = call_of(OTHER, 0)
    machine = BareMachine("osaka", {MAIN: {"code": code}, OTHER: {"code": designator}})
    assert 50_000 - machine.call(MAIN, gas=50_000).gas_left == 7 * 3 + 2_600 + extra


def test_delegations_are_not_followed_twice_and_never_to_a_precompile() -> None:
    accounts = {
        MAIN: {"code": returning(0, 0, 0, 0, 0, OTHER, 50_000, "CALL")},
        OTHER: {"code": b"\xef\x01\x00" + THIRD},
        THIRD: {"code": b"\xef\x01\x00" + MAIN},
    }
    assert word(BareMachine("osaka", accounts).call(MAIN).output) == 0
    accounts[OTHER] = {"code": b"\xef\x01\x00" + IDENTITY}
    echo = asm(7, 0, "MSTORE", 0, 0, 32, 0, 0, OTHER, 50_000, "CALL RETURNDATASIZE")
    accounts[MAIN] = {"code": echo + asm(0, "MSTORE", 32, 0, "RETURN")}
    assert word(BareMachine("osaka", accounts).call(MAIN).output) == 0


def test_a_precompile_answers_where_it_was_moved_to() -> None:
    echo = asm(7, 0, "MSTORE", 32, 32, 32, 0, 0, OTHER, 50_000, "CALL", 64, 0, "RETURN")
    machine = BareMachine("osaka", {MAIN: {"code": echo}}, moves={OTHER: 4})
    assert word(machine.call(MAIN).output[32:]) == 7
    gone = BareMachine(
        "osaka", {MAIN: {"code": echo.replace(OTHER, IDENTITY)}}, moves={IDENTITY: 0}
    )
    assert word(gone.call(MAIN).output[32:]) == 0


def test_a_failing_precompile_consumes_what_it_was_given() -> None:
    # Calls the precompile 0x06 (BN254 addition) with a point that is not on the curve.
    bad = asm(1, 0, "MSTORE") + returning(0, 0, 128, 0, bytes(19) + b"\x06", 40_000, "STATICCALL")
    outcome = BareMachine("osaka", {MAIN: {"code": bad}}).call(MAIN, gas=100_000)
    assert word(outcome.output) == 0
    assert outcome.gas_left < 60_000


def test_a_touch_of_ripemd160_outlives_the_failure_around_it() -> None:
    # OTHER calls the empty accounts 3 and 4, and then fails with INVALID.
    touching = call_of(RIPEMD160, 0) + call_of(IDENTITY, 0) + asm("INVALID")
    accounts = {
        MAIN: {"code": call_of(OTHER, 50_000)},
        OTHER: {"code": touching},
        RIPEMD160: {},
        IDENTITY: {},
    }
    machine = BareMachine("spuriousdragon", accounts)
    assert machine.call(MAIN).status == 1
    assert machine.account(RIPEMD160) is None
    assert machine.account(IDENTITY) is not None
