"""Gas of two dimensions: the gas of a frame, its payments, and gas returned by a child."""

from dataclasses import dataclass, field
from typing import Any

from ethereum.forks.bpo2.vm import BlockEnvironment, Evm, Message
from ethereum.forks.bpo2.vm.exceptions import OutOfGasError
from ethereum_types.numeric import Uint

from .access import Recorder
from .numbers import FROZEN, Numbers
from .reach import reach


class Unspecified(Exception):
    """The rules do not say what happens."""


@dataclass
class Block(BlockEnvironment):
    """A block environment with what Amsterdam adds."""

    numbers: Numbers = FROZEN
    slot_number: int = 0
    recorder: Recorder = field(default_factory=Recorder)

    def state_gas(self, size: int) -> int:
        """The state gas of this many bytes of state."""
        return size * self.numbers.price(int(self.block_gas_limit))

    @property
    def account_gas(self) -> int:
        return self.state_gas(self.numbers.account_bytes)

    @property
    def slot_gas(self) -> int:
        return self.state_gas(self.numbers.slot_bytes)


@dataclass
class Call(Message):
    """A message with its reservoir."""

    reservoir: int = 0


@dataclass
class Purse:
    """Two pots outside of any frame, with the counters of a frame."""

    gas_left: Uint
    reservoir: int
    regular: int = 0
    state: int = 0
    spilled: int = 0


@dataclass
class Frame(Evm):
    """A frame with its reservoir.

    April: ``regular`` and ``state`` gas used, credits ``applied`` and ``pending``. Frozen:
    ``spilled``, the state gas that the frame took from its regular gas.
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
    """Halt unless there is so much regular gas; nothing is taken."""
    if int(payer.gas_left) < amount:
        raise OutOfGasError


def charge(payer: Any, amount: Any) -> None:
    """Take regular gas."""
    amount = Uint(amount)
    if payer.gas_left < amount:
        raise OutOfGasError
    payer.gas_left -= amount
    payer.regular += int(amount)


def charge_state(payer: Frame | Purse, amount: int) -> None:
    """Take state gas: the reservoir first, then regular gas."""
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
    """April: give state gas back; what the frame did not pay waits for its caller."""
    applied = min(amount, frame.state)
    reach("state gas: S credited", applied)
    reach("state gas: S credit waits for the caller", applied < amount)
    frame.reservoir += applied
    frame.state -= applied
    frame.applied += applied
    frame.pending += amount - applied


def refill(payer: Frame | Purse, amount: int) -> None:
    """Frozen: give state gas back, first to the regular gas that it came from."""
    to_gas = min(amount, payer.spilled)
    reach("state gas: F given back to gas", amount and to_gas == amount)
    reach("state gas: F given back to both pots", 0 < to_gas < amount)
    reach("state gas: F given back to the reservoir", amount and not to_gas)
    payer.gas_left += Uint(to_gas)
    payer.spilled -= to_gas
    payer.reservoir += amount - to_gas


def give_back(frame: Frame, amount: int) -> None:
    """Give state gas back by the rules of the block."""
    (refill if frame.block.numbers.frozen else credit)(frame, amount)


def burn(frame: Frame) -> None:
    """An exceptional halt: all regular gas is used."""
    frame.regular += int(frame.gas_left)
    frame.gas_left = Uint(0)


def is_halted(frame: Frame) -> bool:
    return frame.error is not None and type(frame.error).__name__ != "Revert"


def return_gas(parent: Frame | Purse, child: Frame) -> None:
    """Frozen: what a caller, which kept its reservoir until now, has after the child's end."""
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
    """April: the same for a caller that handed its reservoir over."""
    parent.gas_left += child.gas_left
    parent.regular += child.regular
    if child.error is None:
        parent.state += child.state
        parent.applied += child.applied
        parent.reservoir += child.reservoir
        reach("state gas: S waiting credit is applied", child.pending and parent.state)
        credit(parent, child.pending)
    else:
        # `applied` is already taken off `state`: the fault that archives of April expect.
        returned = child.state + child.reservoir - child.applied
        reach("state gas: S fault: a credit is lost", child.applied)
        reach("state gas: failed child leaves a reservoir", child.reservoir)
        if returned < 0:
            raise Unspecified("more was credited than is left: the rules of April fail here")
        parent.reservoir += returned


def merge(parent: Frame, child: Frame) -> None:
    """Take over what a child left."""
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
