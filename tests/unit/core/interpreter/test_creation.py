"""Tests CREATE, CREATE2, creation messages and SELFDESTRUCT."""

import pytest

from fastevm.core.primitives import rlp
from fastevm.core.primitives.keccak import keccak256
from fastevm.testing.interpreter import SENDER, BareMachine

from .programs import MAIN, OTHER, THIRD, asm, returning, store_initcode

RUNTIME = asm(1, "POP")
INITCODE = asm(
    int.from_bytes(RUNTIME, "big"), 0, "MSTORE", len(RUNTIME), 32 - len(RUNTIME), "RETURN"
)


def address_of(creator: bytes, nonce: int) -> bytes:
    return keccak256(rlp.encode([creator, nonce.to_bytes(8, "big").lstrip(b"\0")]))[12:]


def address2_of(creator: bytes, salt: int, initcode: bytes) -> bytes:
    digest = keccak256(initcode)
    return keccak256(b"\xff" + creator + salt.to_bytes(32, "big") + digest)[12:]


def creator_of(initcode: bytes, value: int = 0) -> bytes:
    return store_initcode(initcode) + returning(len(initcode), 0, value, "CREATE")


@pytest.mark.parametrize("nonce", [0, 1, 0x7F, 0x80, 0xFF, 0x100, 0xFFFF, 1 << 40, (1 << 64) - 2])
def test_create_names_its_contract_by_creator_and_nonce(nonce: int) -> None:
    accounts = {MAIN: {"code": creator_of(INITCODE), "nonce": nonce}}
    machine = BareMachine("osaka", accounts)
    output = machine.call(MAIN).output
    assert output[12:] == address_of(MAIN, nonce)
    assert machine.account(output[12:]) == {"balance": 0, "nonce": 1, "code": RUNTIME}
    assert machine.account(MAIN)["nonce"] == nonce + 1


@pytest.mark.parametrize("salt", [0, 1, (1 << 256) - 1])
def test_create2_names_its_contract_by_salt_and_init_code(salt: int) -> None:
    code = store_initcode(INITCODE) + returning(salt, len(INITCODE), 0, 5, "CREATE2")
    machine = BareMachine("osaka", {MAIN: {"code": code, "balance": 9}})
    output = machine.call(MAIN).output
    assert output[12:] == address2_of(MAIN, salt, INITCODE)
    assert machine.account(output[12:]) == {"balance": 5, "nonce": 1, "code": RUNTIME}


def test_a_creator_at_the_last_nonce_cannot_create_and_loses_nothing() -> None:
    accounts = {MAIN: {"code": creator_of(INITCODE), "nonce": (1 << 64) - 1}}
    machine = BareMachine("osaka", accounts)
    outcome = machine.call(MAIN, gas=200_000)
    assert outcome.output == bytes(32)
    assert outcome.gas_left > 150_000
    assert machine.account(MAIN)["nonce"] == (1 << 64) - 1


@pytest.mark.parametrize("there", [{"nonce": 1}, {"code": b"\x00"}, {"storage": {1: 1}}])
def test_nothing_is_created_where_something_is(there: dict[str, object]) -> None:
    created = address_of(MAIN, 1)
    accounts = {MAIN: {"code": creator_of(INITCODE), "nonce": 1}, created: there}
    machine = BareMachine("osaka", accounts)
    outcome = machine.call(MAIN, gas=200_000)
    assert outcome.output == bytes(32)
    assert outcome.gas_left < 200_000 // 32
    assert machine.account(MAIN)["nonce"] == 2
    direct = BareMachine("osaka", {created: there}).create(created, INITCODE)
    assert (direct.error, direct.gas_left) == ("contract address collision", 0)


def test_ether_alone_does_not_stand_in_the_way() -> None:
    created = address_of(MAIN, 1)
    accounts = {MAIN: {"code": creator_of(INITCODE), "nonce": 1}, created: {"balance": 4}}
    machine = BareMachine("osaka", accounts)
    assert machine.call(MAIN).output[12:] == created
    assert machine.account(created)["balance"] == 4


def test_a_failing_creation_keeps_the_nonce_and_gives_reverted_data() -> None:
    reverting = asm(0xAB, 0, "MSTORE8", 1, 0, "REVERT")
    code = store_initcode(reverting) + asm(len(reverting), 0, 0, "CREATE POP")
    copying = asm(
        "RETURNDATASIZE", 0, 32, "RETURNDATACOPY RETURNDATASIZE", 0, "MSTORE", 33, 0, "RETURN"
    )
    machine = BareMachine("osaka", {MAIN: {"code": code + copying, "nonce": 1}})
    output = machine.call(MAIN).output
    assert output == (1).to_bytes(32, "big") + b"\xab"
    assert machine.account(MAIN)["nonce"] == 2
    assert machine.account(address_of(MAIN, 1)) is None


