"""Names that a package loads late are there, and none is hidden by a module of the same name."""

from importlib import import_module
from pathlib import Path

import pytest

PACKAGES = ("fastevm.fork", "fastevm.stateless")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_found_where_it_is_said_to_live(package: str) -> None:
    module = import_module(package)
    for name in module.__all__:
        assert getattr(module, name).__module__.startswith(package)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_is_that_of_a_module(package: str) -> None:
    module = import_module(package)
    assert module.__file__ is not None
    modules = {path.name.partition(".")[0] for path in Path(module.__file__).parent.iterdir()}
    assert not modules & set(module.__all__)


def test_another_name_is_an_attribute_error() -> None:
    fork = import_module("fastevm.fork")
    with pytest.raises(AttributeError, match=r"module 'fastevm\.fork' has no attribute 'nothing'"):
        fork.__getattr__("nothing")
