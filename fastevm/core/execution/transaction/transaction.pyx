"""The Python class of transactions: it owns a Tx and the bytes that the Tx points into."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.errors import TransactionDecodeError
from fastevm.core.execution.arbitrum.transaction_types import input_of_submission
from fastevm.core.execution.transaction.transaction_fields import AccessListEntry
from fastevm.core.execution.transaction.transaction_fields import Authorization as AuthorizationFields
from fastevm.core.crypto.secp256k1 import sign as sign_hash

from fastevm.core.execution.transaction.transaction_decoding cimport (
    DecodeFault, authorization_signing_hash, tx_decode, tx_release, tx_signing_hash,
)
from fastevm.core.execution.transaction.sender_recovery cimport (
    authorities_are_known, authority_is_valid, sender_state_of, tx_recover,
)
from fastevm.core.execution.transaction.arguments cimport uint64_argument
from fastevm.core.execution.transaction.transaction_data cimport (
    ACCESS_LIST_TX, ARBITRUM_SUBMIT_TX, BLOB_TX, DEPOSIT_TX, LEGACY_TX, POST_EXEC_TX,
    SENDER_BAD_VALUES, SENDER_KNOWN, SENDER_NO_KEY, SENDER_UNKNOWN, AccessEntry, Authorization, Tx,
    is_arbitrum_type,
)
from fastevm.core.execution.transaction.transaction_encoding cimport encode_fields, encode_signed
from fastevm.core.primitives.exact_bytes cimport exactly
from fastevm.core.primitives.bytes_like cimport address_bytes, bytes_like, sized_bytes
from fastevm.core.primitives.buffer cimport Buffer, buffer_free
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.word cimport (
    Word, word_from_int, word_is_zero, word_to_int,
)


FAULTS = {
    SENDER_BAD_VALUES: "invalid transaction v, r, s values",
    SENDER_NO_KEY: "invalid signature: no public key signed this transaction",
}


cdef inline bytes take(const void* data, size_t size):
    return PyBytes_FromStringAndSize(<const char*>data, <Py_ssize_t>size)


cdef Transaction transaction_from(bytes raw):
    if raw is None:
        raise TypeError("a transaction made without decode or build has no bytes")
    cdef Transaction transaction = Transaction.__new__(Transaction)
    cdef DecodeFault fault
    cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(raw)
    memset(&fault, 0, sizeof(fault))
    if not tx_decode(&transaction.c, data, PyBytes_GET_SIZE(raw), &fault):
        if fault.no_memory:
            raise MemoryError
        raise TransactionDecodeError(f"{fault.part.decode()}: expected {fault.wanted.decode()}")
    transaction.raw = raw
    return transaction


cdef int put_sender(Transaction transaction, bytes sender) except -1:
    memcpy(transaction.c.sender.b, exactly(sender, 20, "sender"), 20)
    transaction.c.sender_state = SENDER_KNOWN
    return 0


cdef int recover_now(Transaction transaction) except -1:
    cdef Buffer scratch
    cdef bint ok
    memset(&scratch, 0, sizeof(scratch))
    with nogil:
        ok = tx_recover(&transaction.c, &scratch)
        buffer_free(&scratch)
    if not ok:
        raise MemoryError
    return 0


cdef class Transaction:
    """An immutable transaction of type 0 to 4. It may be unsigned for calls and simulations.

    Types 125 and 126 are the post-exec transactions and deposits of the OP Stack. Types 100 to 106
    are the transactions of Arbitrum (`fastevm.core.execution.arbitrum`). All of these are never
    signed. Create a transaction with `decode` or `build`. Two transactions are equal if their
    canonical bytes are equal. Amounts are in wei.
    """

    def __cinit__(self):
        memset(&self.c, 0, sizeof(Tx))

    def __init__(self):
        raise TypeError("use Transaction.decode or Transaction.build")

    def __dealloc__(self):
        tx_release(&self.c)

    @staticmethod
    def decode(raw):
        """Decodes canonical bytes strictly (EIP-2718).

        Blob transactions come without their blobs. Raises `TransactionDecodeError`. The signature
        is decoded but not verified.
        """
        return transaction_from(bytes_like(raw, "transaction"))

    @staticmethod
    def build(*, sender=None, **fields):
        """Returns a transaction with the given fields, unsigned unless v, r and s are given.

        Fields:

        - ``type``: by default derived from the other fields
        - ``chain_id``: types 1 to 4; default 1
        - ``nonce``, ``gas_limit``, ``value``, ``data``
        - ``to``: None creates a contract
        - ``gas_price``, or ``max_fee_per_gas`` and ``max_priority_fee_per_gas``
        - ``access_list``: (address, slots) pairs
        - ``max_fee_per_blob_gas``, ``blob_versioned_hashes``
        - ``authorization_list``: (chain_id, address, nonce, y_parity, r, s) tuples
        - ``v`` (for types 1 to 4 the y parity), ``r``, ``s``

        ``sender`` is the sender of an unsigned transaction that is executed as a call.

        Fields of a deposit: ``source_hash``, ``sender``, ``to``, ``mint``, ``value``,
        ``gas_limit``, ``is_system``, ``data``.

        Raises `TransactionDecodeError` if a value does not fit its field, TypeError for unknown
        fields.
        """
        cdef Transaction transaction
        if fields.get("source_hash") is not None or fields.get("type") == DEPOSIT_TX:
            return transaction_from(encode_fields({**fields, "sender": sender}))
        transaction = transaction_from(encode_fields(fields))
        if sender is not None:
            put_sender(transaction, address_bytes(sender, "sender"))
        return transaction

    def sign(self, private_key, *, chain_id=None):
        """Returns this transaction signed with a 32-byte key.

        ``chain_id`` protects a legacy transaction against replay (EIP-155; without it v is 27 or
        28). For other types it must be None or the transaction's chain id.
        """
        self.check_signable()
        if chain_id is not None:
            chain_id = uint64_argument(chain_id, "chain_id")
        if self.c.tx_type != LEGACY_TX and chain_id is not None and chain_id != self.c.chain_id:
            raise ValueError(f"chain_id: expected {self.c.chain_id}, found {chain_id}")
        key = sized_bytes(private_key, 32, "private_key")
        parity, r, s = sign_hash(self.signing_hash(chain_id=chain_id), key)
        if self.c.tx_type != LEGACY_TX:
            v = parity
        else:
            v = 27 + parity if chain_id is None else 35 + 2 * chain_id + parity
        return transaction_from(encode_signed(&self.c, v, r, s))

    def signing_hash(self, *, chain_id=None):
        """Returns the 32-byte hash that the sender signs.

        ``chain_id``: as in `sign`; by default that of the transaction's signature.
        """
        cdef Buffer scratch
        cdef Hash digest
        cdef bint ok
        cdef bint protect = chain_id is not None or self.c.has_chain_id
        cdef uint64_t chain = self.c.chain_id
        if chain_id is not None:
            chain = uint64_argument(chain_id, "chain_id")
        self.check_signable()
        memset(&scratch, 0, sizeof(scratch))
        ok = tx_signing_hash(&self.c, protect, chain, &scratch, &digest)
        buffer_free(&scratch)
        if not ok:
            raise MemoryError
        return take(digest.b, 32)

    cdef int check_signable(self) except -1:
        if self.c.tx_type == DEPOSIT_TX:
            raise ValueError("a deposit is not signed")
        if self.c.tx_type == POST_EXEC_TX:
            raise ValueError("a post-exec transaction is not signed")
        if is_arbitrum_type(self.c.tx_type):
            raise ValueError(f"a transaction of type {self.c.tx_type:#x} is not signed")
        return 0

    @property
    def hash(self):
        cdef Hash digest
        if self._hash is None:
            keccak256(digest.b, self.c.raw, self.c.raw_size)
            self._hash = take(digest.b, 32)
        return self._hash

    @property
    def sender(self):
        """The sender's 20-byte address, recovered on first access. None for an invalid signature.
        """
        if sender_state_of(&self.c) == SENDER_UNKNOWN:
            recover_now(self)
        return take(self.c.sender.b, 20) if sender_state_of(&self.c) == SENDER_KNOWN else None

    @property
    def signature_fault(self):
        """The reason why the signature is invalid, or None."""
        if sender_state_of(&self.c) == SENDER_UNKNOWN:
            recover_now(self)
        return FAULTS.get(sender_state_of(&self.c))

    @property
    def authorities(self):
        """The 20-byte address of each authorization's signer; None for an invalid signature."""
        cdef uint32_t i
        cdef const Authorization* a
        if not authorities_are_known(&self.c):
            recover_now(self)
        found = []
        for i in range(self.c.authorization_count):
            a = &self.c.authorizations[i]
            found.append(take(a.authority.b, 20) if authority_is_valid(a) else None)
        return tuple(found)

    @property
    def type(self):
        return self.c.tx_type

    @property
    def chain_id(self):
        """The chain id; None for a legacy transaction without replay protection (EIP-155)."""
        return self.c.chain_id if self.c.has_chain_id else None

    @property
    def nonce(self):
        return self.c.nonce

    @property
    def gas_limit(self):
        return self.c.gas_limit

    @property
    def gas_price(self):
        """The gas price in wei of types 0 and 1; None for types with two fee caps."""
        return word_to_int(&self.c.max_fee) if self.c.tx_type <= ACCESS_LIST_TX else None

    @property
    def max_fee_per_gas(self):
        """The fee cap in wei per gas (EIP-1559); for types 0 and 1 the gas price."""
        return word_to_int(&self.c.max_fee)

    @property
    def max_priority_fee_per_gas(self):
        """The tip cap in wei per gas (EIP-1559); for types 0 and 1 the gas price."""
        return word_to_int(&self.c.max_priority_fee)

    @property
    def to(self):
        """The recipient's 20-byte address; None for a creation."""
        return None if self.c.is_create else take(self.c.to.b, 20)

    @property
    def value(self):
        return word_to_int(&self.c.value)

    @property
    def data(self):
        if self.c.tx_type == ARBITRUM_SUBMIT_TX:
            return input_of_submission(self.raw)
        return take(self.c.data, self.c.size)

    @property
    def access_list(self):
        cdef uint32_t i, j
        cdef const AccessEntry* entry
        cdef const Word* slot = self.c.access_slots
        entries = []
        for i in range(self.c.access_count):
            entry = &self.c.access[i]
            slots = tuple([word_to_int(&slot[j]) for j in range(entry.slot_count)])
            slot += entry.slot_count
            entries.append(AccessListEntry(take(entry.address.b, 20), slots))
        return tuple(entries)

    @property
    def max_fee_per_blob_gas(self):
        """The blob fee cap in wei per blob gas; None for types without blobs."""
        return word_to_int(&self.c.max_fee_per_blob_gas) if self.c.tx_type == BLOB_TX else None

    @property
    def blob_versioned_hashes(self):
        cdef uint32_t i
        return tuple([take(self.c.blob_hashes[i].b, 32) for i in range(self.c.blob_count)])

    @property
    def authorization_list(self):
        cdef uint32_t i
        cdef const Authorization* a
        fields = []
        for i in range(self.c.authorization_count):
            a = &self.c.authorizations[i]
            fields.append(AuthorizationFields(
                word_to_int(&a.chain_id), take(a.address.b, 20), a.nonce, a.y_parity,
                word_to_int(&a.r), word_to_int(&a.s),
            ))
        return tuple(fields)

    @property
    def source_hash(self):
        """32 bytes that identify a deposit on L1; None for other types."""
        return take(self.c.source_hash.b, 32) if self.c.tx_type == DEPOSIT_TX else None

    @property
    def mint(self):
        """Wei that a deposit mints for its sender; None for other types."""
        return word_to_int(&self.c.mint) if self.c.tx_type == DEPOSIT_TX else None

    @property
    def is_system(self):
        """Whether a deposit is exempt from the block's gas limit (until Regolith)."""
        return self.c.is_system

    @property
    def v(self):
        """v as encoded; for types 1 to 4 the y parity."""
        return word_to_int(&self.c.v)

    @property
    def y_parity(self):
        """The y parity of the signature, 0 or 1; None if v of a legacy signature is invalid."""
        return None if self.c.y_parity < 0 else self.c.y_parity

    @property
    def r(self):
        return word_to_int(&self.c.r)

    @property
    def s(self):
        return word_to_int(&self.c.s)

    @property
    def is_signed(self):
        """Whether the transaction has a signature, valid or not."""
        return not (word_is_zero(&self.c.r) and word_is_zero(&self.c.s))

    def effective_gas_price(self, base_fee):
        """Returns the price in wei per gas in a block with this base fee (EIP-1559)."""
        cap = word_to_int(&self.c.max_fee)
        return min(cap, word_to_int(&self.c.max_priority_fee) + base_fee)

    def __eq__(self, other):
        return isinstance(other, Transaction) and self.raw == other.raw

    def __hash__(self):
        return hash(self.raw)

    def __repr__(self):
        return f"<Transaction type={self.c.tx_type} nonce={self.c.nonce} hash=0x{self.hash.hex()}>"

    def __reduce__(self):
        sender = take(self.c.sender.b, 20) if sender_state_of(&self.c) == SENDER_KNOWN else None
        return restore, (self.raw, sender)


def restore(raw, sender):
    """Unpickles a transaction. ``sender``: its address if it was known, else None."""
    cdef Transaction transaction = transaction_from(raw)
    if sender is not None:
        put_sender(transaction, sender)
    return transaction


def sign_authorization(private_key, *, chain_id, address, nonce):
    """Returns an `Authorization` signed with a 32-byte key. It lets the key's account run the code
    of ``address``.

    ``chain_id`` 0 is valid on every chain. ``nonce`` is the signer's account nonce (EIP-7702).
    """
    cdef Authorization a
    cdef Buffer scratch
    cdef Hash digest
    cdef bint ok
    cdef bytes account = address_bytes(address, "address")
    memset(&a, 0, sizeof(a))
    memset(&scratch, 0, sizeof(scratch))
    word_from_int(&a.chain_id, chain_id)
    memcpy(a.address.b, exactly(account, 20, "address"), 20)
    a.nonce = nonce
    ok = authorization_signing_hash(&a, &scratch, &digest)
    buffer_free(&scratch)
    if not ok:
        raise MemoryError
    parity, r, s = sign_hash(take(digest.b, 32), sized_bytes(private_key, 32, "private_key"))
    return AuthorizationFields(chain_id, account, nonce, parity, r, s)
