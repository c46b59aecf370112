"""An observer that calls the hooks of a machine."""

from fastevm.evm.hooks import Hooks
from fastevm.tracing.observer import Observer
from fastevm.tracing.watch import ObserverWatch

def watch_of(hooks: Hooks) -> ObserverWatch:
    """Returns the observer of a machine with ``hooks``."""

class HookObserver(Observer):
    def __init__(self, hooks: Hooks) -> None: ...
