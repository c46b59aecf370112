"""Makes inputs for precompiles: valid ones from known points and signatures, and damaged ones."""

from hashlib import sha256
from random import Random

from py_ecc.optimized_bls12_381 import G1, G2, Z1, Z2, add, multiply, neg, normalize

from fastevm.core.crypto.secp256k1 import sign

CHEAP = (1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 6, 6, 7, 9, 9, 11, 13, 16, 0x100, 0x100)
# Pairings and similar precompiles, which take the executable specification up to a second.
DEAR = (8, 10, 12, 14, 15, 17)
PRECOMPILES = CHEAP * 8 + DEAR

BN254_FIELD = 21888242871839275222246405745257275088696311157297823662689037894645226208583
BN254_G1 = (1, 2)
# The generator of G2 in the order of EIP-197: imaginary part first.
BN254_G2 = (
    0x198E9393920D483A7260BFB731FB5D25F1AA493335A9E71297E485B7AEF312C2,
    0x1800DEEF121F1E76426A00665E5C4479674322D4F75EDADD46DEBD5CD992F6ED,
    0x090689D0585FF075EC9E99AD690C3395BC4B313370B38EF355ACDADCD122975B,
    0x12C85EA5DB8C6DEB4AAB71808DCB408FE3D1E7690C43D37B4CE6CC0166FA7DAA,
)
BLS_FIELD = int(
    "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab",
    16,
)
# RFC 6979, A.2.5: the message "sample" under SHA-256 with P-256.
P256_SAMPLE = b"".join(
    (
        sha256(b"sample").digest(),
        bytes.fromhex("efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"),
        bytes.fromhex("f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"),
        bytes.fromhex("60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"),
        bytes.fromhex("7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299"),
    )
)


def numbers(*values: int, width: int = 32) -> bytes:
    """Returns big-endian integers of a width, concatenated."""
    return b"".join(value.to_bytes(width, "big") for value in values)


def ecrecover(random: Random) -> bytes:
    digest = random.randbytes(32)
    parity, r, s = sign(digest, numbers(random.randrange(1, 1 << 250)))
    return digest + numbers(27 + parity, r, s)


def modexp(random: Random) -> bytes:
    sizes = [random.choice((0, 1, 2, 31, 32, 33, 40)) for _ in range(3)]
    parts = [random.randbytes(size) for size in sizes]
    if random.random() < 0.5:
        parts[1] = parts[1][: len(parts[1]) // 2].rjust(len(parts[1]), b"\0")
    if random.random() < 0.2:
        sizes[random.randrange(3)] = random.choice((1024, 1025, 1 << 64, 1 << 255))
    return numbers(*sizes) + b"".join(parts)


def bn254_point(random: Random) -> bytes:
    x, y = BN254_G1
    return random.choice(
        (bytes(64), numbers(x, y), numbers(x, BN254_FIELD - y), numbers(x + BN254_FIELD, y))
    )


def bn254_pairing(random: Random) -> bytes:
    pairs = random.choice((0, 1, 2))
    return b"".join(
        bn254_point(random) + random.choice((bytes(128), numbers(*BN254_G2))) for _ in range(pairs)
    )


def blake2f(random: Random) -> bytes:
    rounds = random.choice((0, 1, 2, 12))
    last = random.choice((0, 1, 1, 2))
    return numbers(rounds, width=4) + random.randbytes(208) + bytes([last])


def kzg(random: Random) -> bytes:
    """Returns an input with a proof for the zero polynomial."""
    infinity = b"\xc0" + bytes(47)
    versioned = b"\x01" + sha256(infinity).digest()[1:]
    return versioned + numbers(random.randrange(1 << 250), 0) + infinity + infinity


def bls_g1(random: Random) -> bytes:
    point = random.choice((Z1, G1, neg(G1), add(G1, G1), multiply(G1, 12345)))
    if point is Z1:
        return bytes(128)
    x, y = normalize(point)
    return numbers(int(x), int(y), width=64)


def bls_g2(random: Random) -> bytes:
    point = random.choice((Z2, G2, neg(G2), add(G2, G2)))
    if point is Z2:
        return bytes(256)
    x, y = normalize(point)
    return numbers(*(int(c) for c in (*x.coeffs, *y.coeffs)), width=64)


def scalars_and(point, random: Random) -> bytes:
    return b"".join(
        point(random) + numbers(random.getrandbits(random.choice((1, 20, 256))))
        for _ in range(random.choice((1, 1, 2, 3)))
    )


def valid_input(random: Random, number: int) -> bytes:
    """Returns an input that the precompile usually accepts."""
    makers = {
        1: ecrecover,
        5: modexp,
        6: lambda r: bn254_point(r) + bn254_point(r),
        7: lambda r: bn254_point(r) + numbers(r.getrandbits(r.choice((2, 64, 256)))),
        8: bn254_pairing,
        9: blake2f,
        10: kzg,
        11: lambda r: bls_g1(r) + bls_g1(r),
        12: lambda r: scalars_and(bls_g1, r),
        13: lambda r: bls_g2(r) + bls_g2(r),
        14: lambda r: scalars_and(bls_g2, r),
        15: lambda r: bls_g1(r) + bls_g2(r),
        16: lambda r: numbers(r.randrange(BLS_FIELD), width=64),
        17: lambda r: numbers(r.randrange(BLS_FIELD), r.randrange(BLS_FIELD), width=64),
        0x100: lambda r: P256_SAMPLE,
    }
    if number in makers:
        return makers[number](random)
    return random.randbytes(random.choice((0, 1, 31, 32, 33, 64, 200)))


def precompile_input(random: Random, number: int) -> bytes:
    """Returns an input for the precompile: valid, with a changed byte, truncated, or longer."""
    data = bytearray(valid_input(random, number))
    chance = random.random()
    if chance < 0.1 and data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    elif chance < 0.2:
        data = data[: random.randrange(len(data) + 1)]
    elif chance < 0.25:
        data += random.randbytes(random.randrange(1, 40))
    return bytes(data)
