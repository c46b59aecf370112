"""The GIL offered to other threads from compiled code that holds it for long."""


def offer_gil() -> None:
    """Let a thread run that has waited for the GIL longer than the switch interval.

    CPython hands the GIL over where a Python function begins, and only if somebody waits. Code
    that just releases and takes it again wakes a waiting thread each time and begins its interval
    anew, so that thread can wait for the end of the work.
    """
