"""Runs a small sample of `tests.payments.chaos`: kills processes, node and database."""

import os

import pytest

from .chaos import run
from .databases import programs

ORDERS = int(os.environ.get("FASTEVM_CHAOS_ORDERS", "8"))


@pytest.mark.skipif(
    programs() is None, reason="no server of PostgreSQL: install the package postgresql"
)
async def test_every_order_is_paid_once_and_its_webhooks_arrive_in_order() -> None:
    found = await run(ORDERS, seed=1, limit=240.0, every=3.0)
    assert found["transfers"] == ORDERS
    assert sum(found["kills"].values()) >= 1
