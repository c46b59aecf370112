"""Signatures for ``help`` and IPython: the fields that methods accept as ``**fields``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, signature
from typing import Any, Final

# more readable than bytes(20); methods accept both forms
ZERO_ADDRESS: Final = "0x" + "00" * 20

TRANSACTION_FIELDS: Final = (
    "type",
    "max_fee_per_gas",
    "max_priority_fee_per_gas",
    "access_list",
    "max_fee_per_blob_gas",
    "blob_versioned_hashes",
    "authorization_list",
)
# fields that only forks of Arbitrum's chains set
OF_ARBITRUM: Final = ("l1_number", "header_base_fee")


class Unchanged:
    """A default value that is displayed for a field that keeps its value."""

    def __repr__(self) -> str:
        return "<unchanged>"


UNCHANGED: Final = Unchanged()


def without_rest(function: Callable[..., Any]) -> list[Parameter]:
    """Returns the parameters of a function without ``**fields``. Shows the zero address as text."""
    return [
        each.replace(default=ZERO_ADDRESS) if each.default == bytes(20) else each
        for each in signature(function).parameters.values()
        if each.kind is not Parameter.VAR_KEYWORD
    ]


def with_fields(function: Callable[..., Any], fields: Mapping[str, Any]) -> Signature:
    """Returns the signature of a function with these fields and their defaults as its
    ``**fields``.
    """
    usual = without_rest(function)
    more = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default) for name, default in fields.items()
    ]
    return Signature([*usual, *more], return_annotation=signature(function).return_annotation)


def show_fields(function: Any, fields: Mapping[str, Any]) -> None:
    """Makes ``inspect.signature`` list these fields in place of ``**fields``."""
    function.__signature__ = with_fields(function, fields)


def show_signatures(evm: Any, environment: tuple[str, ...]) -> None:
    """Gives the methods of ``EVM`` signatures with every field that they accept."""
    optional = dict.fromkeys(TRANSACTION_FIELDS)
    show_fields(evm.call, {})
    show_fields(evm.create, {})
    show_fields(evm.transact, optional)
    shown = [name for name in environment if name not in OF_ARBITRUM]
    show_fields(evm.set_block, dict.fromkeys(shown, UNCHANGED))
    sent = evm.transact.__signature__.parameters.values()
    taken = [each for each in sent if each.name not in ("self", "to", "data")]
    evm.deploy.__signature__ = Signature(
        [*without_rest(evm.deploy), *taken],
        return_annotation=evm.transact.__signature__.return_annotation,
    )
