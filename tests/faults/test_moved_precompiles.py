"""Tests that a precompile moved by a state override is back at its address in the next block."""

import gc

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node import Mining, dev_node
from fastevm.simulate import AccountOverride, CallRequest
from fastevm.simulate.views import view_of
from fastevm.tracing import TracedCall, trace_calls
from fastevm.tracing.blocks import CALLS_ONLY

IDENTITY = bytes(19) + b"\x04"
CALLER = b"\xbb" * 20
# calls IDENTITY with one byte, and stores the output size in slot 0
CODE = "0x5f5f60015f5f60045af1503d5f55"


def test_a_moved_precompile_is_back_in_the_next_block() -> None:
    """Blocks reuse machines, which must not keep a pointer to the moves of a finished run."""
    node = dev_node(accounts=1, mining=Mining.INSTANT)
    node.development.amend({"0x" + CALLER.hex(): {"code": CODE}})
    view = view_of(node.chain.layer_of(node.chain.head.hash))
    moved = {IDENTITY: AccountOverride(move_precompile_to=b"\xaa" * 20)}
    for nonce in range(3):
        call = CallRequest(to=CALLER)
        # The machine with the moves is returned last, so that the next block reuses it.
        trace_calls(
            view,
            [
                TracedCall(call, CALLS_ONLY, state_overrides=moved),
                TracedCall(call, CALLS_ONLY),
            ],
        )
        gc.collect()
        made = Transaction.build(
            to=CALLER, nonce=nonce, gas_limit=100_000, chain_id=31_337,
            max_fee_per_gas=10**10, max_priority_fee_per_gas=1,
        )  # fmt: skip
        node.submit(made.sign(node.accounts[0].private_key).raw)
        head = node.chain.layer_of(node.chain.head.hash)
        assert head.storage(CALLER, 0) == 1
        node.development.amend({"0x" + CALLER.hex(): {"code": CODE, "storage": {"0x0": "0x0"}}})
