"""Runs a short soak of ``fastevm_watch``: kills, cut links, slow readers, reorganisations."""

from tests.faults.watch_soak import soak


async def test_subscribers_see_every_change_once_or_get_a_whole_picture() -> None:
    done = await soak(8.0, 4, 60, slots=100, kill_every=5.0, calm_every=3.0)
    assert done["changes"] > 0
    assert done["kills of the node"] > 0
    assert done["compared in calm"] >= 4 * 59
    assert done["wholes"] >= 4
    assert done["watch_failures_total"] == 0
    assert done["watch_distinct_questions"] == 0
