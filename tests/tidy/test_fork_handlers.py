"""Tests that every thread, pool and lock at module level is reset in a forked child process.

The child has only the thread that called fork. A lock that another thread held stays locked, and
that thread does not exist.
"""

import re
from pathlib import Path

from .sources import files, shown

CREATED = re.compile(
    r"(?<![\w.])(?:threading\.|multiprocessing\.)?"
    r"(?:Lock|RLock|Event|Condition|Semaphore|BoundedSemaphore|Barrier|Thread|Timer"
    r"|ThreadPoolExecutor|ProcessPoolExecutor|Queue|SimpleQueue)\("
)
CLASS = re.compile(r"^(?:cdef )?class (\w+)")
ASSIGNED = re.compile(r"^_?\w+(?:: [^=]+)? = (.+)$")
STATIC_C = re.compile(
    r"^cdef (?:\w+ )?(pthread_mutex_t|EventCount|Team|SpinLock)\b|^cdef .*\bguard\b"
)
RESET = re.compile(r"register_at_fork\(|pthread_atfork\(")

# Module -> the state that it resets in a forked child. A new entry needs a test in
# tests/faults/test_after_fork.py.
RESETTING = {
    "fastevm/core/interpreter/interrupts.pyx": "the identity of the main thread",
    "fastevm/core/primitives/slab.pyx": "the locks of the allocator",
    "fastevm/core/primitives/thread_pool.pyx": "the threads that hash and recover",
    "fastevm/core/simulation/deadline.pyx": "the watchdog",
    "fastevm/fork/progress.py": "the lock of the terminal",
    "fastevm/simulate/batch/shipping.py": "the lock of shipped states",
    "fastevm/tracing/javascript/worker_process.py": "the worker processes that wait",
    "rpc/methods/accounts.py": "the lock of nonces",
}


def sources() -> list[Path]:
    return files(".py", ".pyx", under=("fastevm", "rpc"))


def threaded_classes() -> set[str]:
    """Returns the names of classes whose objects contain a thread, pool or lock."""
    found = set()
    for path in sources():
        owner = None
        for line in path.read_text().splitlines():
            if head := CLASS.match(line):
                owner = head[1]
            elif line[:1].strip():
                owner = None
            if owner and "self." in line and CREATED.search(line):
                found.add(owner)
    return found


def made_at_import(path: Path, threaded: set[str]) -> bool:
    """Returns whether importing the module creates a thread, pool or lock, or such an object."""
    made = re.compile(rf"\b(?:{'|'.join(sorted(threaded))})\(")
    for line in path.read_text().splitlines():
        assigned = ASSIGNED.match(line)
        if assigned and (CREATED.search(assigned[1]) or made.match(assigned[1])):
            return True
        if path.suffix == ".pyx" and STATIC_C.match(line):
            return True
    return False


def test_modules_that_create_threads_or_locks_reset_them_after_a_fork() -> None:
    threaded = threaded_classes()
    assert "Watchdog" in threaded
    creating = {shown(path) for path in sources() if made_at_import(path, threaded)}
    assert creating >= {"fastevm/core/simulation/deadline.pyx", "rpc/methods/accounts.py"}
    assert not creating - RESETTING.keys()


def test_each_listed_module_has_a_handler() -> None:
    handling = {shown(path) for path in sources() if RESET.search(path.read_text())}
    assert handling == RESETTING.keys()
