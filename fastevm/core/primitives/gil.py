"""Lets other threads take the GIL from compiled code that holds it for long."""


def offer_gil() -> None:
    """Lets another thread run if it has waited for the GIL longer than the switch interval.

    CPython hands the GIL over at the start of a Python function, and only if another thread waits.
    Compiled code that only releases and reacquires the GIL wakes a waiting thread and restarts that
    thread's interval each time. The thread may therefore wait until the compiled code returns.
    """
