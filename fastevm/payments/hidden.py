"""Keeps keys, signatures and node URLs out of reprs and out of chained exceptions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from fastevm.payments.errors import PaymentError

Record = TypeVar("Record", bound=type)


def hiding(*names: str) -> Callable[[Record], Record]:
    """Returns a decorator for a Struct or NamedTuple. The repr shows these members as ``...``.

    Members of dataclasses are hidden with ``field(repr=False)``.
    """

    def __repr__(self: Any) -> str:
        fields = getattr(self, "__struct_fields__", None) or self._fields
        members = (
            f"{name}={'...' if name in names else repr(getattr(self, name))}" for name in fields
        )
        return f"{type(self).__name__}({', '.join(members)})"

    __repr__.hidden = frozenset(names)  # type: ignore[attr-defined]

    def decorate(record: Record) -> Record:
        record.__repr__ = __repr__  # type: ignore[assignment]
        return record

    return decorate


@contextmanager
def unchained() -> Iterator[None]:
    """Raises errors of this package without ``__context__`` and ``__cause__``.

    ``from None`` hides the original error in tracebacks, but it stays in ``__context__``, which
    programs that report errors read. The original error may show a key, or a URL with a password.
    """
    try:
        yield
    except PaymentError as error:
        error.__context__ = error.__cause__ = None
        raise
