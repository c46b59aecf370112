"""Compares programs that call native contracts on fastevm and on the specification."""

from __future__ import annotations

from random import Random

from fastevm.evm import EVM
from fastevm.testing.native_calls import NativeCall, NativeState

from .compare import ADMIN, CHAIN_ID, FORKS, prepared, specified, state_difference
from .generator import CONTRACTS, DELEGATED, PEOPLE, PLENTY, Assembler, Generator
from .specification import factory, policies
from .specification.evm import CALL, DELEGATION, Environment, Message, run_message
from .specification.journal import Journal
from .specification.machine import FIXED, Result

WEI = 3


def opened(random: Random, fork: int, now: int) -> tuple[Generator, Journal, NativeState]:
    """Creates two tokens and some policies, on `specification` and on fastevm."""
    generator = Generator(random, fork, now)
    journal = prepared()
    product = NativeState(FORKS[fork], chain_id=CHAIN_ID, timestamp=now)
    product.evm.set_storage(policies.ACTIVATION, policies.ACTIVATION_ROOT + 1, ADMIN)
    for wanted in generator.opening():
        made = specified(journal, fork, now, wanted, PLENTY)
        product.run([NativeCall(wanted.to, wanted.data, wanted.sender, 0, PLENTY, False)])
        if wanted.to == factory.FACTORY:
            generator.tokens.append(made.output[12:])
    return generator, journal, product


def put_programs(generator: Generator, journal: Journal, evm: EVM) -> None:
    for index, address in enumerate(CONTRACTS):
        code = Assembler(generator, CONTRACTS[index + 1 :]).assemble()
        journal.codes[address], journal.balances[address] = code, WEI
        evm.set_code(address, code)
        evm.set_balance(address, WEI)
    targets = (generator.tokens[-1], policies.POLICIES, CONTRACTS[2])
    for address, target in zip(DELEGATED, targets, strict=True):
        journal.codes[address] = DELEGATION + target
        evm.set_code(address, DELEGATION + target)


def run_specified(
    journal: Journal, fork: int, now: int, sender: bytes, data: bytes, gas: int
) -> Result:
    journal.begin_transaction((*FIXED, bytes(20), sender, CONTRACTS[0]))
    env = Environment(journal, fork, CHAIN_ID, now)
    to = CONTRACTS[0]
    return run_message(env, Message(CALL, sender, to, to, 0, data, gas, False))


def difference(seed: int, count: int) -> str | None:
    """Returns the first difference in ``count`` transactions on one state, or None."""
    random = Random(seed)
    fork = random.choice(tuple(FORKS))
    now = random.choice((1, 1000, 1_800_000_000))
    generator, journal, product = opened(random, fork, now)
    for index in range(count):
        put_programs(generator, journal, product.evm)
        sender, gas = random.choice(PEOPLE), PLENTY
        if random.random() < 0.5:
            trial = run_specified(journal, fork, now, sender, b"", PLENTY)
            journal.revert((0, 0, 0))
            gas = random.randrange(PLENTY - trial.gas_left + 3000)
        theirs = run_specified(journal, fork, now, sender, b"", gas)
        ours = product.run([NativeCall(CONTRACTS[0], b"", sender, 0, gas, False)])[0]
        expected = (theirs.success, theirs.output, gas - theirs.gas_left,
                    journal.refund if theirs.success else 0,
                    [(log.address, log.topics, log.data) for log in journal.logs])  # fmt: skip
        found = (ours.status == "success", ours.output, ours.gas_used,
                 ours.gas_refunded if ours.status == "success" else 0,
                 [(log.address, tuple(log.topics), log.data) for log in ours.logs])  # fmt: skip
        for name, ours_, theirs_ in zip(
            ("success", "output", "gas", "refund", "logs"), found, expected, strict=True
        ):
            if ours_ != theirs_:
                return (
                    f"seed {seed} transaction {index} in {FORKS[fork]}: {name} is {ours_!r}, "
                    f"expected {theirs_!r} (gas {gas}, {ours.status})"
                )
        for address in (*CONTRACTS, *PEOPLE, *generator.tokens, *FIXED):
            balance = journal.balances.get(address, 0)
            if product.evm.balance(address) != balance and address not in PEOPLE:
                return f"seed {seed} transaction {index}: the balance of 0x{address.hex()} differs"
    return state_difference(seed, journal, product)
