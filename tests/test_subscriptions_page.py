"""The page on subscriptions and the feed names what there is, and nothing else."""

import json
import re
import time
from typing import Any

from fastevm.node import dev_node
from fastevm.rpc.methods.subscriptions import TOPICS
from fastevm.rpc_types.feed_formats import FeedFormat, feed_text

from .shared_data import ROOT

PAGE = (ROOT / "docs/subscriptions.md").read_text()
EXAMPLE = json.loads(re.findall(r"```json\n(.*?)```", PAGE, re.S)[1])


def rows(header: str) -> list[str]:
    """The first cells of the table that begins with this header, without quotes."""
    table = PAGE.partition(f"| {header} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [line.split("|")[1].strip().strip("`") for line in table]


def members(value: Any) -> Any:
    """The names of an object's members, and those of the objects in it."""
    return {name: members(each) for name, each in value.items()} if isinstance(value, dict) else 0


def test_every_subscription_is_there() -> None:
    assert sorted(rows("name")) == sorted(TOPICS)


def test_the_message_has_the_members_of_the_example() -> None:
    pending = dev_node(accounts=1).producer.begin(int(time.time()))
    assert members(json.loads(feed_text(pending, FeedFormat.FASTEVM))) == members(EXAMPLE)


def test_every_format_is_there() -> None:
    assert rows("`--feed-format`") == [item.value for item in FeedFormat]
