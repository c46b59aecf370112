"""Makes random operands: edge values, plausible offsets, sizes and gas limits."""

from random import Random

WORD = 1 << 256
SLOTS = 5

EDGES = tuple(
    sorted(
        {
            (edge + step) % WORD
            for edge in (0, 32, 256, *(1 << bits for bits in (8, 16, 31, 32, 63, 64, 127, 128)),
                         1 << 191, 1 << 192, 1 << 255)
            for step in (-1, 0, 1)
        }
        | {2, 3, 7, 10, 31, 33, 1024}
    )
)  # fmt: skip
HUGE_OFFSETS = (1 << 16, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, (1 << 64) - 32, 1 << 64, WORD - 1)


def any_word(random: Random) -> int:
    """Returns an edge value, a small number, a mask of bits, or any word."""
    kind = random.random()
    if kind < 0.3:
        return random.choice(EDGES)
    if kind < 0.6:
        return random.randrange(256)
    if kind < 0.7:
        return -random.randrange(1, 300) % WORD
    if kind < 0.85:
        return random.getrandbits(random.choice((16, 32, 64, 65, 128, 160, 192, 255)))
    if kind < 0.92:
        return ((1 << random.randrange(1, 257)) - 1) << random.randrange(0, 200) & (WORD - 1)
    return random.getrandbits(256)


def offset(random: Random) -> int:
    """Returns an offset into memory or data: usually small, rarely unreachable."""
    kind = random.random()
    if kind < 0.6:
        return 32 * random.randrange(8)
    if kind < 0.93:
        return random.randrange(300)
    return random.randrange(3000) if kind < 0.985 else random.choice(HUGE_OFFSETS)


def size(random: Random) -> int:
    """Returns a length in bytes: usually small, rarely unreachable."""
    kind = random.random()
    if kind < 0.5:
        return random.choice((0, 1, 4, 20, 31, 32, 33, 64, 96))
    if kind < 0.94:
        return random.randrange(200)
    return random.randrange(2000) if kind < 0.985 else random.choice(HUGE_OFFSETS)


def slot(random: Random) -> int:
    """Returns a storage key, one of a few, so that keys repeat."""
    return random.randrange(SLOTS) if random.random() < 0.9 else any_word(random)


def gas(random: Random) -> int:
    """Returns an amount of gas to pass to a call."""
    kind = random.random()
    if kind < 0.2:
        return random.choice((0, 1, 699, 700, 2299, 2300, 2301, 9000))
    if kind < 0.9:
        return random.randrange(200, 60_000)
    return random.choice((100_000, WORD - 1, 1 << 63, 1 << 64))


def value(random: Random) -> int:
    """Returns an amount of wei to send with a call."""
    kind = random.random()
    if kind < 0.6:
        return 0
    return random.randrange(1, 100) if kind < 0.95 else any_word(random)


def shift(random: Random) -> int:
    """Returns a shift distance in bits."""
    return random.randrange(258) if random.random() < 0.85 else any_word(random)


def index(random: Random) -> int:
    """Returns the index of a byte in a word, or of a blob."""
    return random.randrange(35) if random.random() < 0.85 else any_word(random)


def exponent(random: Random) -> int:
    """Returns an exponent, usually of few bytes."""
    return random.getrandbits(random.choice((2, 8, 16, 64))) if random.random() < 0.9 else (
        any_word(random)
    )  # fmt: skip
