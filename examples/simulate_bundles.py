"""Simulates many bundles on one state and picks the most profitable bundle, as a trader does.

Run it with ``python examples/simulate_bundles.py``.
"""

import fastevm

ALICE, POOL = b"\xa1" * 20, b"\xc0" * 20
# pays its caller x * (100 - x) wei, where x is the first word of the input
CODE = bytes.fromhex("5f3580606403025f5f5f5f84335af100")


def main() -> tuple[int, int]:
    """Returns the input of the most profitable bundle and its gain in wei."""
    state = fastevm.Layer.of({POOL: {"code": CODE, "balance": 10**18}})
    sizes = range(1, 100)
    payloads = [[{"from": ALICE, "to": POOL, "data": x.to_bytes(32, "big")}] for x in sizes]
    results = fastevm.simulate_many(state, payloads, balances=True)
    best = max(results, key=lambda result: result.balance_changes.get(ALICE, 0))
    return sizes[best.index], best.balance_changes.get(ALICE, 0)


if __name__ == "__main__":
    print("an input of {} gains {} wei".format(*main()))
