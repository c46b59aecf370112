"""Connects a peer to the tests: reads a case per line, writes an outcome per line."""

import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

DEEP = 1_000_000
STACK_BYTES = 512 << 20


def serve(run: Callable[[dict[str, Any]], dict[str, Any]], name: str) -> None:
    """Writes the peer's name, then the outcome of each case until standard input ends.

    Redirects what the peer itself prints to stderr.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def answer_all() -> None:
        print(json.dumps({"peer": name}), file=answers)
        for line in sys.stdin:
            try:
                answer = run(json.loads(line))
            except Exception:
                answer = {"failure": traceback.format_exc()}
            print(json.dumps(answer), file=answers)

    # Peers recurse at least once per EVM call, and calls nest 1,024 deep.
    sys.setrecursionlimit(DEEP)
    threading.stack_size(STACK_BYTES)
    thread = threading.Thread(target=answer_all)
    thread.start()
    thread.join()


def unhexed(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def hexed(data: bytes) -> str:
    return "0x" + bytes(data).hex()
