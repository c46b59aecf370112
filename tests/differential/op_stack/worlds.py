"""Makes the accounts of a random block: users, contracts, predeploys and vaults."""

from random import Random
from typing import Any

from .programs import Programs, l1_block_code, precompile_caller
from .signing import Key
from .specification.attributes import (
    BASE_FEE_SLOT,
    BLOB_BASE_FEE_SLOT,
    DEPOSITOR,
    L1_BLOCK,
    OPERATOR_FEE_SLOT,
    OVERHEAD_SLOT,
    SCALAR_SLOT,
    SCALARS_SLOT,
    Attributes,
)
from .specification.constants import (
    BASE_FEE_VAULT,
    BEACON_ROOTS,
    BEACON_ROOTS_CODE,
    BLOCK_HASHES,
    BLOCK_HASHES_CODE,
    L1_FEE_VAULT,
    MESSAGE_PASSER,
    OPERATOR_FEE_VAULT,
    SEQUENCER_FEE_VAULT,
)
from .specification.deposits import aliased
from .specification.encoding import to_hex
from .specification.forks import Fork

ETHER = 10**18
PEOPLE = tuple(Key(number) for number in range(1, 7))
AUTHORITIES = tuple(Key(number) for number in range(101, 107))
FIRST_POOR_KEY = 1001
CONTRACTS = tuple(bytes([0xC0 + number]) * 20 for number in range(6))
PRECOMPILE_CALLER = b"\xca" * 20
ALIASED = aliased(b"\xa1" * 20)
NOBODY = b"\xee" * 20
DELEGATION = bytes.fromhex("ef0100")
VAULT_CODE = b"\x00"
NO_DATA_AT_ALL: dict[str, Any] = {"nonce": 0, "balance": 0, "code": "0x", "storage": {}}


class World:
    """The state before a block, with the nonces and keys that the generator needs."""

    def __init__(self, random: Random, fork: Fork, form: Fork, number: int) -> None:
        self.random = random
        self.fork = fork
        self.accounts: dict[bytes, dict[str, Any]] = {}
        self.nonces: dict[bytes, int] = {}
        self.poor = 0
        self.delegated = AUTHORITIES[4].address
        reachable = (
            *CONTRACTS, PEOPLE[0].address, self.delegated, NOBODY, MESSAGE_PASSER,
            SEQUENCER_FEE_VAULT, SEQUENCER_FEE_VAULT,
            (0x100).to_bytes(20, "big"), (4).to_bytes(20, "big"),
        )  # fmt: skip
        self.programs = Programs(random, fork, reachable, number)
        self.put_people()
        self.put_contracts()
        self.put_predeploys(form)

    def put(
        self, address: bytes, nonce: int = 0, balance: int = 0, code: bytes = b"",
        storage: dict[int, int] | None = None,
    ) -> None:  # fmt: skip
        self.nonces[address] = nonce
        self.accounts[address] = {
            "nonce": nonce,
            "balance": balance,
            "code": to_hex(code),
            "storage": {hex(slot): value for slot, value in (storage or {}).items() if value},
        }

    def put_people(self) -> None:
        random = self.random
        for key in PEOPLE:
            self.put(key.address, random.choice((0, 1, 77, 300)), 10**6 * ETHER)
        for key in AUTHORITIES[:4]:
            if random.random() < 0.5:
                self.put(key.address, random.choice((0, 3)), random.choice((1, ETHER)))
        delegates = self.fork >= Fork.ISTHMUS and random.random() < 0.8
        for key in AUTHORITIES[4:]:
            target = random.choice((*CONTRACTS, (2).to_bytes(20, "big"), NOBODY))
            self.put(key.address, 1, 1000 * ETHER, DELEGATION + target if delegates else b"")

    def put_contracts(self) -> None:
        random = self.random
        for address in CONTRACTS:
            slots = {slot: random.choice((0, 1, 5, 1 << 255)) for slot in range(4)}
            balance = random.choice((0, 1, 1000, ETHER))
            self.put(address, 1, balance, self.programs.program(), slots)
        self.put(PRECOMPILE_CALLER, 1, 0, precompile_caller())
        if random.random() < 0.5:
            self.put(ALIASED, 1, random.choice((0, ETHER)), b"\x00")

    def put_predeploys(self, form: Fork) -> None:
        random = self.random
        self.put(DEPOSITOR, random.randrange(10_000), 0)
        self.put(L1_BLOCK, 0, 0, l1_block_code(form))
        for vault in (SEQUENCER_FEE_VAULT, BASE_FEE_VAULT, L1_FEE_VAULT):
            self.put(vault, 0, random.choice((0, ETHER)), VAULT_CODE)
        if self.fork >= Fork.ISTHMUS and random.random() < 0.9:
            self.put(OPERATOR_FEE_VAULT, 0, random.choice((0, 7)), VAULT_CODE)
        passer = {slot: random.randrange(1 << 64) for slot in range(random.randrange(4))}
        self.put(MESSAGE_PASSER, 0, random.choice((0, 5)), self.programs.program(4), passer)
        # In the first block of Ecotone and of Isthmus, their system contracts do not exist yet.
        if form >= Fork.ECOTONE:
            self.put(BEACON_ROOTS, 1, 0, BEACON_ROOTS_CODE)
        if form >= Fork.ISTHMUS:
            self.put(BLOCK_HASHES, 1, 0, BLOCK_HASHES_CODE)

    def put_attributes(self, attributes: Attributes, form: Fork) -> None:
        """Stores L1 attributes as an earlier block did, in the slots of their format."""
        slots = {BASE_FEE_SLOT: attributes.base_fee}
        if form < Fork.ECOTONE or self.random.random() < 0.5:
            # Ecotone stops writing these two slots, so their values may remain from before.
            slots |= {OVERHEAD_SLOT: attributes.overhead, SCALAR_SLOT: attributes.scalar}
        if form >= Fork.ECOTONE:
            scalars = attributes.base_fee_scalar << 96 | attributes.blob_base_fee_scalar << 64
            slots |= {SCALARS_SLOT: scalars, BLOB_BASE_FEE_SLOT: attributes.blob_base_fee}
        if form >= Fork.ISTHMUS:
            operator = attributes.operator_fee_scalar << 64 | attributes.operator_fee_constant
            slots[OPERATOR_FEE_SLOT] = operator | attributes.footprint_scalar << 96
        account = self.accounts[L1_BLOCK]
        account["storage"] = {hex(slot): value for slot, value in slots.items() if value}

    def stored_parameters(self) -> dict[str, int]:
        """Returns the overhead and the scalar stored in the L1 attributes contract."""
        storage = self.accounts[L1_BLOCK]["storage"]
        return {
            "overhead": storage.get(hex(OVERHEAD_SLOT), 0),
            "scalar": storage.get(hex(SCALAR_SLOT), 0),
        }

    def next_nonce(self, address: bytes) -> int:
        """Returns a sender's next nonce and increments it."""
        nonce = self.nonces.get(address, 0)
        self.nonces[address] = nonce + 1
        return nonce

    def new_poor(self) -> Key:
        """Returns the key of a new account. The caller adds the account with its balance."""
        self.poor += 1
        return Key(FIRST_POOR_KEY + self.poor)

    def pre(self) -> dict[str, Any]:
        """Returns all existing accounts of the state, by address in hex."""
        return {
            to_hex(address): account
            for address, account in sorted(self.accounts.items())
            if account != NO_DATA_AT_ALL
        }
