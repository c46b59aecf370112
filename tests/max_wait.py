"""How long tests wait for an expected event."""

from typing import Final

# Seconds. A test that takes a fraction of a second on an idle machine must also pass on a machine
# that is a hundred times slower. Only failing tests wait so long.
MAX_WAIT: Final = 300.0
