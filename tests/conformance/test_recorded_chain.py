"""Imports a recorded chain whose 54 blocks cross every fork, then blocks with a changed byte."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from fastevm.chain.chain import Chain
from fastevm.chain.config import ChainConfig
from fastevm.chain.genesis import genesis_block
from fastevm.core.execution.block.fees import next_base_fee
from fastevm.core.primitives import rlp
from fastevm.errors import InvalidBlock
from tests.shared_data import RECORDED

HEAD = "d226371d0b1551adb03fb52b71f08e3e11247fe9b1af994768af8cdaa8e7dcd7"
SAMPLES_PER_BLOCK = 40


def recorded(name: str) -> bytes:
    path = RECORDED / name
    if not path.is_file():
        pytest.skip(f"no {name} in the shared test data")
    return path.read_bytes()


def new_chain() -> Chain:
    genesis: dict[str, Any] = json.loads(recorded("genesis.json"))
    config = ChainConfig.from_genesis(genesis)
    return Chain(config, *genesis_block(genesis, config))


def blocks_in(data: bytes) -> list[bytes]:
    """Splits a file of blocks. Returns the RLP of each block."""
    blocks = []
    while data:
        width = data[0] - 0xF7
        size = 1 + width + int.from_bytes(data[1 : 1 + width], "big")
        blocks.append(data[:size])
        data = data[size:]
    return blocks


@pytest.fixture(scope="module")
def chain() -> Chain:
    chain = new_chain()
    assert chain.import_rlp(recorded("chain.rlp")) == 54
    return chain


def test_all_blocks_import_with_every_root_verified(chain: Chain) -> None:
    assert chain.head.hash.hex() == HEAD
    assert chain.head.number == 54
    assert chain.total_difficulty >= 4_732_352
    assert sum(len(chain.block_by_number(n).transactions) for n in range(55)) == 249


def test_the_next_base_fee_is_the_recorded_one(chain: Chain) -> None:
    schedule = chain.schedule_for_child(chain.head, chain.head.header.timestamp + 12)
    assert next_base_fee(chain.head.header, schedule) == 0x16DFE9B


def test_every_block_s_state_stays_readable(chain: Chain) -> None:
    for number in range(55):
        block = chain.block_by_number(number)
        assert chain.layer_of(block.hash).state_root() == block.header.state_root
    at_44 = chain.layer_of(chain.canonical_hash(44))
    recipient = bytes.fromhex("0c2c51a0990aee1d73c1228de158688341557508")
    assert at_44.account(recipient) is not None


def test_receipts_encode_to_their_roots(chain: Chain) -> None:
    before_byzantium = chain.receipts_of(chain.canonical_hash(3))
    assert [len(receipt.post_state) for receipt in before_byzantium] == [32, 32, 32]
    assert {receipt.status for receipt in before_byzantium} == {None}
    assert chain.receipts_of(chain.canonical_hash(50))[0].status is not None
    sizes = [len(log.data) for r in chain.receipts_of(chain.canonical_hash(2)) for log in r.logs]
    assert sizes.count(190_000) == 56


def test_blocks_encode_to_the_bytes_they_came_from(chain: Chain) -> None:
    for number, raw in enumerate(blocks_in(recorded("chain.rlp")), 1):
        block = chain.block_by_number(number)
        assert block.rlp() == raw
        assert rlp.decode(block.header.rlp()) == rlp.decode(raw)[0]


def prefixes() -> Iterator[tuple[Chain, bytes, bytes]]:
    """Yields for each block: the chain up to its parent, its RLP, and the RLP of the next block."""
    chain = new_chain()
    blocks = blocks_in(recorded("chain.rlp"))
    for raw, following in zip(blocks, [*blocks[1:], b""], strict=True):
        yield chain, raw, following
        chain.add(raw)


def flip_and_import(
    chain: Chain, raw: bytes, following: bytes, position: int, mask: int
) -> InvalidBlock | None:
    """Imports a block with one changed byte, then the next block.

    Returns the error of the first failure.
    """
    damaged = bytearray(raw)
    damaged[position] ^= mask
    before = chain.head.hash
    try:
        chain.import_rlp(bytes(damaged) + following)
    except InvalidBlock as error:
        return error
    finally:
        chain.set_head(before)
    return None


def check(chain: Chain, raw: bytes, following: bytes, position: int, mask: int) -> None:
    error = flip_and_import(chain, raw, following, position, mask)
    if error is None:
        # A changed block may also be valid, if the byte belongs to prevRandao, timestamp or gas
        # limit. Then the next block must not fit, and the last block has no next block.
        assert following == b"", f"byte {position} of block {chain.head.number + 1}"
        return
    assert error.number is not None
    assert error.field
    assert str(error).startswith(f"block {error.number}: {error.field}: expected ")


def test_a_flipped_byte_is_refused_with_block_field_expected_and_found() -> None:
    generator = random.Random(54)
    for chain, raw, following in prefixes():
        for position in sorted(generator.sample(range(len(raw)), SAMPLES_PER_BLOCK)):
            check(chain, raw, following, position, 1 << generator.randrange(8))


@pytest.mark.slow
def test_every_flipped_byte_is_refused() -> None:
    generator = random.Random(55)
    for chain, raw, following in prefixes():
        for position in range(len(raw)):
            check(chain, raw, following, position, generator.randrange(1, 256))
