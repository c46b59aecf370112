"""How long a test waits for what must happen."""

from typing import Final

# Seconds. What takes a fraction of one on an idle machine must not fail on one a hundred times
# slower; only a test that fails waits so long.
MAX_WAIT: Final = 300.0
