"""Routes: how a call reaches a contract, from the signer's account or through a wallet."""

from typing import Protocol

from msgspec import Struct
from msgspec.structs import force_setattr

from fastevm.payments.arguments import checked
from fastevm.payments.authorization import address
from fastevm.payments.calls import call_data


class Route(Protocol):
    """Turns a call by ``account`` into a transaction that the signer can send."""

    @property
    def account(self) -> str:
        """The ``msg.sender`` that the called contract sees."""
        ...

    def through(self, to: str, data: bytes) -> tuple[str, bytes]:
        """Returns target and data of the transaction that calls ``to`` with ``data``."""
        ...


@checked
class Direct(Struct, frozen=True):
    """The signer's account makes the call itself."""

    account: str

    def __post_init__(self) -> None:
        force_setattr(self, "account", address(self.account, "account"))

    def through(self, to: str, data: bytes) -> tuple[str, bytes]:
        """Returns the call unchanged."""
        return to, data


@checked
class ThroughWallet(Struct, frozen=True):
    """A contract wallet makes the call; the signer owns the wallet and pays the gas.

    The wallet must have ``execute(address,uint256,bytes)``.
    """

    account: str

    def __post_init__(self) -> None:
        force_setattr(self, "account", address(self.account, "account"))

    def through(self, to: str, data: bytes) -> tuple[str, bytes]:
        """Returns a call of the wallet's ``execute(to, 0, data)``."""
        to = address(to, "to")
        return self.account, call_data("execute(address,uint256,bytes)", to, 0, data)
