"""The worker process of JavaScript tracers: ``python -I -S worker.py FOLDER_OF_QUICKJS``.

A message on standard input or output consists of a letter, the length (4 bytes) and a text in
UTF-8. The letters are:

- requests of the node: N (new trace: source, config, precompiles as a JSON array), B (a batch of
  events), R (return the result; with the context)
- answers of the worker: D (done; with a text), E (error; with the message and the function as a
  JSON array)
- during a request: Q (the worker reads the state), A (the node's answer)
"""

import json
import struct
import sys
from pathlib import Path
from typing import Any

MEMORY_LIMIT = 128 * 1024 * 1024  # most bytes of JavaScript values
STACK_LIMIT = 512 * 1024  # most bytes of the stack
HEAD = struct.Struct(">cI")


def read() -> tuple[bytes, str]:
    """Returns the next frame. Ends the process at the end of the input."""
    head = sys.stdin.buffer.read(HEAD.size)
    if len(head) < HEAD.size:
        raise SystemExit
    kind, size = HEAD.unpack(head)
    return kind, sys.stdin.buffer.read(size).decode()


def write(kind: bytes, text: str) -> None:
    """Sends a frame."""
    data = text.encode("utf-8", "replace")
    sys.stdout.buffer.write(HEAD.pack(kind, len(data)) + data)
    sys.stdout.buffer.flush()


def request(question: str) -> str:
    """Sends a read of the state to the node and returns the answer."""
    write(b"Q", question)
    return read()[1]


def main() -> None:
    """Serves one trace after another, each in a fresh JavaScript context."""
    sys.path.append(sys.argv[1])
    quickjs: Any = __import__("quickjs")
    prelude = Path(__file__).with_name("prelude.js").read_text()
    context: Any = None
    while True:
        kind, text = read()
        try:
            if kind == b"N":
                context = quickjs.Context()
                context.set_memory_limit(MEMORY_LIMIT)
                context.set_max_stack_size(STACK_LIMIT)
                context.add_callable("__request", request)
                context.eval(prelude)
                answer = context.get("__begin")(*json.loads(text))
            elif kind == b"B":
                answer = context.get("__batch")(text)
            else:
                answer = context.get("__result")(text)
        except Exception as error:
            where = "" if context is None else context.get("__where")()
            write(b"E", json.dumps([str(error), where]))
        else:
            write(b"D", answer or "")


if __name__ == "__main__":
    main()
