"""Runs sequences of calls on `specification` and on fastevm, and finds the first difference."""

from __future__ import annotations

from random import Random

from fastevm.testing.native_calls import NativeCall, NativeState

from .generator import PEOPLE, PLENTY, Call, Generator
from .specification import factory, policies
from .specification.journal import MARKER, Journal, mapping
from .specification.machine import FIXED, Result, call

FORKS = {1: "beryl", 2: "cobalt", 3: "denim"}
CHAIN_ID = 31337  # not a Base chain, so that the ActivationRegistry has no built-in admin
ADMIN = int.from_bytes(PEOPLE[3], "big")
CREATE = bytes.fromhex("62975e6a")


def prepared() -> Journal:
    """Returns a state with all features of the ActivationRegistry active."""
    journal = Journal()
    journal.codes[policies.ACTIVATION] = MARKER
    for feature in (*factory.FEATURES, policies.POLICY_FEATURE):
        slot = mapping(policies.ACTIVATION_ROOT, feature)
        journal.storage[policies.ACTIVATION, slot] = 1
    journal.storage[policies.ACTIVATION, policies.ACTIVATION_ROOT + 1] = ADMIN
    return journal


def specified(journal: Journal, fork: int, now: int, wanted: Call, gas: int) -> Result:
    journal.begin_transaction((wanted.to, *FIXED))
    if wanted.value > journal.balances.get(wanted.sender, 0):
        journal.balances[wanted.sender] = wanted.value
    return call(
        journal, fork=fork, chain_id=CHAIN_ID, now=now, caller=wanted.sender, address=wanted.to,
        data=wanted.data, gas=gas, value=wanted.value, is_static=wanted.static,
    )  # fmt: skip


def chosen_gas(journal: Journal, fork: int, now: int, wanted: Call, random: Random) -> int:
    """Returns the gas of the call. If None, chooses gas that may run out during the call."""
    if wanted.gas is not None:
        return wanted.gas
    mark = journal.mark()
    used = PLENTY - specified(journal, fork, now, wanted, PLENTY).gas_left
    journal.revert((0, *mark[1:]))
    return random.randrange(used + 3000)


def difference(seed: int, length: int) -> str | None:
    """Returns the first difference in a sequence of calls, or None."""
    random = Random(seed)
    fork = random.choice(tuple(FORKS))
    now = random.choice((1, 1000, 1_800_000_000))
    generator = Generator(random, fork, now)
    journal, product = prepared(), NativeState(FORKS[fork], chain_id=CHAIN_ID, timestamp=now)
    product.evm.set_storage(policies.ACTIVATION, policies.ACTIVATION_ROOT + 1, ADMIN)
    calls = generator.opening()
    for index in range(length):
        wanted = calls[index] if index < len(calls) else generator.call()
        gas = chosen_gas(journal, fork, now, wanted, random)
        theirs = specified(journal, fork, now, wanted, gas)
        logs = [(log.address, log.topics, log.data) for log in journal.logs]
        refund = journal.refund
        if wanted.static:
            journal.revert((0, 0, 0))
        ours = product.run(
            [NativeCall(wanted.to, wanted.data, wanted.sender, wanted.value, gas, wanted.static)]
        )[0]
        expected: dict[str, object] = {
            "success": theirs.success,
            "output": theirs.output,
            "gas": gas - theirs.gas_left,
            "refund": refund if theirs.success else 0,
            "logs": logs if theirs.success else [],
        }
        found: dict[str, object] = {
            "success": ours.status == "success",
            "output": ours.output,
            "gas": ours.gas_used,
            "refund": ours.gas_refunded if ours.status == "success" else 0,
            "logs": [(log.address, tuple(log.topics), log.data) for log in ours.logs],
        }
        for name, value in expected.items():
            if found[name] != value:
                return (
                    f"seed {seed} call {index} in {FORKS[fork]}: {name} is {found[name]!r}, "
                    f"expected {value!r}\n  {wanted} gas {gas} ({ours.status})"
                )
        if theirs.success and wanted.to == factory.FACTORY and wanted.data[:4] == CREATE:
            generator.tokens.append(theirs.output[12:])
    return state_difference(seed, journal, product)


def state_difference(seed: int, journal: Journal, product: NativeState) -> str | None:
    theirs: dict[bytes, dict[int, int]] = {}
    for (address, slot), value in journal.storage.items():
        if value:
            theirs.setdefault(address, {})[slot] = value
    ours = {a: slots for a, slots in product.storage().items() if slots}
    if ours != theirs:
        return f"seed {seed}: the storage differs at the end"
    for address, code in journal.codes.items():
        if product.evm.code(address) != code:
            return f"seed {seed}: the code of 0x{address.hex()} differs"
    return None
