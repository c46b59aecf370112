"""EIP-779: Hardfork meta: DAO fork.

One block moves the ether of the DAO to a refund contract, and ten blocks have fixed extra data. No
execution rule changes.
"""

from fastevm.chain.dao_fork import DRAINED_ACCOUNTS, REFUND_CONTRACT, apply_dao_fork
from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.primitives.replace import replace

from .support import (
    ETHER,
    before_and_after,
    build,
    chain_across,
    child_header,
    grow,
    refused_block,
    run,
)

BEFORE, AFTER = before_and_after(779)
DAO = DRAINED_ACCOUNTS[0]
MARK = b"dao-hard-fork"


def fork_block(chain):
    """Returns the sealed child of the head, which moves the balances."""
    head = chain.head
    draft = replace(child_header(AFTER, head.header), extra_data=MARK)
    builder = BlockBuilder(
        apply_dao_fork(chain.layer_of(head.hash)),
        draft,
        chain.schedule_for_child(head, draft.timestamp),
        chain_id=1,
        deposit_contract=bytes(20),
        ancestors=[head.hash],
    )
    builder.begin()
    return builder.seal()[0]


def balances(chain):
    layer = chain.layer_of(chain.head.hash)
    return layer.balance(DAO), layer.balance(REFUND_CONTRACT)


def test_the_ether_moves_with_the_block_of_the_fork():
    chain = chain_across(779, {DAO: {"balance": hex(3 * ETHER)}})
    grow(chain)
    assert balances(chain) == (3 * ETHER, 0)
    chain.add(fork_block(chain))
    assert balances(chain) == (0, 3 * ETHER)


def test_a_block_that_leaves_the_ether_where_it_is_is_refused():
    chain = chain_across(779, {DAO: {"balance": hex(3 * ETHER)}})
    grow(chain)
    assert refused_block(chain, build(chain, extra_data=MARK)[0]) == "state_root"


def test_the_first_blocks_of_the_fork_carry_the_mark():
    chain = chain_across(779)
    grow(chain, extra_data=b"anything")
    assert refused_block(chain, build(chain, extra_data=b"anything")[0]) == "extra_data"
    chain.add(fork_block(chain))
    grow(chain, 9, extra_data=MARK)
    grow(chain, extra_data=b"anything")
    assert chain.head.number == 12


def test_code_runs_as_before():
    source = "0 SLOAD 0x1000000000000 2 EXP ADD 0 SSTORE"
    before, after = run(BEFORE, source), run(AFTER, source)
    assert before.success
    assert (before.gas_used, before.output) == (after.gas_used, after.output)
