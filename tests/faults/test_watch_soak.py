"""A short soak of ``fastevm_watch``: cut links, slow readers and reorganisations."""

from tests.faults.watch_soak import soak


async def test_subscribers_see_every_change_once_or_get_a_whole_picture() -> None:
    done = await soak(8.0, 4, 60, slots=100, faults=True, outbound_size=50_000)
    assert done["changes"] > 0
    assert done["compared"] == 4 * 49
    assert done["blocked"] + done["reorganisations"] > 0
    assert done["wholes"] >= done["connections"]
    assert done["watch_failures_total"] == 0
    assert done["watch_distinct_questions"] == 0
