"""Tests which blocks and states a chain keeps, its canonical branch, and rejected blocks."""

import pytest

from fastevm.chain.chain import Chain
from fastevm.chain.fork_choice import HeadChange
from fastevm.chain.retention import ChainLimits
from fastevm.core.execution.block.validation import transactions_root
from fastevm.core.execution.parallel.parallel import counts
from fastevm.core.execution.types import Block, Withdrawal
from fastevm.core.primitives.replace import replace
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidBlock, StateUnavailableError, UnknownBlockError

from .blocks import RECIPIENT, build, grow, new_chain, payment

FORKS = ("Frontier", "SpuriousDragon", "Byzantium", "London", "Paris", "Shanghai", "Cancun")
FORKS += ("Prague", "Osaka", "BPO2")


def with_header(block, **changes):
    return Block(
        replace(block.header, **changes), block.transactions, block.ommers, block.withdrawals
    )


def refusal(chain, block):
    head, known = chain.head, chain.block_by_hash(block.hash)
    with pytest.raises(InvalidBlock) as caught:
        chain.add(block)
    assert chain.head is head
    assert chain.block_by_hash(block.hash) is known
    return caught.value


@pytest.mark.parametrize("fork", FORKS)
def test_a_built_block_is_accepted_and_becomes_the_head(fork):
    chain = new_chain(fork)
    block, built = build(chain, transactions=[payment(0), payment(1, value=5)])
    result = chain.add(block.rlp())
    assert chain.head == block
    assert result.state_root == built.state_root == block.header.state_root
    assert chain.layer_of(block.hash).balance(RECIPIENT) == 6
    assert chain.receipts_of(block.hash) == built.receipts
    assert [r.cumulative_gas_used for r in built.receipts] == [21_000, 42_000]


def test_every_state_stays_readable():
    chain = new_chain()
    for nonce in range(5):
        grow(chain, transactions=[payment(nonce)])
    balances = [chain.layer_of(chain.canonical_hash(n)).balance(RECIPIENT) for n in range(6)]
    assert balances == [0, 1, 2, 3, 4, 5]


def test_transactions_are_found_in_canonical_blocks_only():
    chain = new_chain()
    first = payment(0)
    block = grow(chain, transactions=[first, payment(1)])
    assert chain.locate(first.hash) == (block, 0)
    assert chain.locate(bytes(32)) is None
    other = build(chain, parent=chain.genesis, extra_data=b"other")[0]
    chain.add(other)
    assert chain.head == other
    assert chain.locate(first.hash) is None


def test_blocks_are_found_by_number_and_hash():
    chain = new_chain()
    last = grow(chain, 3)
    assert chain.block_by_number(3) == chain.block_by_hash(last.hash) == last
    assert chain.block_by_number(0) == chain.genesis
    assert chain.block_by_number(4) is None
    assert chain.block_by_number(-1) is None
    assert chain.block_by_hash(bytes(32)) is None
    assert chain.is_canonical(last.hash)


def test_ancestors_begin_with_the_block_itself():
    chain = new_chain()
    grow(chain, 4)
    hashes = [chain.canonical_hash(n) for n in (4, 3, 2, 1, 0)]
    assert chain.ancestors(chain.head.hash) == hashes
    assert chain.ancestors(chain.head.hash, 2) == hashes[:2]
    assert chain.ancestors(hashes[2]) == hashes[2:]
    assert chain.ancestors(chain.genesis.hash) == hashes[4:]


def test_a_known_block_is_not_executed_again():
    chain = new_chain()
    block, _ = build(chain)
    assert chain.add(block) is chain.add(block)


def test_before_the_merge_the_heavier_branch_is_canonical():
    chain = new_chain("London")
    slow = build(chain, timestamp=100)[0]
    chain.add(slow)
    equal = build(chain, parent=chain.genesis, timestamp=100, extra_data=b"late")[0]
    chain.add(equal)
    assert chain.head == slow, "the first seen among equals stays"
    fast = build(chain, parent=chain.genesis, timestamp=1)[0]
    assert fast.header.difficulty > slow.header.difficulty
    chain.add(fast)
    assert chain.head == fast
    assert chain.total_difficulty == fast.header.difficulty + chain.genesis.header.difficulty


def test_after_the_merge_the_longer_branch_is_canonical():
    chain = new_chain("Paris")
    grow(chain, 2)
    long = chain.head
    short = build(chain, parent=chain.genesis, extra_data=b"s")[0]
    chain.add(short)
    assert chain.head == long
    chain.add(build(chain, parent=short)[0])
    assert chain.head.header.parent_hash == short.hash, "the last seen among equals wins"


