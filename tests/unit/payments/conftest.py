"""Runs each test of a store with SQLite, or with the stores in its module's ``STORES``."""

from tests.payments.stores import postgres, pytest_generate_tests, store_url

__all__ = ["postgres", "pytest_generate_tests", "store_url"]
