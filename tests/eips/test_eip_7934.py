"""EIP-7934: RLP Execution Block Size Limit.

A block of more than 8,388,608 bytes is rejected.
"""

from .support import OTHER, build, chain_across, payment, refused_block

LIMIT = 10 * 2**20 - 2 * 2**20
MEGABYTE = 2**20


def block_of(chain, nonce, size):
    """Returns a child of the head with an encoding of exactly ``size`` bytes."""
    sizes = [MEGABYTE] * 7 + [size - 7 * MEGABYTE - 2_000]
    for _ in range(2):  # The second pass corrects the size that the first pass measured.
        block = build(
            chain,
            transactions=[
                payment(
                    nonce + index,
                    to=OTHER,
                    data=bytes(length),
                    gas_limit=16_000_000,
                    gas_price=10**11,
                    value=0,
                )
                for index, length in enumerate(sizes)
            ],
        )[0]
        sizes[-1] += size - block.size
    assert block.size == size
    return block


def test_a_larger_block_is_refused():
    chain = chain_across(7934, gasLimit=200_000_000)
    chain.add(block_of(chain, 0, LIMIT + 1))
    assert refused_block(chain, block_of(chain, 8, LIMIT + 1)) == "size"
    chain.add(block_of(chain, 8, LIMIT))
    assert chain.head.number == 2
