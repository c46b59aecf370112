"""Random sequences of calls on the public objects with hostile values: errors, never a crash.

``python -m tests.fuzz.public_api --sequences 100000 --seed 1``. Names come from the stubs. A
sequence makes objects (without their constructors too), calls and assigns to what they have, and
copies, pickles and subclasses them, on two threads at once. Only a crash, a hang or a report of a
sanitizer is a failure: any exception is an answer. The last sequence is named on the way, so that
``--seed`` and ``--first`` repeat it.
"""

import argparse
import ast
import copy
import pickle
import random
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

import fastevm
from fastevm.simulate import view_of

ROOT: Final = Path(fastevm.__file__).parent
STEPS: Final = 12  # of a sequence and thread
REPORT_EVERY: Final = 1_000
CONTRACT: Final = b"\xc0" * 20
# Code that ends: gas is one of the hostile values.
CODES: Final = tuple(
    bytes.fromhex(code)
    for code in (
        "", "00", "fe", "ef0100" + "c1" * 20, "5f5ffd", "5f545f5560015f55", "600160005260205ff3",
        "5f5f5f5f5f5f5af1", "5f5f5ff0ff", "60205fa0", "5f5f5f5f60085afa00", "6010600060003e",
        "7f" + "ff" * 32 + "6000f3", "5a5a5a", "30315f5f5f5f5f3061fffff1",
    )
)  # fmt: skip


class Lying(list):  # type: ignore[type-arg]
    """A list of another length than it says."""

    said = 20

    def __len__(self) -> int:
        return self.said


class Number:
    """A number that does something when it is asked for."""

    def __init__(self, act: Callable[[], object], value: int = 1) -> None:
        self.act, self.value = act, value

    def __index__(self) -> int:
        with suppress(Exception):
            self.act()
        return self.value


def members_of(name: str) -> tuple[list[str], list[str]]:
    """Methods and attributes of a public class as its stub names them."""
    module = sys.modules[getattr(fastevm, name).__module__]
    stub = Path(str(module.__file__)).parent / f"{module.__name__.rpartition('.')[2]}.pyi"
    stub = stub if stub.exists() else stub.with_suffix(".py")
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            methods = [item.name for item in node.body if isinstance(item, ast.FunctionDef)]
            values = [
                item.target.id
                for item in node.body
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
            ]
            return methods, values
    raise LookupError(f"{stub} has no class {name}")


CLASSES: Final = tuple(name for name in fastevm.__all__ if isinstance(getattr(fastevm, name), type))
FUNCTIONS: Final = tuple(
    name for name in fastevm.__all__
    if callable(getattr(fastevm, name)) and name not in (*CLASSES, "simulate_async")
)  # fmt: skip
MEMBERS: Final = {name: members_of(name) for name in CLASSES}
KEYWORDS: Final = (
    "state", "number", "timestamp", "gas_limit", "chain_id", "coinbase", "base_fee", "difficulty",
    "blob_base_fee", "prev_randao", "block_hashes", "balance", "nonce", "code", "storage", "to",
    "data", "sender", "value", "gas", "gas_price", "type", "max_fee_per_gas", "access_list",
    "max_priority_fee_per_gas", "blob_versioned_hashes", "authorization_list", "v", "r", "s",
)  # fmt: skip


