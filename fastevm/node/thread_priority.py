"""The priority of threads that produce or follow blocks."""

import contextlib
import os
import threading
from typing import Final

# niceness of threads that build, execute or import blocks, if the system permits it
BLOCK_NICENESS: Final = -10


def raise_priority() -> None:
    """Raises the priority of the current thread above the threads that answer requests."""
    with contextlib.suppress(OSError, AttributeError):  # not permitted, or not supported
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BLOCK_NICENESS)
