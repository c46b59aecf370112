"""An observer that calls the hooks of an ``EVM``."""

from fastevm.evm.hooks import Hooks
from fastevm.tracing.observer import Observer
from fastevm.tracing.watch import ObserverWatch

def watch_of(hooks: Hooks) -> ObserverWatch:
    """Returns a watch that calls ``hooks`` during executions."""

class HookObserver(Observer):
    def __init__(self, hooks: Hooks) -> None: ...
