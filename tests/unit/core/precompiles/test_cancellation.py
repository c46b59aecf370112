"""Tests that precompiles which may run long stop when the execution is cancelled.

Other precompiles take less than 10 ms for all the gas of a transaction. MODEXP cannot be split.
"""

import pytest

from fastevm.core.precompiles.registry import run

BN254_PAIRING, BLAKE2F, BLS_G1ADD, BLS_G1MSM, BLS_G2ADD, BLS_G2MSM, BLS_PAIRING = (
    0x08, 0x09, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F,
)  # fmt: skip
BLS_MAP_G1, BLS_MAP_G2 = 0x10, 0x11
GAS = 2**40
TERMS = 300  # more terms than a chunk has


def answer(number: int, data: bytes) -> bytes:
    ok, output, _ = run(number, data, GAS)
    assert ok
    return output


G1 = answer(BLS_MAP_G1, bytes(63) + b"\x05")
G2 = answer(BLS_MAP_G2, bytes(63) + b"\x05" + bytes(64))
BLAKE2F_INPUT = (300_000).to_bytes(4, "big") + bytes(range(208)) + b"\x01"
BN254_INPUT = bytes(192 * 64)  # points at infinity
BLS_PAIRS = (G1 + G2) * 40


def terms(point: bytes, count: int) -> bytes:
    return b"".join(point + number.to_bytes(32, "big") for number in range(3, 3 + count))


LONG = [
    (BLAKE2F, BLAKE2F_INPUT),
    (BN254_PAIRING, BN254_INPUT),
    (BLS_PAIRING, BLS_PAIRS),
    (BLS_G1MSM, terms(G1, TERMS)),
    (BLS_G2MSM, terms(G2, TERMS)),
]


@pytest.mark.parametrize(("number", "data"), LONG)
def test_a_long_precompile_stops_when_it_is_cancelled(number: int, data: bytes) -> None:
    assert answer(number, data)
    with pytest.raises(TimeoutError):
        run(number, data, GAS, is_cancelled=True)


@pytest.mark.parametrize(
    ("msm", "add", "point"), [(BLS_G1MSM, BLS_G1ADD, G1), (BLS_G2MSM, BLS_G2ADD, G2)]
)
def test_a_sum_in_several_chunks_is_the_sum_of_its_parts(msm: int, add: int, point: bytes) -> None:
    size = len(point) + 32
    data = terms(point, TERMS)
    cut = 100 * size
    parts = answer(msm, data[:cut]), answer(msm, data[cut:])
    assert answer(msm, data) == answer(add, parts[0] + parts[1])


def test_chunks_whose_sums_cancel_out_give_the_point_at_infinity() -> None:
    order = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
    item, minus_one = (n.to_bytes(32, "big") for n in (1, order - 1))
    data = (G1 + item) * 256 + (G1 + minus_one) * 256
    assert answer(BLS_G1MSM, data) == bytes(128)


def test_rounds_in_steps_are_the_rounds_of_the_specification() -> None:
    """BLAKE2F runs its rounds in steps. Compares the result with an independent implementation."""
    rounds = 100_003  # one whole step and three more rounds
    data = rounds.to_bytes(4, "big") + bytes(range(208)) + b"\x01"
    assert answer(BLAKE2F, data) == compressed(rounds, data[4:])


# --- RFC 7693, section 3.2 ------------------------------------------------------------------------

MASK = 2**64 - 1
IV = (
    0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
    0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
)  # fmt: skip
SIGMA = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    (14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3),
    (11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4),
    (7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8),
    (9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13),
    (2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9),
    (12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11),
    (13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10),
    (6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5),
    (10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0),
)
QUARTERS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip


def compressed(rounds: int, rest: bytes) -> bytes:
    words = [int.from_bytes(rest[at : at + 8], "little") for at in range(0, 208, 8)]
    state, message, offset = words[:8], words[8:24], words[24:]
    v = [*state, *IV]
    v[12] ^= offset[0]
    v[13] ^= offset[1]
    v[14] ^= MASK
    for number in range(rounds):
        order = SIGMA[number % 10]
        for at, (a, b, c, d) in enumerate(QUARTERS):
            for word, first, second in ((order[2 * at], 32, 24), (order[2 * at + 1], 16, 63)):
                v[a] = (v[a] + v[b] + message[word]) & MASK
                turned = v[d] ^ v[a]
                v[d] = (turned >> first | turned << (64 - first)) & MASK
                v[c] = (v[c] + v[d]) & MASK
                turned = v[b] ^ v[c]
                v[b] = (turned >> second | turned << (64 - second)) & MASK
    mixed = [state[i] ^ v[i] ^ v[i + 8] for i in range(8)]
    return b"".join(word.to_bytes(8, "little") for word in mixed)
