"""The precompiles of the OP stack: those of its Ethereum fork, P256VERIFY, and limits on inputs.

Source: fjord, granite, isthmus, jovian and karst/exec-engine; RIP-7212; EIP-7951.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from ethereum.crypto.elliptic_curve import (
    SECP256R1N,
    SECP256R1P,
    is_on_curve_secp256r1,
    secp256r1_verify,
)
from ethereum.exceptions import InvalidSignatureError
from ethereum_types.numeric import U256, Uint

from .encoding import word
from .forks import Fork
from .precompile_limits import BLS_PAIRING, G1_MSM, G2_MSM, LIMITS, PAIRING, limit_of

P256_VERIFY = 0x100
P256_INPUT = 160
P256_GAS = {Fork.FJORD: 3450, Fork.KARST: 6900}

Contract = Callable[[Any], None]


class Precompiles:
    """The precompiles of an OP-stack fork, to install in the executable specification."""

    def __init__(self, fork: Fork) -> None:
        package = f"ethereum.forks.{fork.evm}"
        mapping = import_module(f"{package}.vm.precompiled_contracts.mapping")
        self.fork = fork
        self.gas = import_module(f"{package}.vm.gas")
        self.exceptions = import_module(f"{package}.vm.exceptions")
        self.address_of = import_module(f"{package}.fork_types").Address
        self.theirs: dict[Any, Contract] = mapping.PRE_COMPILED_CONTRACTS
        # All modules share this dictionary, so `install` changes it in place and needs a copy to
        # begin with.
        self.original = ORIGINALS.setdefault(fork.evm, dict(self.theirs))

    def install(self) -> None:
        """Replaces the precompiles that the opcodes of the Ethereum fork use."""
        self.theirs.clear()
        self.theirs.update(self.original)
        prices = [price for since, price in P256_GAS.items() if since <= self.fork]
        if prices:
            self.theirs[self.at(P256_VERIFY)] = self.p256_verify(prices[-1])
        for number in LIMITS:
            if self.at(number) in self.theirs:
                self.theirs[self.at(number)] = self.limited(number)

    def at(self, number: int) -> Any:
        return self.address_of(number.to_bytes(20, "big"))

    def limited(self, number: int) -> Contract:
        """Returns a precompile that fails if its input exceeds the fork's limit."""
        inner, limit = self.original[self.at(number)], limit_of(number, self.fork)
        inner = quick_with_zeros(number, inner, self.gas)

        def contract(evm: Any) -> None:
            if limit is not None and len(evm.message.data) > limit:
                raise self.exceptions.OutOfGasError
            inner(evm)

        return contract

    def p256_verify(self, price: int) -> Contract:
        """Returns P256VERIFY at a fixed price.

        Its output is the word 1 for a valid signature, else empty.
        """

        def contract(evm: Any) -> None:
            self.gas.charge_gas(evm, Uint(price))
            if is_p256_signature(bytes(evm.message.data)):
                evm.output = word(1)

        return contract


ORIGINALS: dict[str, dict[Any, Contract]] = {}


def is_p256_signature(data: bytes) -> bool:
    """Returns whether a signature is valid. ``data``: hash, r, s, and the key's x and y."""
    if len(data) != P256_INPUT:
        return False
    r, s, x, y = (U256.from_be_bytes(data[at : at + 32]) for at in range(32, P256_INPUT, 32))
    if not (0 < int(r) < int(SECP256R1N) and 0 < int(s) < int(SECP256R1N)):
        return False
    if int(x) >= int(SECP256R1P) or int(y) >= int(SECP256R1P) or not (int(x) or int(y)):
        return False
    if not is_on_curve_secp256r1(x, y):
        return False
    try:
        secp256r1_verify(r, s, x, y, data[:32])
    except InvalidSignatureError:
        return False
    return True


# Precompile -> size of a pair in bytes, and the result if all pairs are zeros (points at infinity).
OF_ZEROS = {
    PAIRING: (192, word(1)),
    G1_MSM: (160, bytes(128)),
    G2_MSM: (288, bytes(256)),
    BLS_PAIRING: (384, word(1)),
}
FEW_PAIRS = 128


def quick_with_zeros(number: int, inner: Contract, gas: ModuleType) -> Contract:
    """Returns a precompile that skips the computation for an input of zeros (points at infinity).

    For other inputs it calls ``inner``. The executable specification is slow even for points at
    infinity, because it multiplies each point by the order of the group, in Python.
    """
    size, output = OF_ZEROS[number]

    def contract(evm: Any) -> None:
        data = bytes(evm.message.data)
        if len(data) // size <= FEW_PAIRS or len(data) % size or any(data):
            inner(evm)
            return
        gas.charge_gas(evm, Uint(gas_of_zeros(number, len(data) // size)))
        evm.output = output

    return contract


def gas_of_zeros(number: int, pairs: int) -> int:
    """Returns the gas for ``pairs`` pairs, by EIP-1108 and EIP-2537."""
    if number == PAIRING:
        return 45_000 + 34_000 * pairs
    if number == BLS_PAIRING:
        return 37_700 + 32_600 * pairs
    point, most = (12_000, 519) if number == G1_MSM else (22_500, 524)
    # With more than 128 pairs the discount is constant. Shorter inputs do not come here.
    return pairs * point * most // 1000
