"""Counters, gauges and histograms in the Prometheus text format."""

from fastevm.payments import Metrics


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
