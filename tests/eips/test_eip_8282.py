"""EIP-8282: Builder execution requests.

Two more system contracts add requests at the end of a block: deposits and exits of builders.
"""

import pytest

from fastevm.chain.system_contracts import (
    BUILDER_DEPOSITS,
    BUILDER_DEPOSITS_CODE,
    BUILDER_EXITS,
    BUILDER_EXITS_CODE,
)
from fastevm.core.primitives.keccak import keccak256
from fastevm.errors import InvalidBlock

from .support import before_and_after, build, chain_across, grow, payment

BEFORE, AFTER = before_and_after(8282)
GAS = 2_000_000
CONTRACTS = {
    BUILDER_DEPOSITS: {"code": BUILDER_DEPOSITS_CODE, "nonce": "0x1"},
    BUILDER_EXITS: {"code": BUILDER_EXITS_CODE, "nonce": "0x1"},
}


def test_the_code_is_the_published_one():
    assert keccak256(BUILDER_DEPOSITS_CODE).hex().startswith("1dd29c1e0dbc3ab670d2")
    assert keccak256(BUILDER_EXITS_CODE).hex().startswith("90a0b24eb190d6c50f00")


def test_an_exit_is_a_request_of_its_block():
    chain = chain_across(8282, CONTRACTS)
    grow(chain)
    grow(chain)
    key = bytes(range(48))
    call = payment(0, value=1, to=BUILDER_EXITS, data=key, gas_limit=GAS)
    _, result = build(chain, transactions=[call])
    (request,) = result.requests
    assert (request[0], len(request)) == (4, 1 + 68)
    assert request[21:] == key


def test_a_deposit_is_a_request_of_its_block():
    chain = chain_across(8282, CONTRACTS)
    grow(chain)
    grow(chain)
    amount = 10**9
    data = bytes(48) + bytes(32) + amount.to_bytes(8, "big") + bytes(96)
    call = payment(0, value=amount * 10**9 + 1, to=BUILDER_DEPOSITS, data=data, gas_limit=GAS)
    _, result = build(chain, transactions=[call])
    (request,) = result.requests
    assert (request[0], len(request)) == (3, 1 + 184)
    assert int.from_bytes(request[81:89], "little") == amount


def test_a_block_without_the_contracts_is_invalid():
    chain = chain_across(8282, {BUILDER_EXITS: {"code": b"", "nonce": "0x1"}})
    grow(chain)
    with pytest.raises(InvalidBlock, match="no code there"):
        build(chain)
