from typing import Any, final

from fastevm.simulate.batch.results import BundleResult
from fastevm.simulate.watch.base import Base

@final
class Change:
    """What stands for a question of a `Watch`, and how it differs from before.

    ``id``: of the question, ``priority``: its priority. ``base``: where the answer holds; None if
    there is no answer. ``stale``: the base moved on, a read changed, and the question did not run
    in time. ``answer``: as from `fastevm.simulate.simulate_many`; None if it never ran.
    ``differs``: "new" (the first answer), "status", "output", "gas", "logs", "balances", "error";
    empty if the news is only that the answer became stale or fresh. ``skipped``: earlier changes of
    this question that a stream replaced by this one. ``value``: of a `View`, its decoded outputs;
    None if it failed.
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
    def differs(self) -> frozenset[str]: ...
    @property
    def value(self) -> Any: ...
    def after(self, earlier: Change) -> Change: ...
