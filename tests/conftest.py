"""Configures all tests. Hypothesis examples have no deadline, because machines may be busy."""

import pytest
from hypothesis import settings

settings.register_profile("unhurried", parent=settings(), deadline=None)
settings.load_profile("unhurried")

collect_ignore_glob = ["ecosystem/moccasin/*"]  # The tests of this project need moccasin.


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--forked", action="store_true", help="states of the tests lie above a remote, empty one"
    )
    parser.addoption(
        "--many-kills", action="store_true", help="a hundred kills of processes that fetch"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--forked"):
        from tests import forked_states

        forked_states.begin()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--forked"):
        from tests import forked_states

        forked_states.leave_out(items)
