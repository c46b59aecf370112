"""Tests that the page on subscriptions and the feed lists exactly the fields that messages have."""

import json
import re
import time
from typing import Any

from fastevm.core.state.layer import Layer
from fastevm.node import dev_node
from fastevm.rpc.methods.subscriptions import TOPICS
from fastevm.rpc.subscriptions.state_changes import StatePosition, StateStep
from fastevm.rpc_types.feed_formats import FeedFormat, feed_text

from .shared_data import ROOT

PAGE = (ROOT / "docs/subscriptions.md").read_text()
EXAMPLES = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.S)]


def example_with(member: str) -> Any:
    """Returns the example on the page that has this member."""
    (found,) = (example for example in EXAMPLES if member in example)
    return found


def rows(header: str) -> list[str]:
    """Returns the first column of the table with this header, without backticks."""
    table = PAGE.partition(f"| {header} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [line.split("|")[1].strip().strip("`") for line in table]


def members(value: Any) -> Any:
    """Yields the names of all members of an object and of the objects in it."""
    return {name: members(each) for name, each in value.items()} if isinstance(value, dict) else 0


def test_every_subscription_is_there() -> None:
    assert sorted(rows("name")) == sorted(TOPICS)


def test_the_message_has_the_members_of_the_example() -> None:
    pending = dev_node(accounts=1).producer.begin(int(time.time()))
    example = members(example_with("payload_id"))
    assert members(json.loads(feed_text(pending, FeedFormat.FASTEVM))) == example


def test_a_state_change_has_the_members_of_the_example() -> None:
    example = example_with("storage")
    address = bytes.fromhex(example["address"][2:])
    changed = {"nonce": example["nonce"], "storage": {0: 42}}
    before = StatePosition(Layer.empty(), number=6)
    after = StatePosition(Layer.of({address: changed}), number=7, slice_index=3)
    messages = StateStep(before, after).messages(frozenset([address]))
    assert [json.loads(message) for message in messages] == [example]


def test_every_format_is_there() -> None:
    assert rows("`--feed-format`") == [item.value for item in FeedFormat]
