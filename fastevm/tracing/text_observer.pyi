"""An observer that writes JSON text."""

from fastevm.tracing.observer import Observer

class TextObserver(Observer):
    """Base class of observers that write text. By itself it writes nothing."""
