"""Counts regular gas and state gas: charges, refunds, and the gas that a child frame returns."""

from dataclasses import dataclass, field
from typing import Any

from ethereum.forks.bpo2.vm import BlockEnvironment, Evm, Message
from ethereum.forks.bpo2.vm.exceptions import OutOfGasError
from ethereum_types.numeric import Uint

from .access import Recorder
from .numbers import FROZEN, Numbers
from .reach import reach


class Unspecified(Exception):
    """Raised if a result is not specified, so that the case cannot be compared."""


@dataclass
class Block(BlockEnvironment):
    """A block environment with Amsterdam's fields."""

    numbers: Numbers = FROZEN
    slot_number: int = 0
    recorder: Recorder = field(default_factory=Recorder)

    def state_gas(self, size: int) -> int:
        """Returns the state gas for ``size`` bytes of new state."""
        return size * self.numbers.price(int(self.block_gas_limit))

    @property
    def account_gas(self) -> int:
        return self.state_gas(self.numbers.account_bytes)

    @property
    def slot_gas(self) -> int:
        return self.state_gas(self.numbers.slot_bytes)


@dataclass
class Call(Message):
    """A message that also passes a reservoir of state gas."""

    reservoir: int = 0


@dataclass
class Purse:
    """The gas of a transaction outside its frames, with the same counters as a frame."""

    gas_left: Uint
    reservoir: int
    regular: int = 0
    state: int = 0
    spilled: int = 0


@dataclass
class Frame(Evm):
    """A frame with a reservoir of state gas, and counters.

    In the rules of April, ``regular`` and ``state`` count used gas, ``applied`` and ``pending``
    count refunds of state gas. In the final rules, ``spilled`` is the state gas that regular gas
    has paid.
    """

    reservoir: int = 0
    regular: int = 0
    state: int = 0
    applied: int = 0
    pending: int = 0
    spilled: int = 0

    @property
    def block(self) -> Block:
        assert isinstance(self.message.block_env, Block)
        return self.message.block_env


def need(payer: Frame | Purse, amount: int) -> None:
    """Halts unless ``amount`` of regular gas is left. Charges nothing."""
    if int(payer.gas_left) < amount:
        raise OutOfGasError


def charge(payer: Any, amount: Any) -> None:
    """Charges regular gas."""
    amount = Uint(amount)
    if payer.gas_left < amount:
        raise OutOfGasError
    payer.gas_left -= amount
    payer.regular += int(amount)


def charge_state(payer: Frame | Purse, amount: int) -> None:
    """Charges state gas: from the reservoir first, and the rest from regular gas."""
    from_gas = max(0, amount - payer.reservoir)
    reach("state gas: not to be paid", from_gas > int(payer.gas_left))
    need(payer, from_gas)
    reach("state gas: paid by the reservoir", amount and not from_gas)
    reach("state gas: paid by both pots", 0 < from_gas < amount)
    reach("state gas: paid by gas", amount and from_gas == amount)
    payer.reservoir -= amount - from_gas
    payer.gas_left -= Uint(from_gas)
    payer.state += amount
    payer.spilled += from_gas


def credit(frame: Frame, amount: int) -> None:
    """Refunds state gas (April), at most what the frame has used.

    The rest is pending for the caller.
    """
    applied = min(amount, frame.state)
    reach("state gas: S credited", applied)
    reach("state gas: S credit waits for the caller", applied < amount)
    frame.reservoir += applied
    frame.state -= applied
    frame.applied += applied
    frame.pending += amount - applied


def refill(payer: Frame | Purse, amount: int) -> None:
    """Refunds state gas (final rules): first what regular gas paid, the rest to the reservoir."""
    to_gas = min(amount, payer.spilled)
    reach("state gas: F given back to gas", amount and to_gas == amount)
    reach("state gas: F given back to both pots", 0 < to_gas < amount)
    reach("state gas: F given back to the reservoir", amount and not to_gas)
    payer.gas_left += Uint(to_gas)
    payer.spilled -= to_gas
    payer.reservoir += amount - to_gas


def give_back(frame: Frame, amount: int) -> None:
    """Refunds state gas by the rule set of the block."""
    (refill if frame.block.numbers.frozen else credit)(frame, amount)


def burn(frame: Frame) -> None:
    """Consumes all regular gas, for an exceptional halt."""
    frame.regular += int(frame.gas_left)
    frame.gas_left = Uint(0)


def is_halted(frame: Frame) -> bool:
    return frame.error is not None and type(frame.error).__name__ != "Revert"


def return_gas(parent: Frame | Purse, child: Frame) -> None:
    """Returns a child's gas to its caller (final rules), which kept its reservoir meanwhile."""
    used = child.message.reservoir - child.reservoir + child.spilled
    reach("state gas: F frame ends with less than nothing used", used < 0)
    reach("state gas: failed child leaves a reservoir", child.error and parent.reservoir)
    if child.error is None:
        parent.gas_left += child.gas_left
        parent.reservoir = child.reservoir
        parent.spilled += child.spilled
        repaid = min(parent.spilled, parent.reservoir)
        reach("state gas: F gas repaid after a child", repaid)
        parent.gas_left += Uint(repaid)
        parent.spilled -= repaid
        parent.reservoir -= repaid
    elif not is_halted(child):
        reach("state gas: F reverted child gives gas back", child.spilled)
        parent.gas_left += child.gas_left + Uint(child.spilled)
    else:
        reach("state gas: F halted child burns what it took", child.spilled)


def merge_gas_of_april(parent: Frame, child: Frame) -> None:
    """Returns a child's gas to its caller (April), which has passed its whole reservoir on."""
    parent.gas_left += child.gas_left
    parent.regular += child.regular
    if child.error is None:
        parent.state += child.state
        parent.applied += child.applied
        parent.reservoir += child.reservoir
        reach("state gas: S waiting credit is applied", child.pending and parent.state)
        credit(parent, child.pending)
    else:
        # `applied` is subtracted twice: `state` no longer contains it. The fixtures of April expect
        # this error.
        returned = child.state + child.reservoir - child.applied
        reach("state gas: S fault: a credit is lost", child.applied)
        reach("state gas: failed child leaves a reservoir", child.reservoir)
        if returned < 0:
            raise Unspecified("more was credited than is left: the rules of April fail here")
        parent.reservoir += returned


def merge(parent: Frame, child: Frame) -> None:
    """Returns the gas of an ended child to its parent, by the rule set of the block."""
    if parent.block.numbers.frozen:
        return_gas(parent, child)
    else:
        merge_gas_of_april(parent, child)
    if child.error is None:
        parent.logs += child.logs
        parent.refund_counter += child.refund_counter
        parent.accounts_to_delete.update(child.accounts_to_delete)
        parent.accessed_addresses.update(child.accessed_addresses)
        parent.accessed_storage_keys.update(child.accessed_storage_keys)
