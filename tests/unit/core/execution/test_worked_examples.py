"""Tests the 33 worked examples of state gas under the rules of Amsterdam's devnet of April 2026.

Each example has the gas that its transaction pays (as in the receipt), and the regular gas and
state gas that its block counts. The numbers come from the devnet's public tests. A byte of state
costs 1,174 gas at the usual gas limit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from fastevm import Transaction
from fastevm.bench.programs.assembler import assemble
from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.transaction.transaction import sign_authorization
from fastevm.errors import InvalidBlock
from tests.unit.chain.blocks import KEY, SENDER, build, new_chain, payment

APRIL = "amsterdam-2026-04"
L = 120_000_000
CAP = 1 << 24
CONTRACT, OTHER, BURNING = b"\xc0" * 20, b"\xd0" * 20, b"\xbb" * 20
CHILD, GRANDCHILD, STORING, ABSENT = (bytes([n]) * 20 for n in (0xCA, 0xCB, 0xCC, 0xF0))
SIGNERS = tuple(bytes([number]) * 32 for number in range(1, 11))
GAS = 15_000_000
SET = "1 0 SSTORE"
SET_AND_CLEAR = "1 0 SSTORE 0 0 SSTORE"
REVERT = "0 0 REVERT"


@dataclass(frozen=True)
class Example:
    """A transaction, additional accounts, and the expected gas."""

    number: int
    title: str
    transaction: Transaction
    accounts: Mapping[bytes, Mapping[str, str]]
    paid: int
    regular: int
    state: int
    limit: int = L

    def __str__(self) -> str:
        return f"{self.number}: {self.title}"


def call(address: bytes, gas: str = "GAS", value: int = 0, kind: str = "CALL") -> str:
    return f"0 0 0 0 {value} 0x{address.hex()} {gas} {kind}"


def coded(source: str, balance: int = 0) -> dict[str, str]:
    return {"code": "0x" + assemble(source).hex(), "balance": hex(balance)}


def run(
    number: int, title: str, source: str, figures: tuple[int, int, int], *, gas: int = GAS,
    limit: int = L, balance: int = 0, data: bytes = b"", **others: str,
) -> Example:  # fmt: skip
    """Returns an example that calls CONTRACT with the code ``source``.

    ``figures``: paid gas, regular gas and state gas. ``others``: code of other contracts by name.
    """
    accounts = {CONTRACT: coded(source, balance)}
    named = {"child": CHILD, "grandchild": GRANDCHILD, "storing": STORING}
    accounts |= {named[name]: coded(code) for name, code in others.items()}
    gas = min(gas, limit)
    transaction = payment(0, value=0, to=CONTRACT, gas_limit=gas, data=data)
    return Example(number, title, transaction, accounts, *figures, limit)


def creation(
    number: int, title: str, data: bytes, figures: tuple[int, int, int], gas: int = GAS,
    value: int = 0,
) -> Example:  # fmt: skip
    transaction = payment(0, to=None, data=data, gas_limit=gas, value=value)
    return Example(number, title, transaction, {}, *figures)


def authorizations(
    number: int, title: str, count: int, existing: int, figures: tuple[int, int, int],
    nonce: int = 0, **fields: Any,
) -> Example:  # fmt: skip
    """Returns an example with ``count`` authorizations.

    The accounts of the first ``existing`` signers exist before the transaction.
    """
    signed = [
        sign_authorization(key, chain_id=1, address=CHILD, nonce=nonce) for key in SIGNERS[:count]
    ]
    transaction = Transaction.build(
        type=4, chain_id=1, nonce=0, to=OTHER, gas_limit=GAS, max_fee_per_gas=2 * 10**9,
        max_priority_fee_per_gas=0, authorization_list=signed, **fields,
    ).sign(KEY)  # fmt: skip
    accounts = {public_key_address(key): {"balance": "0x1"} for key in SIGNERS[:existing]}
    return Example(number, title, transaction, accounts, *figures)


def listing(
    number: int, title: str, keys: tuple[int, ...], paid: int, data: bytes = b""
) -> Example:
    """Returns an example that calls OTHER with an access list.

    ``keys``: for each address in the list, its number of storage keys.
    """
    entries = [(bytes([at + 1]) * 20, list(range(count))) for at, count in enumerate(keys)]
    transaction = Transaction.build(
        type=1, chain_id=1, nonce=0, to=OTHER, gas_limit=GAS, gas_price=2 * 10**9,
        access_list=entries, data=data,
    ).sign(KEY)  # fmt: skip
    return Example(number, title, transaction, {}, paid, paid, 0)


def copied(code: bytes) -> bytes:
    """Returns init code that deploys ``code``."""
    return assemble(f"{len(code)} 0 DUP2 11 DUP3 CODECOPY RETURN") + code


def in_memory(init_code: bytes) -> str:
    """Returns code that stores the init code in the first word of memory."""
    return f"0x{init_code.ljust(32, bytes(1)).hex()} 0 MSTORE"


def transfers() -> Iterator[Example]:
    transaction = payment(0, value=1, to=OTHER)
    yield Example(1, "a payment", transaction, {}, 21_000, 21_000, 0)


def slots() -> Iterator[Example]:
    for limit in (100_000_000, L):
        title = f"a slot at a gas limit of {limit:,}"
        yield run(2, title, SET, (63_574, 26_006, 37_568), limit=limit)
    for number, limit, state in (
        (3, 1_000_000, 32), (4, 30_000_000, 4_800), (4, 36_000_000, 4_800),
        (5, 60_000_000, 21_184), (5, 200_000_000, 70_336), (5, 300_000_000, 103_104),
        (5, 500_000_000, 185_024), (5, 1_000_000_000, 381_632),
    ):  # fmt: skip
        title = f"a slot at a gas limit of {limit:,}"
        yield run(number, title, SET, (26_006 + state, 26_006, state), limit=limit)
    yield run(6, "a slot that is zero again", SET_AND_CLEAR, (23_312, 26_112, 0))
    yield run(7, "a slot of a call that fails", f"{SET} {REVERT}", (26_012, 26_012, 0))


def creations() -> Iterator[Example]:
    source, figures = "0 0 MSTORE 0 {} 1 0 0 {} GT 0 SSTORE", (204_088, 35_032, 169_056)
    yield run(8, "CREATE", source.format("", "CREATE"), figures)
    figures = (204_097, 35_041, 169_056)
    yield run(8, "CREATE2", source.format(0, "CREATE2"), figures)
    yield creation(9, "the least gas", b"", (161_488, 30_000, 131_488), gas=161_488)
    yield creation(10, "one byte of init code", b"\0", (161_494, 30_006, 131_488))
    for size, figures in (
        (1, (162_747, 30_085, 132_662)),
        (32, (199_141, 30_085, 169_056)),
        (0x8000, (38_642_464, 41_344, 38_601_120)),
    ):
        code = assemble(f"{size} 0 RETURN")
        yield creation(11, f"a contract of {size} bytes", code, figures, gas=60_000_000)
    figures = (16_908_704, CAP, 131_488)
    code = assemble("32769 0 RETURN")
    yield creation(12, "a contract that is too long", code, figures, gas=55_379_510)
    figures = (39_171_964, 2_118_856, 38_601_120)
    data = copied(b"\x5b" * 0x8000)
    yield creation(13, "just the gas for the longest code", data, figures, gas=39_171_964)
    figures = (4_215_304, 4_215_304, 132_662)
    code = assemble("1 0 RETURN").ljust(0x10000, bytes(1))
    yield creation(14, "the longest init code", code, figures)


def calls() -> Iterator[Example]:
    dead = (0xDEAD).to_bytes(20, "big")
    source = f"{call(dead, '0', 1)} 0 SSTORE".replace(f"0x{dead.hex()}", "0xdead")
    yield run(15, "ether for nobody", source, (204_380, 35_324, 169_056), balance=1)
    source, figures = f"{call(ABSENT, '0', 1)} POP STOP", (161_811, 30_323, 131_488)
    yield run(16, "the same with little gas", source, figures, gas=184_111, balance=1)
    source = "{} 0 SSTORE 1 1 SSTORE"
    poor = source.format(call(dead, "100000", 1)).replace(f"0x{dead.hex()}", "0xdead")
    figures = (206_586, 37_530, 169_056)
    yield run(17, "no ether for nobody", poor, figures, gas=CAP + 5 * 32 * 1_174 - 18_784)
    poor, figures = source.format(call(OTHER, "100000", 1)), (75_098, 37_530, 37_568)
    yield run(17, "no ether for an account", poor, figures, gas=CAP + 37_568)
    figures = (160_091, 28_603, 131_488)
    yield run(18, "SELFDESTRUCT for nobody", "0xdead SELFDESTRUCT", figures, balance=1)


def envelopes() -> Iterator[Example]:
    figures = (55_502, 28_500, 158_490)
    yield authorizations(19, "an authorization of an account", 1, 1, figures)
    figures = (186_990, 28_500, 158_490)
    yield authorizations(20, "a wrong nonce", 1, 1, figures, nonce=7)
    figures = (366_020, 96_000, 1_584_900)
    yield authorizations(21, "ten authorizations of accounts", 10, 10, figures)
    figures = (90_004, 36_000, 316_980)
    yield authorizations(22, "two authorizations", 2, 2, figures)
    for keys, paid in (((0,), 24_680), ((1,), 28_628), ((3,), 36_524), ((1, 1), 36_256)):
        yield listing(23, f"an access list with keys {keys}", keys, paid)
    transaction = payment(0, value=0, to=OTHER, data=b"\0", gas_limit=GAS)
    yield Example(24, "the floor of a byte", transaction, {}, 21_064, 21_064, 0)
    yield listing(24, "the floor of data and list", (1,), 34_504, data=bytes(159))
    floor = (255_880, 255_880, 158_490)
    fields = {"data": bytes(3_618), "access_list": [(OTHER, [1])]}
    yield authorizations(24, "the floor of an authorization", 1, 1, floor, **fields)
    source, figures = f"{call(CHILD, '2')} 0 SSTORE", (66_194, 28_626, 37_568)
    yield run(25, "SLOTNUM with two gas", source, figures, gas=100_000, child="SLOTNUM STOP")


def failures() -> Iterator[Example]:
    create = "0 1 0 0 CREATE2"
    source = f"0 0 MSTORE {create} ISZERO ISZERO 0 SSTORE {create} 1 SSTORE"
    figures = (16_687_020, 16_517_964, 169_056)
    yield run(26, "a collision", source, figures, gas=33_554_432)
    after = f"{call(STORING, '42573')} 0 SSTORE"
    source, paid = f"{call(CHILD)} POP {after}", 21_000 + 55_137 + 37_568
    child = f"{SET_AND_CLEAR} {REVERT}"
    figures = (paid, 76_137, 0)
    yield run(27, "a credit is lost", source, figures, gas=CAP, child=child, storing=SET)
    init = assemble(child)
    child = f"{in_memory(init)} {len(init)} 0 0 CREATE POP {REVERT}"
    figures = (254_224, 85_168, 0)
    yield run(28, "those of a creation", source, figures, gas=CAP, child=child, storing=SET)
    child, figures = f"{call(GRANDCHILD)} POP {REVERT}", (116_327, 78_759, 0)
    yield run(
        29, "one of a grandchild", source, figures, gas=CAP, child=child, storing=SET,
        grandchild=f"{SET_AND_CLEAR} STOP",
    )  # fmt: skip
    source, two = f"{call(CHILD, '500000')} POP {{}}", "1 0 SSTORE 1 1 SSTORE"
    source, gas = source.format(two), CAP + 37_568
    figures = (571_203, 496_067, 75_136)
    yield run(30, "a child that halts", source, figures, gas=gas, child=f"{two} INVALID")
    figures = (118_789, 43_653, 75_136)
    yield run(30, "a child that reverts", source, figures, gas=gas, child=f"{two} {REVERT}")


def destructions() -> Iterator[Example]:
    for count, paid in ((0, 35_027), (1, 40_033), (5, 60_057)):
        stores = " ".join(f"1 {slot} SSTORE" for slot in range(count))
        init = assemble(f"{stores} ADDRESS SELFDESTRUCT")
        source = f"{in_memory(init)} {len(init)} 0 0 CREATE POP"
        title, gas = f"a short life with {count} slots", CAP + (112 + 32 * count) * 1_174
        yield run(31, title, source, (paid, paid, 0), gas=gas)
    code, figures = assemble("0xdead SELFDESTRUCT"), (169_157, 37_669, 131_488)
    yield creation(32, "init code that destroys itself", code, figures, gas=301_645, value=1)
    source = "CALLDATASIZE 0 0 CALLDATACOPY 0 0 0 0 0 CALLDATASIZE 0 0 CREATE GAS CALL POP"
    data = copied(b"\x30\xff".ljust(256, bytes(1)))
    figures = (38_088, 38_088, 0)
    yield run(33, "code that destroys itself", source, figures, gas=17_209_248, data=data)


EXAMPLES = [
    example
    for part in (transfers, slots, creations, calls, envelopes, failures, destructions)
    for example in part()
]


def made(example: Example, transactions: list[Transaction]) -> Any:
    """Builds a block of these transactions on the example's accounts. Returns its result."""
    alloc = {OTHER.hex(): {"balance": "0x1"}, BURNING.hex(): coded("INVALID")}
    alloc |= {address.hex(): dict(account) for address, account in example.accounts.items()}
    chain = new_chain(APRIL, alloc=alloc, gasLimit=example.limit)
    return build(chain, transactions=transactions)[1]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_a_transaction_pays_and_counts(example: Example) -> None:
    result = made(example, [example.transaction])
    assert result.receipts[0].gas_used == example.paid
    assert result.gas_used == max(example.regular, example.state)
    if example.limit >= 100_000_000:
        check_regular(example)
        check_state(example)
    else:
        assert example.paid == example.regular + example.state


