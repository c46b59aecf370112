"""Simulates bundles on a Dask cluster. Each worker gets the state once, then only payloads.

Run it with ``python examples/simulate_dask.py`` (needs ``pip install distributed``). Any other
`concurrent.futures.Executor` works too, such as a process pool or MPI's.
"""

from distributed import Client, LocalCluster

from fastevm import Layer, simulate_many

ALICE, COUNTER = b"\xa1" * 20, b"\xc0" * 20
# adds the first word of its input to slot 0 and returns the sum
CODE = bytes.fromhex("5f355f5401805f555f5260205ff3")


def main(bundles: int = 2_000) -> int:
    """Simulates on two worker processes. Returns how many bundles succeeded."""
    state = Layer.of({COUNTER: {"code": CODE, "storage": {0: 40}}})
    payloads = [
        [{"from": ALICE, "to": COUNTER, "data": number.to_bytes(32, "big")}]
        for number in range(bundles)
    ]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        results = list(simulate_many(state, payloads, executor=client.get_executor()))
    for number, result in enumerate(results):
        assert int.from_bytes(result.calls[0].output, "big") == 40 + number
    return sum(result.success for result in results)


if __name__ == "__main__":
    print(f"{main()} bundles succeeded")
