"""Tests every form in which users can name the block of a fork."""

import pytest

from fastevm.fork.block_choice import BlockChoice, read_block, split_block

DIGEST = bytes(range(32))


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        ("latest", BlockChoice(tag="latest")),
        ("Finalized", BlockChoice(tag="finalized")),
        (0, BlockChoice(number=0)),
        ("17", BlockChoice(number=17)),
        ("0x11", BlockChoice(number=17)),
        (-5, BlockChoice(below=5)),
        ("-5", BlockChoice(below=5)),
        (DIGEST, BlockChoice(hash=DIGEST)),
        ("0x" + DIGEST.hex(), BlockChoice(hash=DIGEST)),
    ],
)
def test_a_block_is_a_tag_a_number_or_a_hash(given: object, choice: BlockChoice) -> None:
    assert read_block(given) == choice


@pytest.mark.parametrize("given", ["pending", "", "0x", b"\x01", 1.5, None, True, "0x" + "1" * 63])
def test_anything_else_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="block: expected"):
        read_block(given)


@pytest.mark.parametrize(
    ("url", "address", "block"),
    [
        ("https://h/key@123", "https://h/key", BlockChoice(number=123)),
        ("https://h/key@-2", "https://h/key", BlockChoice(below=2)),
        ("https://h/key@safe", "https://h/key", BlockChoice(tag="safe")),
        ("https://me:pw@h/key", "https://me:pw@h/key", None),
        ("https://me:pw@h/key@7", "https://me:pw@h/key", BlockChoice(number=7)),
        ("https://h/key", "https://h/key", None),
    ],
)
def test_an_address_may_end_with_a_block(url: str, address: str, block: BlockChoice | None) -> None:
    assert split_block(url) == (address, block)
