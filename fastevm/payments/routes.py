"""How a call reaches a contract: from the signer's own account, or through a wallet it controls."""

from typing import Protocol

from msgspec import Struct
from msgspec.structs import force_setattr

from fastevm.payments.authorization import address
from fastevm.payments.calls import call_data


class Route(Protocol):
    """Turns a call that ``account`` shall make into the transaction that the signer sends."""

    @property
    def account(self) -> str:
        """Who the called contract sees as its caller."""
        ...

    def through(self, to: str, data: bytes) -> tuple[str, bytes]:
        """Target and data of the transaction for a call of ``to`` with ``data``."""
        ...


class Direct(Struct, frozen=True):
    """The signer's own account calls."""

    account: str

    def through(self, to: str, data: bytes) -> tuple[str, bytes]:
        """The call as it is."""
        return to, data


class ThroughWallet(Struct, frozen=True):
    """A contract wallet calls: the signer is its owner and pays the gas.

    The wallet is a treasury with ``execute(address,uint256,bytes)``, as contract wallets of one
    owner and their modules have it.
    """

    account: str

    def __post_init__(self) -> None:
        force_setattr(self, "account", address(self.account, "wallet"))

    def through(self, to: str, data: bytes) -> tuple[str, bytes]:
        """``execute(to, 0, data)`` of the wallet."""
        return self.account, call_data("execute(address,uint256,bytes)", to, 0, data)
