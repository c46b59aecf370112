"""Defines the time that a test waits for an expected event."""

from typing import Final

# Seconds. A test that needs a fraction of a second on an idle machine must not fail on a machine a
# hundred times slower. Only failing tests wait so long.
MAX_WAIT: Final = 300.0