def check_regular(example: Example) -> None:
    """Asserts the regular gas.

    A block's gas is the larger sum of regular gas or state gas. Three more transactions make sure
    that this is the regular gas.
    """
    burning = [payment(n, value=0, to=BURNING, gas_limit=CAP) for n in range(1, 4)]
    result = made(example, [example.transaction, *burning])
    assert result.gas_used == example.regular + 3 * CAP


def check_state(example: Example) -> None:
    """Asserts the state gas, which reduces the gas limit that the next transaction may have."""
    left = example.limit - example.state + 21_000

    def add(gas: int) -> None:
        after = payment(1, value=0, to=OTHER, gas_limit=gas, gas_price=10**9)
        made(example, [example.transaction, after])

    add(left)
    with pytest.raises(InvalidBlock, match="gas limit reached"):
        add(left + 1)


def test_every_example_is_here() -> None:
    assert {example.number for example in EXAMPLES} == set(range(1, 34))


def test_the_payment_leaves_the_log_of_the_first_example() -> None:
    (receipt,) = made(EXAMPLES[0], [EXAMPLES[0].transaction]).receipts
    (log,) = receipt.logs
    assert log.address.hex() == "f" * 39 + "e"
    assert log.topics[1:] == (SENDER.rjust(32, b"\0"), OTHER.rjust(32, b"\0"))
    assert log.data == (1).to_bytes(32, "big")


@pytest.mark.parametrize("gas", [161_487, 20_999])
def test_less_than_the_least_gas_of_the_ninth_is_refused(gas: int) -> None:
    example = creation(9, "too little", b"", (0, 0, 0), gas=gas)
    with pytest.raises(InvalidBlock, match="want 161488"):
        made(example, [example.transaction])


def test_one_gas_less_than_in_the_thirteenth_burns_the_gas() -> None:
    data = copied(b"\x5b" * 0x8000)
    example = creation(13, "too little", data, (16_908_704, CAP, 131_488), gas=39_171_963)
    result = made(example, [example.transaction])
    assert result.receipts[0].gas_used == 16_908_704
    assert result.receipts[0].status == 0
