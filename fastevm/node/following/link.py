"""A connection to the followed node, with its metrics and log messages."""

import logging
import time
from typing import Final

from fastevm.chain.metrics import MetricsRegistry

log = logging.getLogger(__name__)

CONNECTED: Final = "{}_connected"  # gauge
RECONNECTS: Final = "{}_reconnects_total"  # counter


class Link:
    """A connection that is reopened whenever it breaks.

    ``name``: its name in metrics and log. ``loss``: the consequence of losing the connection, as a
    text for the log.
    """

    def __init__(self, name: str, metrics: MetricsRegistry, *, loss: str = "") -> None:
        self.name, self.metrics, self.loss = name, metrics, loss
        self.holds = False
        self._lost_at: float | None = None

    def opened(self) -> None:
        """Records that the connection is open. Logs it if an earlier connection broke."""
        if self.holds:
            return
        self.holds = True
        self.metrics.set(CONNECTED.format(self.name), 1)
        if self._lost_at is not None:
            seconds = time.monotonic() - self._lost_at
            log.warning("%s: connected again after %.1f s", self.name, seconds)

    def broke(self, error: Exception) -> None:
        """Records that the connection broke or could not be opened, and logs the reason."""
        text = str(error) or type(error).__name__
        if self.holds:
            self._lost_at = time.monotonic()
            log.warning("%s: lost: %s%s", self.name, text, self.loss and f"; {self.loss}")
        else:
            log.warning("%s: %s", self.name, text)
        self.holds = False
        self.metrics.set(CONNECTED.format(self.name), 0)
        self.metrics.count(RECONNECTS.format(self.name))
