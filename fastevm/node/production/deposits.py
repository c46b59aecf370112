"""Deposits from L1 into an OP Stack chain."""

from __future__ import annotations

from msgspec import Struct


class DepositRefused(ValueError):
    """The portal on L1 would reject this deposit, or the deposit exceeds a limit."""


class Deposit(Struct, frozen=True, kw_only=True):
    """A deposit of an L1 user: a message, and ``mint`` new wei for its sender.

    If ``to`` is None, the deposit creates a contract. ``gas_limit`` was bought on L1.
    """

    sender: bytes
    to: bytes | None
    mint: int = 0
    value: int = 0
    gas_limit: int
    data: bytes = b""
