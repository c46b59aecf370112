"""Tests that slow consumers get the newest changes of a watch."""

from __future__ import annotations

import asyncio
import threading

from fastevm.simulate import Watch
from tests.max_wait import MAX_WAIT

from .test_watch import READER, TOKEN, call, output, state


def changed(value: int) -> object:
    return state({TOKEN: {"storage": {0: value}}})


def test_a_slow_consumer_gets_the_newest_change_of_each_question() -> None:
    watch = Watch(state())
    id = watch.add([call(TOKEN)])
    stream = watch.stream()
    watch.refresh()
    for value in (6, 7, 8):
        watch.advance(changed(value))
    changes = stream.take()
    assert [(change.id, output(change), change.skipped) for change in changes] == [(id, 8, 3)]
    assert changes[0].differs == {"new", "output"}
    assert stream.skipped == 3
    assert stream.take() == []


def test_a_stream_has_its_own_questions() -> None:
    watch = Watch(state())
    first, second = watch.add([call(TOKEN)]), watch.add([call(TOKEN)])
    stream = watch.stream([first])
    watch.refresh()
    assert [change.id for change in stream.take()] == [first]
    stream.add([second])
    watch.advance(changed(6))
    assert [change.id for change in stream.take()] == [first, second]
    watch.advance(changed(7))
    stream.discard([first])
    watch.remove([second])
    assert stream.take() == []


def test_a_stream_may_begin_with_a_snapshot() -> None:
    watch = Watch(state())
    id = watch.add([call(TOKEN)])
    watch.refresh()
    watch.add([call(READER)])  # this question has no answer yet
    with watch.stream(snapshot=True) as stream:
        assert [change.id for change in stream.take()] == [id]


def test_iterating_waits_for_changes() -> None:
    watch = Watch(state())
    watch.add([call(TOKEN)])
    stream = watch.stream()
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.extend(output(c) for c in stream))
    thread.start()
    watch.refresh()
    while not found:
        stream.wait(0.01)
    watch.advance(changed(6))
    watch.close()
    thread.join()
    assert found == [5, 6]


def test_an_asynchronous_consumer_gets_changes_of_another_thread() -> None:
    async def begin() -> list[int]:
        watch = Watch(state())
        watch.add([call(TOKEN)])
        stream = watch.stream()
        await asyncio.to_thread(watch.refresh)
        found: list[int] = []
        async for change in stream:
            found.append(output(change))
            if len(found) == 2:
                watch.close()
            else:
                await asyncio.to_thread(watch.advance, changed(6))
        return found

    assert asyncio.run(asyncio.wait_for(begin(), MAX_WAIT)) == [5, 6]


def test_a_listener_hears_once_that_something_waits() -> None:
    watch = Watch(state())
    watch.add([call(TOKEN)])
    stream = watch.stream()
    heard: list[int] = []
    stream.on_ready(lambda: heard.append(len(heard)))
    watch.refresh()
    watch.advance(changed(6))
    assert heard == [0]
    stream.take()
    watch.advance(changed(7))
    assert heard == [0, 1]
    stream.close()
    assert stream.is_closed
