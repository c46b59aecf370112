from typing import Any, final

from fastevm.simulate.batch.results import BundleResult
from fastevm.simulate.watch.base import Base

@final
class Change:
    """The current answer to a question of a `Watch`, and how it differs from the previous answer.

    A question is a call or bundle that a watch runs again when the state changes. ``id``,
    ``priority``: the id and priority of the question. ``base``: the base on which the answer is
    valid; None if there is no answer. ``stale``: whether the answer may be outdated: the base
    changed a value that the question reads, and the question has not run since. ``answer``: a
    result of the form that `fastevm.simulate.simulate_many` yields; None if the question never ran.
    ``differs``: "new" (the first answer), "status", "output", "gas", "logs", "balances", "error";
    empty if only ``stale`` changed. ``skipped``: how many earlier changes of this question a stream
    replaced by this change. ``value``: the decoded outputs of a `View`; None if the call failed or
    its output cannot be decoded, like that of an address without code.
    """

    @property
    def id(self) -> int: ...
    @property
    def priority(self) -> int: ...
    @property
    def base(self) -> Base: ...
    @property
    def stale(self) -> bool: ...
    @property
    def skipped(self) -> int: ...
    @property
    def answer(self) -> BundleResult | None: ...
    @property
    def size(self) -> int: ...
    @property
    def gas_used(self) -> int: ...
    @property
    def differs(self) -> frozenset[str]: ...
    @property
    def value(self) -> Any: ...
    def after(self, earlier: Change) -> Change: ...
