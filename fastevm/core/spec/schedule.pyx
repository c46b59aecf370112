"""Packs the rules of a fork into a flat C struct, which is read without Python.

The values are in ``eips.py``, under their EIP.
"""

from functools import lru_cache
from types import MappingProxyType

from . import forks
from .forks import default_blobs, fork_named, resolve
from .opcodes import BY_MNEMONIC, op_named
from .sstore import sstore_rows


# The address of P256VERIFY; its index in the tables is PRECOMPILE_LIMIT.
P256_VERIFY_ADDRESS = 0x100

# Maps a precompile to the parameter that limits the size of its input.
INPUT_LIMITS = {
    "BN254_PAIRING": "bn254_pairing_max_input",
    "BLS12_G1MSM": "bls12_g1_msm_max_input",
    "BLS12_G2MSM": "bls12_g2_msm_max_input",
    "BLS12_PAIRING_CHECK": "bls12_pairing_max_input",
}


cdef class ForkSchedule:
    """The packed rules of one fork. Immutable; use ``schedule_for`` to obtain it.

    - ``name``, ``fork``, ``blobs``: as for ``schedule_for``
    - ``opcodes``: mnemonic -> static price in gas of every defined opcode
    - ``parameters``: name -> value
    - ``precompiles``: name -> address (int)
    - ``system_contracts``: name -> address (20 bytes)
    """

    def __cinit__(self, fork, blobs):
        rules = resolve(fork)
        parameters = dict(rules.parameters)
        if blobs is not None:
            if not parameters["has_blobs"]:
                raise ValueError(f"{fork.name} has no blobs to configure")
            parameters.update(blobs.as_parameters())
        parameters["sstore_cost"], parameters["sstore_refund"] = sstore_rows(parameters)
        self.name = fork.name
        self.fork = fork
        self.blobs = blobs or default_blobs(fork)
        self.opcodes = rules.opcodes
        self.parameters = MappingProxyType(parameters)
        self.precompiles = rules.precompiles
        self.system_contracts = rules.contracts
        self.c = {
            **parameters,
            "gas": _price_table(rules.opcodes),
            "activation_admin": _limbs(parameters["activation_admin"], 3),
            "precompile_active": _precompile_table(rules.precompiles, False, lambda name: True),
            "precompile_max_input": _precompile_table(
                rules.precompiles, 0, lambda name: parameters.get(INPUT_LIMITS.get(name), 0)
            ),
        }

    def gas(self, str mnemonic not None):
        """Returns the static price of an opcode in gas, ``None`` if the fork does not define it.

        Raises KeyError if no opcode has that name.
        """
        return self.opcodes.get(op_named(mnemonic).mnemonic)

    def packed(self):
        """Returns a copy of the C struct as a dict."""
        return self.c

    def __reduce__(self):
        return _restored, (self.fork, self.blobs)

    def __repr__(self):
        return f"<ForkSchedule {self.name}>"


def schedule_for(fork, *, blobs=None):
    """Returns the packed schedule of a fork (a ``Fork`` or its name), created once and shared.

    ``blobs`` (``BlobParameters``) replaces the fork's own blob target, maximum and update fraction,
    as in a chain's blob schedule (EIP-7840, EIP-7892). Raises ``UnknownForkError`` for an unknown
    name and ValueError if ``blobs`` is given for a fork without blobs.
    """
    if isinstance(fork, str):
        fork = fork_named(fork)
    elif not isinstance(fork, forks.Fork):
        raise TypeError(f"a fork is a name or a Fork, not {type(fork).__name__}")
    return _packed(fork, None if blobs is None or blobs == default_blobs(fork) else blobs)


def _restored(fork, blobs):
    return schedule_for(fork, blobs=blobs)


_packed = lru_cache(maxsize=256)(ForkSchedule)


def _limbs(number, count):
    return [number >> (64 * i) & (2**64 - 1) for i in range(count)]


def _price_table(opcodes):
    table = [-1] * 256
    for mnemonic, gas in opcodes.items():
        table[BY_MNEMONIC[mnemonic].value] = gas
    return table


def _precompile_table(precompiles, absent, value_of):
    table = [absent] * (PRECOMPILE_LIMIT + 1)
    for name, address in precompiles.items():
        index = PRECOMPILE_LIMIT if address == P256_VERIFY_ADDRESS else address
        table[index] = value_of(name)
    return table
