"""Calls fastevm's public API randomly with hostile values. Exceptions are allowed, crashes are not.

``python -m tests.fuzz.public_api --calls 1000000 --seed 1``. Names and types come from the stubs.
Most arguments are valid, some are hostile. Two threads run each sequence on the same objects. A
sequence

- makes objects, with and without their constructors
- calls methods and sets attributes
- copies, pickles and subclasses objects
- runs Python hooks during execution, and blocks on several threads
- reads the columns of batches as other libraries do
- calls contracts by their ABI

Only a crash, a hang or a sanitizer's report is a failure. The number of the current sequence is
printed, so that ``--seed`` and ``--first`` can repeat it. ``--counts`` prints how often each name
was called, and how many calls were accepted.
"""

from __future__ import annotations

import argparse
import copy
import io
import itertools
import pickle
import random
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from typing import Any, Final

import fastevm
from fastevm.core.primitives.replace import replace
from fastevm.evm.snapshot import Snapshot
from fastevm.integrations import pyrevm
from fastevm.simulate import view_of
from tests.fuzz.larger_objects import read_stream, sealed_block, signed
from tests.fuzz.plausible_values import ABI, CODES, CONTRACT, FORKS, plausible, state
from tests.fuzz.public_names import CLASSES, FUNCTIONS, MEMBERS, Parameter

STEPS: Final = 12  # steps that each thread makes in a sequence
REPORT_EVERY: Final = 1_000  # sequences between two lines of output
HOSTILE: Final = 8  # on average, one in this many arguments is hostile


class Lying(list):  # type: ignore[type-arg]
    """A list whose ``len`` is wrong."""

    said = 20

    def __len__(self) -> int:
        return self.said


class Number:
    """A number whose conversion has side effects."""

    def __init__(self, act: Callable[[], object], value: int = 1) -> None:
        self.act, self.value = act, value

    def __index__(self) -> int:
        with suppress(Exception):
            self.act()
        return self.value


BY_NAME: Final = {kind.__name__: kind for kind in CLASSES}
# Parameter -> the class of object that it takes, which other calls return.
OWN: Final[dict[str, Any]] = {
    "snapshot": Snapshot,
    "checkpoint": pyrevm.JournalCheckpoint,
    "data": bytes,
}
calls: Counter[str] = Counter()  # number of calls by name, over all threads
accepted: Counter[str] = Counter()