class Sequence:
    """One sequence: its objects, shared by its threads."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.objects: list[Any] = [fastevm.EVM(), fastevm.Layer.empty()]

    def value(self, depth: int = 0) -> Any:
        """Something to give to a function."""
        pick = self.random
        kind = pick.randrange(16 if depth < 2 else 9)
        if kind < 3:
            return pick.choice(self.objects)
        if kind < 5:
            return pick.choice((-1, 0, 1, 2, 21_000, 30_000_000, 2**63 - 1, 2**64, 2**256, True))
        if kind < 7:
            return pick.choice((CONTRACT, b"\1" * 20, bytes(32), *CODES, "0x" + "c0" * 20, "osaka"))
        if kind < 9:
            return pick.choice((None, "", "0x", 1.5, float("nan"), b"x" * 10_000, "\ud800", (), {}))
        if kind == 9:
            return Number(self.step, pick.choice((0, 1, 2**70, -1)))
        if kind == 10:
            lying = Lying(self.value(depth + 1) for _ in range(pick.randrange(6)))
            lying.said = pick.choice((0, 3, 20, 32, 2**40))
            return lying
        if kind == 11:
            return [self.value(depth + 1) for _ in range(pick.randrange(5))]
        if kind == 12:
            return memoryview(bytearray(pick.choice((0, 20, 32))))
        key = pick.choice((CONTRACT, b"\2" * 20, "balance", "nonce", "code", "storage", 1, None))
        return {key: self.value(depth + 1)}

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        pick = self.random
        return (
            [self.value() for _ in range(pick.choice((0, 0, 1, 1, 2, 3)))],
            {pick.choice(KEYWORDS): self.value() for _ in range(pick.choice((0, 0, 0, 1, 2)))},
        )

    def call(self, function: Any) -> None:
        positional, named = self.arguments()
        self.keep(function(*positional, **named))

    def keep(self, value: Any) -> None:
        if len(self.objects) < 40:
            self.objects.append(value)

    def make(self) -> None:
        """An object by its constructor, without it, or of a subclass."""
        kind = getattr(fastevm, self.random.choice(CLASSES))
        way = self.random.randrange(4)
        if way == 0:
            self.call(kind)
        elif way == 1:
            self.keep(kind.__new__(kind))
        elif way == 2:
            derived = type("Derived", (kind,), {"__init__": lambda self, *_, **__: None})
            self.call(derived)
        else:
            positional, named = self.arguments()
            self.keep(kind.__new__(kind, *positional, **named))

    def use(self) -> None:
        """A member of an object, or a public function."""
        pick = self.random
        target = pick.choice(self.objects)
        owner = next((n for n in CLASSES if isinstance(target, getattr(fastevm, n))), None)
        if pick.randrange(12) == 0:
            self.simulate()
            return
        if owner is None or pick.randrange(6) == 0:
            self.call(getattr(fastevm, pick.choice(FUNCTIONS)))
            return
        methods, values = MEMBERS[owner]
        name = pick.choice((*methods, *values))
        way = pick.randrange(8)
        if way == 0:
            setattr(target, name, self.value())
        elif way == 1:
            delattr(target, name)
        else:
            member = getattr(target, name)
            self.call(member) if callable(member) else self.keep(member)

    def simulate(self) -> None:
        """Simulated calls on a view one of whose parts is hostile."""
        view = view_of(fastevm.Layer.empty())
        name = self.random.choice(("layer", "block_hash", "ancestors", "config", "schedule"))
        if self.random.randrange(2):
            view = replace(view, **{name: self.value()})
        else:
            name = self.random.choice([field.name for field in fields(view.header)])
            view = replace(view, header=replace(view.header, **{name: self.value()}))
        self.keep(fastevm.simulate(view, [{"to": CONTRACT}, self.value()]))

    def hook(self) -> None:
        """Python inside a run: a precompile, or hooks, that do something hostile."""
        evm = self.random.choice([o for o in self.objects if isinstance(o, fastevm.EVM)])
        answer = self.value()

        def act(*_: object) -> object:
            self.step()
            return answer

        if self.random.randrange(2):
            evm.precompiles[self.value()] = act
        evm.precompiles[CONTRACT] = act
        if self.random.randrange(2):
            evm.hooks = fastevm.Hooks(enter=act, leave=act, step=act, console=act)
        self.keep(evm.call(CONTRACT, self.value(), gas=50_000))

    def forge(self, target: Any) -> Any:
        """What a pickle with other values in it gives."""
        made = target.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        if not isinstance(target, tuple(getattr(fastevm, name) for name in CLASSES)):
            return None
        return made[0](*(self.random.choice((item, self.value())) for item in made[1]))

    def duplicate(self) -> None:
        target = self.random.choice(self.objects)
        way = self.random.choice(
            (copy.copy, copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o)), self.forge)
        )
        self.keep(way(target))

    def step(self) -> None:
        """One step; whatever it raises was an answer."""
        with suppress(Exception):
            self.random.choice(
                (self.make, self.use, self.use, self.use, self.use, self.duplicate, self.hook)
            )()

    def run(self) -> None:
        """All steps, on this thread and on another."""

        def steps() -> None:
            for _ in range(STEPS):
                self.step()

        other = threading.Thread(target=steps)
        other.start()
        steps()
        other.join()


def main() -> None:
    """Run so many sequences."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sequences", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    for number in range(options.first, options.first + options.sequences):
        if number % REPORT_EVERY == 0:
            print(f"sequence {number} of seed {options.seed}", flush=True)
        Sequence(options.seed * 1_000_003 + number).run()
    print(f"{options.sequences} sequences, no crash")


if __name__ == "__main__":
    main()
