"""Tests that ArbOS values are in the storage slots that Arbitrum's chains use for them."""

from __future__ import annotations

import pytest

from fastevm.core.native.arbitrum.storage import slot

OWNER = bytes.fromhex("d345e41ae2cb00311956aa7109fc801ae8c81a52")
SEQUENCER = bytes.fromhex("a4b000000000000000000073657175656e636572")
TICKET = bytes.fromhex("13cb79b086a427f3db7ebe6ec2bb90a806a3b0368ecee6020144f352e37dbdf6")


@pytest.mark.parametrize(
    ("ids", "key", "expected"),
    [
        ((), 0x0B, "15fed0451499512d95f3ec5a41c878b9de55f21878b5b4e190d4667ec709b40b"),
        ((b"\x00",), 7, "a9f6f085d78d1d37c5819e5c16c9e03198bd14e08cd1f6f8191bc6207b9e9707"),
        ((b"\x00", b"\x00"), 0, "33f46529933152e1782e51b69b5bebb0810705b1e56844f07ef4225ddbc0d700"),
        (
            (b"\x00", b"\x00", b"\x00"), 0,
            "19cc27d300234c0bd290398e6aaf8b7680a1006d08dc01e871b6d473bc9d6000",
        ),
        ((b"\x01",), 2, "e54de2a4cdacc0a0059d2b6e16348103df8c4aff409c31e40ec73d11926c8202"),
        ((b"\x01", b"\x00"), 0, "52232757544c763eb1c1511dc67b97f352c88a089b72a204b89e1c66fc278300"),
        ((b"\x01", b"\x01"), 0, "8f7aed2cb8940fe010e349f7f79e53dbe1135ed2431e82b0c90a85943c425700"),
        ((b"\x01", b"\x02"), 9, "4435123381a70ae3365e09672400c124cd8b8178f0e9850b3f4f2734c36f8709"),
        ((b"\x04",), 0, "41e0d7d38ffe0727248ee6ed6ea1250b08279ad004e3ab07b7ffe78352d8c400"),
        ((b"\x05",), 0, "8ed3c0e39eb17caceecf73012310eda8ac7666f91cbd29ae3a0bd264002b3d00"),
        ((b"\x06",), 0, "3c79da47f96b0f39664f73c0a1f350580be90742947dddfa21ba64d578dfe600"),
        ((b"\x06",), 256, "36100a3304cddbd9c76d4544787f6074399eb6f475a90a85d8ae66360b078800"),
        ((b"\x08", b"\x00"), 0, "fb3a65ee2a3cc0d9ce98ddab7e30ebb719b46a87b8706ff1bf3aef1dcfb0e300"),
        ((b"\x08", b"\x05"), 0, "d6e0f573b510103b170857a1dc1215a71f2b5b33dd994da95b2667a3119eb600"),
        ((b"\x09",), 0, "efc8dd7022cc6868c21a903d9f02794bd02dbc621457d359f75e9f68bc7b1100"),
        (
            (b"\x04", b"\x00"), int.from_bytes(OWNER, "big"),
            "2e5c04bc8bb8056ff27ee93fb83c5c9b18de10cbf51c7419ba98dfa3a8483952",
        ),
        (
            (b"\x01", b"\x00", bytes(8)), 0,
            "3f7acd5dfea0f400b20ee8227e84b8c9f0440358ededd3c2043024a948526400",
        ),
        (
            (b"\x00", b"\x00", b"\x01", SEQUENCER), 1,
            "26438022d7bc3dacb366c03344760cb0b1045ad014826fa28bcc2ae55cc91601",
        ),
        ((b"\x02", TICKET), 0, "04b6e476124263a65d49d30d0d935126b7b5b80768e30dc774ca63d3a0fd3300"),
    ],
)  # fmt: skip
def test_a_slot_is_that_of_the_chain(ids: tuple[bytes, ...], key: int, expected: str) -> None:
    assert slot(ids, key) == int(expected, 16)


def test_256_keys_share_a_page() -> None:
    first = slot((b"\x03",), 0)
    assert [slot((b"\x03",), key) for key in range(256)] == [first + key for key in range(256)]
    assert slot((b"\x03",), 256) not in range(first, first + 256)


def test_an_id_has_at_most_32_bytes() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        slot((bytes(33),), 0)
