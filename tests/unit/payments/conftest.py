"""Provides both stores for the tests of the store."""

from tests.payments.stores import postgres, pytest_generate_tests, store_url

__all__ = ["postgres", "pytest_generate_tests", "store_url"]
