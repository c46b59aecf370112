"""Tests that every metric family has one type and every name occurs once."""

import re

import pytest

from fastevm.chain.metrics import Histogram
from fastevm.node import dev_node
from fastevm.rpc.freshness import Freshness
from fastevm.rpc.metrics import Metrics

SAMPLE = re.compile(r'fastevm_[a-z0-9_]+({[a-z]+="[^"]*"(,[a-z]+="[^"]*")*})? \S+')


def families(text: str) -> dict[str, str]:
    """Returns the type of each family. Fails if a family has two types."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert re.fullmatch(r"fastevm_[a-z0-9_]+", name), line
            assert name not in found, f"{name} is typed twice"
            found[name] = kind
        else:
            assert re.fullmatch(
                r'fastevm_[a-z0-9_]+({[a-z]+="[^"]*"(,[a-z]+="[^"]*")*})? \S+', line
            )
    return found


def test_a_histogram_a_counter_and_a_gauge() -> None:
    histogram = Histogram([1.0, 10.0])
    histogram.observe(5)
    text = Metrics().render({**histogram.values("wait_ms"), "lost_total": 3, "age_count": 1})
    types = families(text)
    assert types["fastevm_wait_ms"] == "histogram"
    assert types["fastevm_lost_total"] == "counter"
    assert types["fastevm_age_count"] == "gauge"
    assert 'fastevm_wait_ms_bucket{le="1"} 0\nfastevm_wait_ms_bucket{le="10"} 1\n' in text


def test_the_numbers_of_node_and_listener_do_not_collide() -> None:
    node = dev_node()
    metrics = Metrics()
    metrics.count("eth_call", 0.1)
    metrics.count_error("eth_call", -32000)
    node.metrics_registry.count("slices_total")
    freshness = Freshness(node, metrics, limit=5)
    text = metrics.render({**node.metrics(), **freshness.gauges(), "head_number": 1})
    assert families(text)["fastevm_slices_total"] == "counter"
    samples = [line.rpartition(" ")[0] for line in text.splitlines() if line[0] != "#"]
    assert len(samples) == len(set(samples))


def test_an_unknown_counter_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        Metrics().add("misspelt_total")