def test_in_frontier_a_contract_whose_code_cannot_be_paid_has_none() -> None:
    initcode = asm(0x100, 0, "RETURN")
    for fork, created in (("frontier", True), ("homestead", False)):
        machine = BareMachine(fork)
        outcome = machine.create(OTHER, initcode, gas=20_000)
        assert (outcome.status == 1) == created
        assert (machine.account(OTHER) is not None) == created
        if created:
            assert machine.account(OTHER)["code"] == b""
            assert outcome.gas_left > 19_000
        else:
            assert outcome.error == "contract creation code storage out of gas"


def test_init_code_is_paid_by_the_word_from_shanghai_on() -> None:
    used = {}
    for fork in ("london", "shanghai"):
        code = asm(0, 96, "MSTORE", 100, 0, 0, "CREATE")
        used[fork] = (
            100_000 - BareMachine(fork, {MAIN: {"code": code}}).call(MAIN, gas=100_000).gas_left
        )
    assert used["shanghai"] - used["london"] == 2 * 4


@pytest.mark.parametrize(("fork", "nonce"), [("homestead", 0), ("spuriousdragon", 1)])
def test_the_nonce_of_a_new_contract(fork: str, nonce: int) -> None:
    machine = BareMachine(fork, {SENDER: {"balance": 10}})
    outcome = machine.create(OTHER, INITCODE, value=3)
    assert outcome.output == RUNTIME
    assert machine.account(OTHER) == {"balance": 3, "nonce": nonce, "code": RUNTIME}
    assert machine.account(SENDER)["balance"] == 7


# --- SELFDESTRUCT ---


@pytest.mark.parametrize(("fork", "refund"), [("homestead", 24_000), ("london", 0)])
def test_a_destroyed_contract_is_gone_at_the_end(fork: str, refund: int) -> None:
    machine = BareMachine(fork, {MAIN: {"code": asm(THIRD, "SELFDESTRUCT"), "balance": 6}})
    assert machine.call(MAIN).refund == refund
    assert machine.account(MAIN) is None
    assert machine.account(THIRD)["balance"] == 6


def test_from_cancun_on_an_older_contract_only_gives_its_ether() -> None:
    code = asm(THIRD, "SELFDESTRUCT")
    machine = BareMachine("cancun", {MAIN: {"code": code, "balance": 6, "storage": {1: 1}}})
    machine.call(MAIN)
    assert machine.account(MAIN) == {"balance": 0, "nonce": 0, "code": code}
    assert machine.storage(MAIN, 1) == 1
    assert machine.account(THIRD)["balance"] == 6


@pytest.mark.parametrize(("fork", "left"), [("london", None), ("cancun", 6)])
def test_ether_left_to_itself_is_lost_only_with_the_contract(fork: str, left: int | None) -> None:
    machine = BareMachine(fork, {MAIN: {"code": asm("ADDRESS SELFDESTRUCT"), "balance": 6}})
    machine.call(MAIN)
    account = machine.account(MAIN)
    assert (account and account["balance"]) == left


def test_a_contract_of_the_same_transaction_is_destroyed_still() -> None:
    suicidal = asm("CALLER SELFDESTRUCT")
    machine = BareMachine(
        "osaka", {MAIN: {"code": creator_of(suicidal, 5), "nonce": 1, "balance": 8}}
    )
    created = machine.call(MAIN).output[12:]
    assert created == address_of(MAIN, 1)
    assert machine.account(created) is None
    assert machine.account(MAIN)["balance"] == 8


def test_the_refund_for_a_contract_is_given_once() -> None:
    calls = asm(*[*[0] * 5, OTHER, 50_000, "CALL POP"] * 2)
    accounts = {MAIN: {"code": calls}, OTHER: {"code": asm(THIRD, "SELFDESTRUCT")}}
    assert BareMachine("istanbul", accounts).call(MAIN).refund == 24_000


@pytest.mark.parametrize(
    ("fork", "balance", "alive", "price"),
    [
        ("homestead", 1, False, 0),
        ("tangerinewhistle", 0, False, 30_000),
        ("tangerinewhistle", 1, True, 5_000),
        ("spuriousdragon", 0, False, 5_000),
        ("spuriousdragon", 1, False, 30_000),
        ("osaka", 1, False, 32_600),
        ("osaka", 0, True, 7_600),
    ],
)
def test_the_price_of_selfdestruct(fork: str, balance: int, alive: bool, price: int) -> None:
    accounts = {MAIN: {"code": asm(THIRD, "SELFDESTRUCT"), "balance": balance}}
    if alive:
        accounts[THIRD] = {"balance": 1}
    outcome = BareMachine(fork, accounts).call(MAIN, gas=50_000)
    assert 50_000 - outcome.gas_left == 3 + price