class Sequence:
    """A sequence of random calls on objects that its threads share."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        layer = fastevm.Layer.of(state(self.random))
        fork = self.random.choice(FORKS[:-1])
        self.objects: list[Any] = [fastevm.EVM(fork, state=layer), layer, pyrevm.EVM(spec_id=fork)]

    def value(self, depth: int = 0) -> Any:
        """Returns a value to pass to a function."""
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

    def argument(self, parameter: Parameter) -> Any:
        """Returns a valid or hostile argument for a parameter."""
        pick = self.random
        if pick.randrange(HOSTILE) == 0:
            return self.value()
        if parameter.name == "transaction" and pick.randrange(4):
            return signed(pick)
        own = [each for each in self.objects if isinstance(each, OWN.get(parameter.name, ()))]
        if own:
            return pick.choice(own)
        words = parameter.annotation.replace("|", " ").split()
        kind = next((BY_NAME[word] for word in words if word in BY_NAME), None)
        if kind is not None:
            fitting = [each for each in self.objects if isinstance(each, kind)]
            if fitting:
                return pick.choice(fitting)
        return plausible(pick, parameter.name, parameter.annotation)

    def arguments(self, parameters: list[Parameter]) -> tuple[list[Any], dict[str, Any]]:
        pick = self.random
        positional: list[Any] = []
        named: dict[str, Any] = {}
        optional = max(4, len(parameters) - 2)
        for parameter in parameters:
            if parameter.required or pick.randrange(optional) < 2:
                if parameter.named or len(positional) < parameters.index(parameter):
                    named[parameter.name] = self.argument(parameter)
                else:
                    positional.append(self.argument(parameter))
        if pick.randrange(20) == 0:
            named[pick.choice(("state", "gas", "trace", "surprise"))] = self.value()
        if pick.randrange(20) == 0:
            positional.append(self.value())
        return positional, named

    def call(self, name: str, function: Any, parameters: list[Parameter]) -> None:
        positional, named = self.arguments(parameters)
        calls[name] += 1
        result = function(*positional, **named)
        accepted[name] += 1
        self.keep(result)

    def keep(self, value: Any) -> None:
        if len(self.objects) < 40:
            self.objects.append(value)
        else:
            self.objects[self.random.randrange(40)] = value

    def make(self) -> None:
        """Makes an object: with its constructor, without it, or of a subclass."""
        kind = self.random.choice(CLASSES)
        parameters = MEMBERS[kind].methods["__init__"]
        way = self.random.randrange(8)
        if way == 0:
            self.keep(kind.__new__(kind))
        elif way == 1:
            derived = type("Derived", (kind,), {"__init__": lambda self, *_, **__: None})
            self.call("Derived", derived, parameters)
        elif way == 2:
            positional, named = self.arguments(parameters)
            self.keep(kind.__new__(kind, *positional, **named))
        else:
            self.call(kind.__qualname__, kind, parameters)

    def use(self) -> None:
        """Calls, reads or sets a member of an object, or calls a public function."""
        pick = self.random
        target = pick.choice(self.objects)
        owner = next((kind for kind in type(target).__mro__ if kind in MEMBERS), None)
        if owner is None or pick.randrange(8) == 0:
            function, parameters = pick.choice(FUNCTIONS)
            self.call(function.__name__, function, parameters)
            return
        known = MEMBERS[owner]
        name = pick.choice((*known.methods, *known.values))
        way = pick.randrange(8)
        shown = f"{owner.__module__.rpartition('.')[2]}.{owner.__name__}.{name}"
        if way == 0 or (way < 4 and name in known.values):
            calls[shown] += 1
            setattr(target, name, self.argument(Parameter(name, known.values.get(name, ""), True,
                                                          False)))  # fmt: skip
            accepted[shown] += 1
        elif way == 1 and pick.randrange(4) == 0:
            delattr(target, name)
        elif name in known.values:
            calls[shown] += 1
            self.keep(getattr(target, name))
            accepted[shown] += 1
        else:
            self.call(shown, getattr(target, name), known.methods[name])

    def simulate(self) -> None:
        """Simulates calls on a state view. One part of the request is hostile."""
        view = view_of(fastevm.Layer.empty())
        name = self.random.choice(("layer", "block_hash", "ancestors", "config", "schedule"))
        if self.random.randrange(2):
            view = replace(view, **{name: self.value()})
        else:
            name = self.random.choice(type(view.header).__struct_fields__)
            view = replace(view, header=replace(view.header, **{name: self.value()}))
        calls["simulate"] += 1
        self.keep(fastevm.simulate(view, [{"to": CONTRACT}, self.value()]))
        accepted["simulate"] += 1

    def batch(self) -> None:
        """Simulates many bundles, and reads the columns of the result as another library does."""
        pick = self.random
        bundles = [
            [{"to": pick.choice((CONTRACT, self.value())), "value": pick.choice((0, 1))}]
            for _ in range(pick.randrange(4))
        ]
        target = pick.choice(
            [o for o in self.objects if isinstance(o, fastevm.EVM | fastevm.Layer)]
        )
        calls["simulate_many"] += 1
        made = fastevm.simulate_many(
            target, bundles, threads=pick.choice((1, 2)), columns=pick.random() < 0.7,
            balances=pick.random() < 0.5,
        )  # fmt: skip
        for found in made:
            self.keep(found)
        accepted["simulate_many"] += 1
        columns = pick.choice([o for o in self.objects if hasattr(o, "__arrow_c_stream__")])
        calls["__arrow_c_stream__"] += 1
        capsule = columns.__arrow_c_stream__(pick.choice((None, self.value())))
        accepted["__arrow_c_stream__"] += 1
        if pick.randrange(4):
            read_stream(capsule, pick)

    def block(self) -> None:
        """Builds and seals a block, then executes it again with other numbers of threads."""
        pick = self.random
        layer = pick.choice([o for o in self.objects if isinstance(o, fastevm.Layer)])
        calls["execute_block"] += 1
        again = sealed_block(pick, layer, self.keep, self.value)
        self.keep(again(pick.choice((1, 2, 3, self.value()))))
        accepted["execute_block"] += 1

    def contract(self) -> None:
        """Calls functions of a contract by its ABI."""
        pick = self.random
        evm = pick.choice([o for o in self.objects if isinstance(o, fastevm.EVM)])
        found = fastevm.Contract(evm, ABI, pick.choice((CONTRACT, self.value())))
        self.keep(found)
        function = pick.choice((found.read, found.write, found["many(uint256[])"], found.pay))
        way = pick.choice((function, function.call, function.transact, function.encode,
                           function.decode))  # fmt: skip
        calls["Contract.function"] += 1
        self.keep(way(pick.choice((1, b"x", "0x" + "c0" * 20, [1, 2], self.value()))))
        accepted["Contract.function"] += 1

    def hook(self) -> None:
        """Runs hostile Python code during execution, as a precompile or a hook."""
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
        calls["hooked"] += 1
        self.keep(evm.call(CONTRACT, self.value(), gas=50_000))
        accepted["hooked"] += 1

    def forge(self, target: Any) -> Any:
        """Pickles an object and changes values in the pickle. Returns the unpickled object."""
        made = target.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        if not isinstance(target, CLASSES):
            return None
        return made[0](*(self.random.choice((item, self.value())) for item in made[1]))

    def duplicate(self) -> None:
        target = self.random.choice(self.objects)
        way = self.random.choice(
            (copy.copy, copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o)), self.forge)
        )
        calls["duplicate"] += 1
        self.keep(way(target))
        accepted["duplicate"] += 1

    def step(self) -> None:
        """Makes one random step. Any exception is allowed."""
        kind = self.random.randrange(40)
        with suppress(Exception):
            if kind < 6:
                self.make()
            elif kind < 32:
                self.use()
            elif kind < 34:
                self.duplicate()
            else:
                (self.hook, self.simulate, self.batch, self.block, self.contract, self.hook)[
                    kind - 34
                ]()

    def run(self) -> None:
        """Makes all steps, in this thread and in a second thread at the same time."""

        def steps() -> None:
            for _ in range(STEPS):
                self.step()

        other = threading.Thread(target=steps)
        other.start()
        steps()
        other.join()


def report(number: int, seed: int) -> None:
    print(f"sequence {number} of seed {seed}: {calls.total()} calls", file=sys.stderr, flush=True)


def main() -> None:
    """Runs sequences up to the given number of sequences or calls."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sequences", type=int, default=None)
    parser.add_argument("--calls", type=int, default=None, help="end after so many calls")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--counts", action="store_true")
    options = parser.parse_args()
    left = 1_000 if options.sequences is None and options.calls is None else options.sequences
    numbers = itertools.count() if left is None else range(left)
    warnings.simplefilter("ignore")  # hides warnings about coroutines that are never awaited
    # hides what machines with a trace to standard output print
    with redirect_stdout(io.StringIO()) as shown:
        for number in numbers:
            if number % REPORT_EVERY == 0:
                report(options.first + number, options.seed)
            if options.calls is not None and calls.total() >= options.calls:
                break
            Sequence(options.seed * 1_000_003 + options.first + number).run()
            shown.seek(0)
            shown.truncate()
    if options.counts:
        for name, count in sorted(calls.items()):
            print(f"{count:8} {accepted[name]:8} {name}")
    print(f"{calls.total()} calls, {accepted.total()} accepted, no crash")


if __name__ == "__main__":
    main()
