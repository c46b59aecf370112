"""Lets other threads take the GIL from compiled code that holds it for long."""


def offer_gil() -> None:
    """Lets a thread run that has waited for the GIL longer than the switch interval.

    CPython hands the GIL over at the start of a Python function, and only if another thread waits.
    Compiled code that only releases and reacquires the GIL wakes a waiting thread and restarts its
    interval each time, so that thread may wait until the compiled code returns.
    """
