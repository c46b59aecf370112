"""EIP-6110: Supply validator deposits on chain.

The logs of the deposit contract become requests of their block.
"""

from eth_abi import encode

from fastevm.core.execution.block.requests import DEPOSIT_TOPIC

from .support import build, chain_across, payment

DEPOSIT_CONTRACT = bytes(20)  # its address on the chains of these tests
PARTS = (b"\x01" * 48, b"\x02" * 32, b"\x03" * 8, b"\x04" * 96, b"\x05" * 8)
EVENT = encode(["bytes"] * 5, PARTS)
# Logs its calldata with the topic of deposit events.
LOGGER = {
    DEPOSIT_CONTRACT: {
        "code": f"CALLDATASIZE 0 0 CALLDATACOPY 0x{DEPOSIT_TOPIC.hex()} CALLDATASIZE 0 LOG1"
    }
}


def requests(chain, nonce, deposits):
    """Makes ``deposits`` deposits in a new block. Returns the block's requests."""
    calls = [
        payment(nonce + index, to=DEPOSIT_CONTRACT, value=0, data=EVENT, gas_limit=100_000)
        for index in range(deposits)
    ]
    block, result = build(chain, transactions=calls)
    chain.add(block)
    assert len(result.receipts[0].logs) == 1
    return result.requests


def test_deposits_become_one_request_in_their_order():
    chain = chain_across(6110, LOGGER)
    assert not requests(chain, 0, deposits=1)
    assert requests(chain, 1, deposits=1) == (b"\x00" + b"".join(PARTS),)
    assert requests(chain, 2, deposits=3) == (b"\x00" + b"".join(PARTS) * 3,)


def test_logs_of_another_contract_are_no_deposits():
    other = b"\x01" * 20
    chain = chain_across(6110, {other: LOGGER[DEPOSIT_CONTRACT]})
    for nonce in (0, 1):
        call = payment(nonce, to=other, value=0, data=EVENT, gas_limit=100_000)
        block, result = build(chain, transactions=[call])
        chain.add(block)
    assert result.requests == ()
