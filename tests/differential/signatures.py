"""Compares public keys that fastevm's vector code and libsecp256k1 recover from signatures.

``python -m tests.differential.signatures --random 10000000 --edges 1000000 --seed 1``. The
signatures are random or edge cases. The vector code uses AVX-512 IFMA if the processor has it.
Otherwise, or with ``--portable``, it uses portable lanes.
"""

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from itertools import islice, product
from typing import Final

from fastevm.core.crypto.secp256k1 import public_key
from fastevm.testing.secp256k1 import ORDER, PRIME, compare, compare_random, use_lanes

LAMBDA: Final = 0x5363AD4CC05C30E0A5261C028812645A122E22EA20816678DF02967C1B23BD72
CHUNK: Final = 8_000
Signature = tuple[int, int, int, int]

NEAR: Final = (1, 2, 3, ORDER // 2, ORDER // 2 + 1, ORDER - 2, ORDER - 1, LAMBDA, ORDER - LAMBDA)
# Exponents of two at the edges of 52-bit and 64-bit limbs, and of the halves of a split scalar.
BITS: Final = (0, 1, 51, 52, 53, 63, 64, 103, 104, 127, 128, 129, 191, 192, 207, 208, 255)
HASHES: Final = (0, 1, ORDER - 1, ORDER, ORDER + 1, PRIME - 1, PRIME, 2**255, 2**256 - 1)
# Values of r at edges. PRIME - ORDER - 1 is the largest r for which x = r + n is also below PRIME.
XS: Final = (*NEAR, PRIME - ORDER - 1, PRIME - ORDER, PRIME - ORDER + 1, 2**128 - 1, 2**128)


def x_of(scalar: int) -> int:
    """Returns the x coordinate of ``scalar`` times the generator."""
    return int.from_bytes(public_key((scalar % ORDER).to_bytes(32, "big"))[:32], "big")


def edges() -> list[Signature]:
    """Returns every combination of edge values, and signatures with exceptional sums of points.

    The recovered key is (s k - z) / r G if R = k G. So z = s k gives infinity, and z = 2 s k and z
    = 0 make both terms equal or one term infinity.
    """
    found = [(z, y, r, s) for z, y, r, s in product(HASHES, (0, 1), XS, NEAR)]
    for k, s, y in product([*range(1, 40), LAMBDA, LAMBDA + 1, ORDER - 1], NEAR, (0, 1)):
        r = x_of(k)
        if r < ORDER:
            found += [(z % ORDER, y, r, s) for z in (s * k, -s * k, 2 * s * k, 0, s, k)]
    return found


def random_edges(source: random.Random) -> Iterator[Signature]:
    """Yields signatures without end.

    Their numbers are sums of few powers of two or edge values, or belong to a point R with known k.
    """
    points = [(k, x_of(k)) for k in (*range(1, 33), LAMBDA, LAMBDA - 1, ORDER // 2)]

    def number() -> int:
        terms = source.randint(1, 4)
        sparse = sum(source.choice((-1, 1)) << source.choice(BITS) for _ in range(terms))
        return source.choice((sparse % ORDER, sparse * LAMBDA % ORDER, *NEAR)) or 1

    while True:
        y = source.randrange(2)
        if source.randrange(2):
            r = source.choice((number(), source.choice(XS)))
            yield source.choice((number(), source.choice(HASHES))), y, r, number()
        else:
            # The sum u1 G + u2 R is exceptional if u1 is a small multiple of u2 k.
            k, r = source.choice(points)
            u2 = number()
            u1 = source.choice((number(), source.choice((-2, -1, 0, 1, 2)) * u2 * k))
            yield -u1 * r % ORDER, y, r, u2 * r % ORDER or 1


def compare_edges(count: int, seed: int) -> Counter[str]:
    """Compares all combinations of edge values and ``count`` random edge signatures.

    Returns how often each result of the comparison occurred.
    """
    found = Counter(compare(edges()))
    signatures = random_edges(random.Random(seed))
    for at in range(0, count, CHUNK):
        found.update(compare(list(islice(signatures, min(CHUNK, count - at)))))
    return found


def main() -> None:
    """Compares random and edge signatures; exits with code 1 if a key differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--random", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--portable", action="store_true", help="not the processor's vectors")
    options = parser.parse_args()
    way = "portable"
    if not options.portable and use_lanes("processor") == "open":
        way = "processor"
    else:
        use_lanes("portable")
    found = Counter(compare_random(options.seed, -(-options.random // 8)))
    print(f"{way} lanes, {options.random} random signatures: {dict(found)}", flush=True)
    on_edges = compare_edges(options.edges, options.seed)
    print(f"{way} lanes, border signatures: {dict(on_edges)}")
    if found["wrong"] or found["left"] or on_edges["wrong"]:
        raise SystemExit("a key differs from that of libsecp256k1")


if __name__ == "__main__":
    main()
