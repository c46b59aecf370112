"""Property tests that find the ten bugs of ``sources/SeededBugs.sol``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from coincurve import PrivateKey
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, invariant, precondition, rule

from fastevm import Contract, ContractReverted, contract
from fastevm.core.primitives.keccak import keccak256
from fastevm.integrations.hypothesis import EvmStateMachine, uints
from fastevm.integrations.recording import RecordedEVM

ARTIFACTS: Final = Path(__file__).parent / "artifacts"
OWNER: Final = b"\x0e" * 20
USERS: Final = (b"\xa1" * 20, b"\xb2" * 20, b"\xc3" * 20)
EVERYBODY: Final = (OWNER, *USERS)
SUPPLY: Final = 1_000_000
DAY: Final = 86_400

user = st.sampled_from(USERS)
anybody = st.sampled_from(EVERYBODY)
small = st.integers(0, 1_000)


def deployed(evm: RecordedEVM, name: str, *args: Any) -> Contract:
    """Deploys a compiled contract from OWNER and returns it."""
    return contract(ARTIFACTS / f"{name}.json").deploy(evm, *args, sender=OWNER)


class Seeded(EvmStateMachine):
    """A test of the contract ``name``, which it deploys. The accounts begin with ether."""

    reproductions = None
    name: ClassVar[str]
    target: ClassVar[Contract]

    @classmethod
    def deploy(cls, evm: RecordedEVM) -> None:
        for account in EVERYBODY:
            evm.set_balance(account, 10**18)
        cls.target = deployed(evm, cls.name)

    def attempt(self, name: str, *args: Any, sender: bytes, value: int = 0) -> Any:
        """Calls a function. Returns its result, True if it has none, or None if it reverts."""
        try:
            found = self.target[name](*args, sender=sender, value=value)
        except ContractReverted:
            return None
        return True if found is None else found

    def sum_of(self, name: str, accounts: Sequence[bytes | str] = EVERYBODY) -> int:
        return sum(self.target[name](account) for account in accounts)


class Reentrancy(Seeded):
    """Property: the bank always holds the ether that it owes."""

    name = "Bank"
    thief: ClassVar[Contract]

    @classmethod
    def deploy(cls, evm: RecordedEVM) -> None:
        super().deploy(evm)
        cls.thief = deployed(evm, "Reentrant", cls.target.address)

    @rule(sender=user, value=small)
    def deposit(self, sender: bytes, value: int) -> None:
        self.attempt("deposit", sender=sender, value=value)

    @rule(sender=user)
    def withdraw(self, sender: bytes) -> None:
        self.attempt("withdraw", sender=sender)

    @rule(value=small)
    def deposit_of_contract(self, value: int) -> None:
        self.thief.deposit(value=value, sender=OWNER)

    @rule(times=st.integers(0, 3))
    def withdraw_of_contract(self, times: int) -> None:
        if self.target.balances(self.thief.address):
            self.thief.withdraw.call(times, sender=OWNER, commit=True)

    @invariant()
    def solvent(self) -> None:
        owed = self.sum_of("balances", (*EVERYBODY, self.thief.address))
        assert self.evm.balance(self.target.address) >= owed


class Rounding(Seeded):
    """Property: neither a deposit nor a withdrawal lowers the price of a share."""

    name = "RoundingVault"

    def __init__(self) -> None:
        super().__init__()
        self.price = (0, 1)  # price of a share as a fraction: assets, shares

    @rule(sender=user, amount=small)
    def deposit(self, sender: bytes, amount: int) -> None:
        self.attempt("deposit", amount, sender=sender)

    @rule(amount=small)
    def earn(self, amount: int) -> None:
        self.attempt("earn", amount, sender=OWNER)

    @rule(sender=user, amount=small)
    def withdraw(self, sender: bytes, amount: int) -> None:
        self.attempt("withdraw", amount, sender=sender)

    @invariant()
    def price_never_falls(self) -> None:
        assets, shares = self.target.assets(), self.target.totalShares()
        if shares:
            assert assets * self.price[1] >= self.price[0] * shares
            self.price = assets, shares


class AccessControl(Seeded):
    """Property: only the owner chooses the next owner."""

    name = "Ownership"

    def __init__(self) -> None:
        super().__init__()
        self.owner = OWNER

    @rule(sender=anybody, after=user)
    def propose(self, sender: bytes, after: bytes) -> None:
        if self.attempt("propose", after, sender=sender):
            assert sender == self.owner

    @rule(sender=anybody)
    def accept(self, sender: bytes) -> None:
        if self.attempt("accept", sender=sender):
            self.owner = sender


class ShareInflation(Seeded):
    """Property: every deposit gives shares."""

    name = "ShareVault"

    @rule(sender=user, amount=uints(128))
    def deposit(self, sender: bytes, amount: int) -> None:
        made = self.attempt("deposit", amount, sender=sender)
        assert made is None or made > 0

    @rule(amount=uints(128))
    def donate(self, amount: int) -> None:
        self.attempt("donate", amount, sender=OWNER)

    @rule(sender=user)
    def redeem(self, sender: bytes) -> None:
        self.attempt("redeem", sender=sender)


class Overflow(Seeded):
    """Property: no balance exceeds the supply."""

    name = "BatchToken"

    @rule(sender=anybody, to=user, also=user, amount=uints())
    def transfer(self, sender: bytes, to: bytes, also: bytes, amount: int) -> None:
        self.attempt("transferToBoth", to, also, amount, sender=sender)

    @invariant()
    def covered(self) -> None:
        assert self.sum_of("balanceOf") <= SUPPLY


class Accounting(Seeded):
    """Property: the balances add up to the supply."""

    name = "BurnToken"

    @rule(sender=user, amount=small)
    def mint(self, sender: bytes, amount: int) -> None:
        self.attempt("mint", amount, sender=sender)

    @rule(sender=user, to=user, amount=small)
    def transfer(self, sender: bytes, to: bytes, amount: int) -> None:
        self.attempt("transfer", to, amount, sender=sender)

    @rule(sender=user, amount=small)
    def burn(self, sender: bytes, amount: int) -> None:
        self.attempt("burn", amount, sender=sender)

    @invariant()
    def balanced(self) -> None:
        assert self.sum_of("balanceOf", USERS) == self.target.totalSupply()


class Signed(NamedTuple):
    """A payment and its signature."""

    to: bytes
    amount: int
    signature: bytes


class SignatureReplay(Seeded):
    """Property: a signed payment is paid at most once."""

    name = "Voucher"
    key: ClassVar[PrivateKey] = PrivateKey(b"\x07" * 32)
    signer: ClassVar[bytes] = keccak256(key.public_key.format(compressed=False)[1:])[12:]
    payments = Bundle("payments")

    def __init__(self) -> None:
        super().__init__()
        self.claimed: set[Signed] = set()

    @rule(target=payments, to=user, amount=st.integers(1, 1_000))
    def sign(self, to: bytes, amount: int) -> Signed:
        words = (
            bytes(12) + self.target.raw_address, bytes(12) + to, amount.to_bytes(32, "big"),
            self.target.nonces(self.signer).to_bytes(32, "big"),
        )  # fmt: skip
        digest = keccak256(b"".join(words))
        return Signed(to, amount, self.key.sign_recoverable(digest, hasher=None))

    @rule(payment=payments, sender=user)
    def claim(self, payment: Signed, sender: bytes) -> None:
        raw = payment.signature
        args = (self.signer, payment.to, payment.amount, 27 + raw[64], raw[:32], raw[32:64])
        if self.attempt("claim", *args, sender=sender):
            assert payment not in self.claimed
            self.claimed.add(payment)


class Delegatecall(Seeded):
    """Property: only the owner changes the owner."""

    name = "PluginWallet"
    plugin: ClassVar[Contract]

    @classmethod
    def deploy(cls, evm: RecordedEVM) -> None:
        super().deploy(evm)
        cls.plugin = deployed(evm, "Counter")

    @rule(sender=anybody)
    def approve(self, sender: bytes) -> None:
        self.attempt("approve", self.plugin.address, sender=sender)

    @rule(sender=user, value=uints(), empty=st.booleans())
    def run_plugin(self, sender: bytes, value: int, empty: bool) -> None:
        data = b"" if empty else self.plugin.set.encode(value)
        self.attempt("run", self.plugin.address, data, sender=sender)

    @invariant()
    def owned(self) -> None:
        assert bytes.fromhex(self.target.owner()[2:]) == OWNER


class Allowances(Seeded):
    """Property: a spender spends at most its allowances."""

    name = "AllowanceToken"

    def __init__(self) -> None:
        super().__init__()
        self.allowed: dict[tuple[bytes, bytes], int] = {}

    @rule(sender=anybody, to=user, amount=small)
    def transfer(self, sender: bytes, to: bytes, amount: int) -> None:
        self.attempt("transfer", to, amount, sender=sender)

    @rule(sender=anybody, spender=user, amount=small)
    def approve(self, sender: bytes, spender: bytes, amount: int) -> None:
        self.attempt("approve", spender, amount, sender=sender)
        self.allowed[sender, spender] = amount

    @precondition(lambda self: self.allowed)
    @rule(data=st.data(), to=user, amount=small)
    def transfer_from(self, data: st.DataObject, to: bytes, amount: int) -> None:
        owner, spender = data.draw(st.sampled_from(sorted(self.allowed)))
        allowed = self.allowed[owner, spender]
        amount = data.draw(st.sampled_from((amount, allowed)))
        if self.attempt("transferFrom", owner, to, amount, sender=spender):
            assert amount <= allowed
            self.allowed[owner, spender] = allowed - amount


class TimeLock(Seeded):
    """Property: no deposit can be withdrawn before its time."""

    name = "TimeLock"

    @rule(sender=user, value=st.integers(1, 1_000))
    def deposit(self, sender: bytes, value: int) -> None:
        self.attempt("deposit", sender=sender, value=value)

    @rule(seconds=st.integers(0, 3 * DAY))
    def wait(self, seconds: int) -> None:
        self.evm.set_block(timestamp=self.evm.block.timestamp + seconds)

    @rule(sender=user, seconds=st.integers(-2, 2))
    def wait_until_due(self, sender: bytes, seconds: int) -> None:
        due = self.target.unlockedAt(sender) + seconds
        self.evm.set_block(timestamp=max(self.evm.block.timestamp, due))

    @rule(sender=user)
    def withdraw(self, sender: bytes) -> None:
        due = self.target.unlockedAt(sender)
        if self.attempt("withdraw", sender=sender):
            assert self.evm.block.timestamp >= due


MACHINES: Final[dict[str, type[Seeded]]] = {
    "reentrancy": Reentrancy,
    "rounding": Rounding,
    "access control": AccessControl,
    "share inflation": ShareInflation,
    "unchecked overflow": Overflow,
    "supply accounting": Accounting,
    "signature replay": SignatureReplay,
    "unsafe delegatecall": Delegatecall,
    "ERC-20 allowance": Allowances,
    "time lock off by one": TimeLock,
}
