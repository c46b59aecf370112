"""Fetches values into a cache until this process is killed: ``fetching.py URL BLOCK FOLDER SEED``.

Prints the number of values after each fetch.
"""

import random
import sys
from pathlib import Path

from fastevm.bench.remote import market
from fastevm.core.state.source import Wanted
from fastevm.fork.remote_source import RemoteSource

SLOTS_AT_ONCE = 40
ACCOUNTS_AT_ONCE = 6


def keys() -> tuple[list[bytes], list[tuple[bytes, int]]]:
    """Returns all accounts and slots that may be fetched."""
    accounts = [*market.TOKEN_ADDRESSES, *market.POOL_ADDRESSES, market.MULTICALL_ADDRESS]
    accounts += [holder.address for holder in market.holders()[:100]]
    slots = [
        (token, market.token_slot_of(holder))
        for token in market.TOKEN_ADDRESSES
        for holder in range(30)
    ]
    slots += [(pool, slot) for pool in market.POOL_ADDRESSES for slot in range(3)]
    return accounts, slots


def main(url: str, block: int, folder: Path, seed: int) -> None:
    """Fetches random values forever."""
    chance = random.Random(seed)
    accounts, slots = keys()
    with RemoteSource.open(url, block, cache=folder, progress=False) as source:
        while True:
            wanted = Wanted(
                set(chance.sample(accounts, ACCOUNTS_AT_ONCE)),
                set(chance.sample(slots, SLOTS_AT_ONCE)),
                {chance.randrange(1, block)},
            )
            found = source.fetch(wanted)
            print(len(found.accounts) + len(found.slots), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
