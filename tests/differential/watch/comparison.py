"""Compares the results of a `Watch` with full executions on the same state views."""

from __future__ import annotations

import pickle
from typing import Any

from fastevm.errors import FastevmError
from fastevm.rpc_types.simulate_request import payload_from
from fastevm.simulate import CallRequest, call, simulate_many
from fastevm.simulate.batch.results import BundleResult
from fastevm.simulate.watch.watch import Watch

from .chains import World

QUESTIONS = 24
BASES = 16


def described(result: BundleResult | None) -> Any:
    """Returns all values that a result reports, in a form that compares equal."""
    if result is None:
        return None
    error = result.error
    refused = None if error is None else (type(error), str(error))
    return result.success, result.gas_used, result.calls, result.balance_changes, refused


def read_call(question: dict[str, Any]) -> CallRequest:
    """Parses a call object."""
    request: CallRequest = payload_from([question]).blocks[0].calls[0]
    return request


class Comparison:
    """A watch on a random chain, with the results of full executions to compare with."""

    def __init__(self, seed: int, *, threads: int = 1, budgets: bool = True) -> None:
        self.seed, self.threads = seed, threads
        self.world = World(seed)
        self.random = self.world.random
        self.gas_cap = self.random.choice((0, 1_000_000, 50_000_000))
        self.shows_base_fee = self.random.random() < 0.5
        self.watch = self.new_watch()
        self.questions: dict[int, tuple[Any, str]] = {}
        self.seen: dict[int, Any] = {}
        self.budgets = budgets
        self.compared = 0

    def new_watch(self) -> Watch:
        """Returns an empty watch with the options of this comparison."""
        return Watch(
            threads=self.threads, gas_cap=self.gas_cap, balances=True,
            shows_base_fee=self.shows_base_fee,
        )  # fmt: skip

    def add(self, count: int) -> None:
        """Adds ``count`` random questions to the watch."""
        for _ in range(count):
            question, block = self.world.question()
            id = self.watch.add(question, block=block, priority=self.random.randrange(3))
            self.questions[id] = question, block

    def full(self, view: Any) -> dict[int, Any]:
        """Returns the results of full executions of all questions on a state view, by id."""
        found: dict[int, Any] = {}
        nexts = [id for id, (_, block) in self.questions.items() if block == "next"]
        payloads = [self.questions[id][0] for id in nexts]
        results = simulate_many(
            view, payloads, threads=1, balances=True, gas_cap=self.gas_cap, chunk_size=64
        )
        found.update(zip(nexts, map(described, results), strict=True))
        fresh = self.new_watch()
        owns = {
            fresh.add(question, block="own"): id
            for id, (question, block) in self.questions.items() if block == "own"
        }  # fmt: skip
        fresh.advance(view)
        for new, id in owns.items():
            found[id] = described(fresh.answer(new).answer)
        fresh.close()
        for id in owns.values():
            self.compare_with_call(view, id, found[id])
        return found

    def compare_with_call(self, view: Any, id: int, found: Any) -> None:
        """Asserts that a single call has the result of `simulate.call` in the same block."""
        question = self.questions[id][0]
        if not isinstance(question, dict) or "blockStateCalls" in question:
            return
        try:
            result = call(
                view, read_call(question), gas_cap=self.gas_cap, shows_base_fee=self.shows_base_fee
            )
        except FastevmError as error:
            # A watched call's error begins with the call's position, where go-ethereum's begins
            # with "err:".
            kind, text = found[4]
            assert kind is type(error), (self.seed, found, error)
            assert text.removeprefix("calls[0]: ") == str(error).removeprefix("err: "), self.seed
            return
        outcome = found[2][0]
        assert (outcome.success, outcome.output, outcome.gas_used, outcome.error) == (
            result.success, result.output, result.gas_used, result.error,
        ), (self.seed, question, outcome, result)  # fmt: skip

    def differing(self) -> list[str]:
        """Advances the watch along the chain until a result differs.

        Returns a description, if any.
        """
        self.add(QUESTIONS)
        for step in range(BASES):
            view = self.world.view if step == 0 else self.world.advance()
            budget = 0.0 if self.budgets and self.random.random() < 0.1 else None
            if self.random.random() < 0.1:
                self.watch = pickle.loads(pickle.dumps(self.watch))
            changes = self.watch.advance(view, budget=budget)
            if budget is not None and self.random.random() < 0.5:
                changes += self.watch.refresh()
            for change in changes:
                if not change.stale:
                    self.seen[change.id] = described(change.answer)
            expected = self.full(view)
            for id, right in expected.items():
                standing = self.watch.answer(id)
                if standing.answer is None or standing.stale:
                    continue
                self.compared += 1
                if described(standing.answer) != right:
                    return [self.report(step, id, described(standing.answer), right)]
                if self.seen.get(id) != right:
                    return [self.report(step, id, self.seen.get(id), right) + " (not sent)"]
            if self.random.random() < 0.2:
                gone = self.random.sample(sorted(self.questions), 2)
                self.watch.remove(gone)
                for id in gone:
                    del self.questions[id]
                self.add(2)
        self.watch.close()
        return []

    def report(self, step: int, id: int, found: Any, right: Any) -> str:
        """Describes a difference."""
        return (
            f"seed {self.seed}, base {step}, question {self.questions[id]}: {found} != {right}"
            f" ({self.world.fork}, gas cap {self.gas_cap})"
        )
