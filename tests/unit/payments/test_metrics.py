"""Tests counters, gauges and histograms in the Prometheus text format."""

import re
from pathlib import Path

import pytest

import fastevm.payments
from fastevm.payments import InvalidTerms, Metrics
from fastevm.payments.metrics import HELP


def test_what_is_counted_is_shown_with_its_labels() -> None:
    metrics = Metrics({"chain_id": "1"})
    metrics.count("captures_total", state="paid")
    metrics.count("captures_total", state="paid")
    metrics.set("orders", 3, state='odd "state"\n')
    metrics.observe("capture_seconds", 0.3)
    metrics.observe("capture_seconds", 400.0)
    assert metrics.value("captures_total", state="paid") == 2
    assert metrics.value("captures_total", state="failed") == 0
    lines = metrics.text().splitlines()
    assert 'fastevm_payments_captures_total{chain_id="1",state="paid"} 2' in lines
    assert 'fastevm_payments_orders{chain_id="1",state="odd \\"state\\"\\n"} 3' in lines
    assert "# TYPE fastevm_payments_captures_total counter" in lines
    assert "# TYPE fastevm_payments_capture_seconds histogram" in lines
    assert 'fastevm_payments_capture_seconds_bucket{chain_id="1",le="0.25"} 0' in lines
    assert 'fastevm_payments_capture_seconds_bucket{chain_id="1",le="0.5"} 1' in lines
    assert 'fastevm_payments_capture_seconds_bucket{chain_id="1",le="+Inf"} 2' in lines
    assert 'fastevm_payments_capture_seconds_count{chain_id="1"} 2' in lines


def test_every_metric_of_the_package_has_a_help_text() -> None:
    folder = Path(str(fastevm.payments.__file__)).parent
    named = re.compile(r"metrics\.(?:count|set|observe)\(\s*\"(\w+)\"")
    used = {name for file in folder.rglob("*.py") for name in named.findall(file.read_text())}
    assert "batches_total" in used and used <= HELP.keys()


def test_metrics_of_the_caller_are_shown_and_invalid_names_refused() -> None:
    metrics = Metrics()
    metrics.count("parcels_total")
    assert "fastevm_payments_parcels_total 1" in metrics.text().splitlines()
    for wrong in ("", "two words", "a{b}", "1st"):
        with pytest.raises(InvalidTerms, match="name: "):
            metrics.set(wrong, 1.0)