def test_a_reorganisation_tells_what_left_and_what_joined():
    chain = new_chain("Paris")
    changes: list[HeadChange] = []
    old = [grow(chain), grow(chain)]
    chain.on_head(changes.append)
    side = build(chain, parent=chain.genesis, extra_data=b"s")[0]
    chain.add(side)
    assert changes == []
    joined = build(chain, parent=side)[0]
    chain.add(joined)
    assert changes == [HeadChange((old[1], old[0]), (side, joined))]
    assert chain.block_by_number(1) == side


def test_the_head_can_be_set_to_any_known_block():
    chain = new_chain("Paris")
    grow(chain, 3)
    second = chain.block_by_number(2)
    change = chain.set_head(second.hash)
    assert chain.head == second
    assert [block.number for block in change.removed] == [3]
    assert chain.block_by_number(3) is None
    with pytest.raises(UnknownBlockError, match="unknown"):
        chain.set_head(bytes(32))


def test_side_blocks_are_dropped_with_their_descendants():
    chain = new_chain("Paris", limits=ChainLimits(side_blocks=2))
    grow(chain, 5)
    parent, side = chain.genesis, []
    for name in (b"a", b"b", b"c"):
        parent = build(chain, parent=parent, extra_data=name)[0]
        side.append(parent)
        chain.add(parent)
    assert [chain.block_by_hash(block.hash) for block in side] == [None, None, None]
    assert chain.head.number == 5


def test_old_states_are_dropped_and_said_to_be():
    chain = new_chain("Paris", limits=ChainLimits(states=2))
    grow(chain, 5)
    assert chain.layer_of(chain.canonical_hash(4)) is not None
    with pytest.raises(StateUnavailableError, match="block 3 "):
        chain.layer_of(chain.canonical_hash(3))
    assert chain.block_by_number(3) is not None


def test_a_block_without_a_known_parent_is_refused():
    chain = new_chain()
    block = with_header(build(chain)[0], parent_hash=b"\x01" * 32)
    error = refusal(chain, block)
    assert (error.number, error.field, error.expected) == (1, "parent_hash", chain.head.hash)


