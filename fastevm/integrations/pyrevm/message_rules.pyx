"""The checks that pyrevm applies to a message before execution, and its charges."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint64_t

from fastevm.evm.machine cimport EVM
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.account_map cimport AccountLeaf

from functools import lru_cache

from fastevm.core.spec.eips import Eip
from fastevm.core.spec.forks import BPO2, fork_named
from fastevm.core.spec.schedule import schedule_for


LATEST = "LATEST"


cdef object refused(str what):
    return RuntimeError(f"Transaction({what})")


cdef int check_gas(SentMessage sent) except -1:
    if sent.gas_limit < <uint64_t>sent.before:
        raise RuntimeError(
            f"Initial gas spend is {sent.before} but gas limit is {sent.gas_limit}. "
            "Error: Transaction(CallGasCostMoreThanGasLimit)"
        )
    return 0


cdef int check_code(Layer state, bytes sender) except -1:
    """Rejects senders with code (EIP-3607)."""
    cdef const AccountLeaf* leaf = state.leaf(sender)
    if leaf == NULL and state.remote_state is None:
        return 0
    if state.code(sender) if leaf == NULL else leaf.code != NULL:
        raise refused("RejectCallerWithCode")
    return 0


cdef int check_funds(EVM evm, bytes sender, object cost) except -1:
    if cost:
        balance = evm.balance(sender)
        if cost > balance:
            raise refused(f"LackOfFundForMaxFee {{ fee: {cost}, balance: {balance} }}")
    return 0


cdef object cost_of(SentMessage sent):
    """Returns the balance in wei that the sender must have."""
    return sent.gas_limit * sent.gas_price + sent.value if sent.gas_price else sent.value


cdef class SentMessage:
    pass


cdef class Rules:
    def __init__(self, name: str, limit: int | None) -> None:
        fork = BPO2 if name.upper() == LATEST else fork_named(name)
        self.shown_name = "Latest" if name.upper() == LATEST else fork.name
        if limit is not None:
            sizes = {"max_code_size": limit}
            if schedule_for(fork).parameters["max_initcode_size"]:
                sizes["max_initcode_size"] = 2 * limit
            fork = fork.then(fork.name, Eip(170, "Contract code size limit", parameters=sizes))
        self.schedule = schedule_for(fork)
        found = self.schedule.parameters
        self.base = found["tx_cost"]
        self.has_access_lists = found["has_access_lists"]
        self.list_address = found["tx_access_address_cost"]
        self.list_slot = found["tx_access_slot_cost"]
        self.creation = found["tx_create_cost"]
        self.word = found["create_word_cost"]
        self.zero = found["tx_zero_byte_cost"]
        self.nonzero = found["tx_nonzero_byte_cost"]
        self.max_initcode = found["max_initcode_size"]
        self.refund_quotient = found["refund_quotient"]
        self.blob_gas = found["blob_gas_per_blob"]

    cdef int admit_bare(
        self, EVM evm, SentMessage sent, bytes sender, uint64_t block_gas
    ) except -1:
        if sent.gas_limit > block_gas:
            raise refused("CallerGasLimitMoreThanBlock")
        sent.before = self.intrinsic_gas(sent.data, False)
        check_gas(sent)
        check_code(evm.layer, sender)
        check_funds(evm, sender, cost_of(sent))
        return 0

    cdef int admit(
        self, EVM evm, SentMessage sent, bytes sender, uint64_t block_gas, object env
    ) except -1:
        self.check_terms(evm, sent, block_gas, env)
        sent.before = self.intrinsic_gas(sent.data, sent.to is None)
        for _, slots in env.access_list or ():
            sent.before += self.list_address + self.list_slot * len(slots)
        check_gas(sent)
        self.check_sender(evm, sent, sender, env)
        return 0

    cdef int check_terms(
        self, EVM evm, SentMessage sent, uint64_t block_gas, object env
    ) except -1:
        """Applies the checks that do not depend on the state."""
        if sent.gas_limit > block_gas:
            raise refused("CallerGasLimitMoreThanBlock")
        if sent.to is None and 0 < self.max_initcode < PyBytes_GET_SIZE(sent.data):
            raise refused("CreateInitCodeSizeLimit")
        if env.chain_id is not None and env.chain_id != evm.chain_id:
            raise refused("InvalidChainId")
        if (env.gas_priority_fee or 0) > sent.gas_price:
            raise refused("PriorityFeeGreaterThanMaxFee")
        offered = env.max_fee_per_blob_gas
        if offered is not None and offered < evm.block.blob_base_fee:
            raise refused("BlobGasPriceGreaterThanMax")
        return 0

    cdef int check_sender(self, EVM evm, SentMessage sent, bytes sender, object env) except -1:
        """Applies the checks that depend on the sender's account."""
        check_code(evm.layer, sender)
        state = evm.nonce(sender)
        if env.nonce is not None and env.nonce != state:
            kind = "High" if env.nonce > state else "Low"
            raise refused(f"NonceToo{kind} {{ tx: {env.nonce}, state: {state} }}")
        blobs = self.blob_gas * len(env.blob_hashes or ())
        check_funds(evm, sender, cost_of(sent) + (env.max_fee_per_blob_gas or 0) * blobs)
        return 0

    cdef int64_t intrinsic_gas(self, bytes data, bint creates) noexcept:
        cdef Py_ssize_t size = PyBytes_GET_SIZE(data), zeros = 0, i
        cdef const char* found = PyBytes_AS_STRING(data)
        cdef int64_t gas = self.base
        for i in range(size):
            zeros += found[i] == 0
        gas += zeros * self.zero + (size - zeros) * self.nonzero
        if creates:
            gas += self.creation + (size + 31) // 32 * self.word
        return gas


rules_of = lru_cache(maxsize=64)(Rules)
