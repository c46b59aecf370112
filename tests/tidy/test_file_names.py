"""No two source files share a name, unless they are the same thing for two subjects."""

from collections import defaultdict
from pathlib import Path

from .sources import ROOT, files

# Rooms whose files have the name of the subject that they serve, and what they are to it.
ROOMS_BY_SUBJECT = {
    "bench": "the command that measures it",
    "fastevm/conformance": "the runner of official tests about it",
    "fastevm/interpreter/ops": "the opcodes about it",
    "fastevm/payments/commands": "the commands about it",
    "fastevm/tools": "the command about it",
    "fastevm/tracing": "what a trace tells of it",
    "fastevm/testing": "the test support of it",
    "fastevm/wire": "its JSON",
    "rpc/methods": "the RPC methods about it",
}
# Name -> what each of its files is, for its own subject.
SAME_THING_FOR_TWO_SUBJECTS = {
    "batch": "many at once: trie nodes to hash, calls to answer",
    "calls": "calls of contracts: simulated, of a token, as a request gives them",
    "chain": "the canonical chain, a simulated one, a chain as payments see it",
    "changes": "what changed: in a state, for a subscriber",
    "command": "a command line",
    "deadline": "when to stop: a slice, a simulation",
    "envelope": "what lies around the content: of a transaction (EIP-2718), of a JSON-RPC call",
    "errors": "the exceptions of a package",
    "filters": "the filters that a client installed",
    "limits": "the limits of a request",
    "memory": "the memory of a frame, of the process",
    "messages": "the messages of a protocol",
    "metrics": "the counters of a part",
    "node": "a node of the network, a node of a trie, the node that payments ask",
    "options": "the options of a command",
    "outbox": "what waits to be sent",
    "overrides": "the overrides of a call",
    "reasons": "why something was refused",
    "receipts": "receipts: made, kept, of x402",
    "refusals": "the refusals of a floor",
    "registry": "a table of entries by name or number",
    "remote": "what another process holds: a state, the service of a facilitator",
    "requests": "EIP-7685 requests of a block, HTTP requests of the shop",
    "routes": "a choice of ways: how a payment is captured, where an HTTP request goes",
    "runner": "what runs a request",
    "shipping": "how a value goes to another process",
    "values": "the data types of a floor",
    "view": "what is shown of something",
}  # fmt: skip


def places_by_name() -> dict[str, set[str]]:
    found = defaultdict(set)
    for path in files(".py", ".pyx", under=("fastevm", "rpc", "bench", "examples")):
        if path.stem not in ("__init__", "__main__"):
            found[path.stem].add(folder_of(path))
    return found


def folder_of(path: Path) -> str:
    return path.relative_to(ROOT).parent.as_posix()


def test_files_of_one_name_are_the_same_thing_for_two_subjects() -> None:
    for name, folders in places_by_name().items():
        subjects = folders - ROOMS_BY_SUBJECT.keys()
        if len(subjects) > 1:
            assert name in SAME_THING_FOR_TWO_SUBJECTS, f"{name}: {sorted(folders)}"