WRONG = [
    ("state_root", bytes(32)),
    ("receipts_root", bytes(32)),
    ("transactions_root", bytes(32)),
    ("withdrawals_root", bytes(32)),
    ("requests_hash", bytes(32)),
    ("ommers_hash", bytes(32)),
    ("logs_bloom", b"\x01" * 256),
    ("gas_used", 20_999),
    ("gas_limit", 60_000_000),
    ("timestamp", 0),
    ("number", 2),
    ("difficulty", 1),
    ("nonce", b"\x01" * 8),
    ("base_fee_per_gas", 7),
    ("blob_gas_used", 2**17),
    ("blob_gas_used", 2**40),
    ("excess_blob_gas", 2**17),
    ("extra_data", bytes(33)),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_a_wrong_field_is_named_with_what_it_should_be(field, value):
    chain = new_chain()
    block = build(chain, transactions=[payment(0)])[0]
    error = refusal(chain, with_header(block, **{field: value}))
    assert (error.number, error.field) == (1, field)
    assert error.found in (value, f"{len(value)} bytes" if isinstance(value, bytes) else value)
    assert error.expected != error.found


@pytest.mark.parametrize(
    ("fork", "field"), [("London", "withdrawals_root"), ("Cancun", "requests_hash")]
)
def test_a_field_of_a_later_fork_is_refused(fork, field):
    chain = new_chain(fork)
    changes = {field: bytes(32)}
    error = refusal(chain, with_header(build(chain)[0], **changes))
    assert error.field == field
    assert error.expected == "no such field"


def test_a_missing_field_is_refused():
    chain = new_chain("Prague")
    error = refusal(chain, with_header(build(chain)[0], requests_hash=None))
    assert (error.field, error.found) == ("requests_hash", "nothing")


def test_withdrawals_must_be_there_from_their_fork_on_and_not_before():
    shanghai, london = new_chain("Shanghai"), new_chain("London")
    block = build(shanghai)[0]
    error = refusal(shanghai, Block(block.header, block.transactions))
    assert (error.field, error.found) == ("withdrawals", "nothing")
    block = build(london)[0]
    error = refusal(london, Block(block.header, block.transactions, (), ()))
    assert (error.field, error.expected) == ("withdrawals", "no such list")


def test_withdrawals_are_paid_in_gwei():
    chain = new_chain("Shanghai")
    grow(chain, withdrawals=[Withdrawal(0, 0, RECIPIENT, 3), Withdrawal(1, 0, RECIPIENT, 4)])
    assert chain.layer_of(chain.head.hash).balance(RECIPIENT) == 7 * 10**9


def test_an_invalid_transaction_is_named_by_its_index():
    chain = new_chain()
    block = build(chain, transactions=[payment(0)])[0]
    bad = Block(block.header, (payment(0), payment(0)), (), ())
    from_body = refusal(chain, bad)
    assert from_body.field == "transactions_root"
    rebuilt = build_unchecked(chain, [payment(0), payment(7)])
    error = refusal(chain, rebuilt)
    assert error.field == "transactions[1]"
    assert "nonce too high" in error.found


def build_unchecked(chain, transactions):
    """Returns a block of these transactions without executing them, so they may be invalid."""
    block = build(chain)[0]
    body = Block(block.header, tuple(transactions), (), block.withdrawals)
    header = replace(block.header, transactions_root=transactions_root(body))
    return Block(header, tuple(transactions), (), block.withdrawals)


def test_a_block_whose_system_contract_is_missing_is_refused():
    chain = new_chain(alloc={"0000bbddc7ce488642fb579f8b00f3a590007251": {"code": "0x"}})
    with pytest.raises(InvalidBlock) as caught:
        build(chain)
    assert caught.value.field == "system call to 0x0000bbddc7ce488642fb579f8b00f3a590007251"
    assert caught.value.found == "no code there"


def test_a_block_whose_system_contract_fails_is_refused():
    chain = new_chain(alloc={"0000bbddc7ce488642fb579f8b00f3a590007251": {"code": "0xfe"}})
    with pytest.raises(InvalidBlock) as caught:
        build(chain)
    assert caught.value.expected == "success"


def test_import_reads_blocks_in_a_row_and_reports_progress():
    source, target, seen = new_chain(), new_chain(), []
    data = b"".join(grow(source).rlp() for _ in range(3))
    assert target.import_rlp(data, lambda count, size: seen.append((count, size))) == 3
    assert target.head == source.head
    assert [count for count, _ in seen] == [1, 2, 3]
    assert seen[-1][1] == len(data)
    assert target.import_rlp(data) == 3, "known blocks are passed over"


def test_import_keeps_the_blocks_before_the_faulty_one():
    source, target = new_chain(), new_chain()
    data = b"".join(grow(source).rlp() for _ in range(3))
    with pytest.raises(InvalidBlock) as caught:
        target.import_rlp(data[:-1])
    assert caught.value.number == 3
    assert target.head.number == 2


def test_what_is_no_rlp_list_is_refused_on_import():
    with pytest.raises(InvalidBlock, match="expected a list"):
        new_chain().import_rlp(b"\x80")


def test_the_state_of_the_first_block_must_be_its_own():
    chain = new_chain()
    other = new_chain(alloc={"33" * 20: {"balance": "0x1"}})
    with pytest.raises(ValueError, match="state_root"):
        Chain(chain.config, chain.genesis, other.layer_of(other.head.hash))


def first_of_another(root: bytes) -> Block:
    """Returns a block with this state root. It belongs to no chain of these tests."""
    return Block(replace(new_chain().genesis.header, number=70, state_root=root))


def test_a_chain_that_begins_anew_forgets_all_blocks_and_tells_its_listeners():
    chain = new_chain()
    grow(chain, 3)
    blocks = [chain.block_by_number(number) for number in range(4)]
    views, changes = chain.amendments, []
    chain.on_head(changes.append)
    layer = Layer.of({RECIPIENT: {"balance": 5}})
    first = first_of_another(layer.state_root())
    chain.restart(chain.config, first, layer)
    assert chain.head is first is chain.genesis
    assert chain.amendments > views
    assert [(change.removed, change.added) for change in changes] == [((), (first,))]
    for block in blocks:
        assert not chain.knows(block.hash)
        assert chain.block_by_number(block.number) is None
    assert chain.layer_of(first.hash).balance(RECIPIENT) == 5


def test_only_a_chain_of_known_states_compares_the_root_of_its_first_block():
    chain = new_chain()
    head = chain.head
    first = first_of_another(b"\x07" * 32)
    with pytest.raises(ValueError, match="state_root"):
        chain.restart(chain.config, first, Layer.empty())
    assert chain.head is head
    chain.restart(chain.config, first, Layer.empty(), partial=True)
    assert chain.head is first


def test_a_chain_executes_blocks_on_its_threads():
    alone, chain = new_chain(), new_chain(limits=ChainLimits(threads=3))
    calls = [payment(nonce, gas_limit=50_000, data=b"\x01") for nonce in range(20)]
    block, result = build(alone, transactions=calls)
    before = counts()["ran"]
    assert chain.add(block).state_root == result.state_root
    assert counts()["ran"] == before + 20
