"""ArbSys (numbers and hashes of Arbitrum blocks, aliases, messages to L1) and ArbosActs."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.native.arbitrum.addresses cimport ARB_SYS, ARBOS_ACTS
from fastevm.core.native.arbitrum.context cimport (
    PAYABLE, PURE, VIEW, WRITE, Argument, Context, add, add_refused, begin_error, charge_hash, end_error, fail,
    fail_named, give, give_address, give_number, load_at, load_number, pad, store_at,
)
from fastevm.core.native.arbitrum.storage cimport NATIVE_TOKEN_OWNERS, SENDS
from fastevm.core.native.call cimport (
    NATIVE_OUT_OF_MEMORY, native_append, native_block_hash, native_end, native_log,
)
from fastevm.core.primitives.buffer cimport Buffer, buffer_append, buffer_free
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.word cimport (
    Word, word_add, word_copy, word_fits64, word_is_zero, word_load, word_set,
    word_store,
)
from fastevm.core.state.world cimport world_sub_balance


cdef enum:
    VERSION_OFFSET = 55       # arbOSVersion returns the version of ArbOS plus this
    WINDOW = 256
    INVALID_BLOCK_NUMBER = 0xd5dc642d  # (uint256 requested, uint256 current)
    CALLER_NOT_ARBOS = 0xf812e656u

# L1 adds this number to the address of a contract that sends a message.
cdef Word ALIAS_OFFSET
# Topics of events.
cdef Word SEND_MERKLE_UPDATE, L2_TO_L1_TX


cdef bint arb_block_number(Context* c, const Argument* a) noexcept nogil:
    return give_number(c, c.call.number)


cdef bint arb_block_hash(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t asked = a.word.d[0]
    cdef Hash found
    cdef Word word
    if not word_fits64(&a.word) or asked >= c.call.number or c.call.number - asked > WINDOW:
        if c.version < 11:
            return fail(c)
        word_set(&word, c.call.number)
        return (
            begin_error(c, INVALID_BLOCK_NUMBER) and give(c, &a.word) and give(c, &word)
            and end_error(c)
        )
    if not native_block_hash(c.call, asked, &found):
        return False
    word_load(&word, found.b)
    return give(c, &word)


cdef bint arb_chain_id(Context* c, const Argument* a) noexcept nogil:
    return give_number(c, c.call.chain_id)


cdef bint arbos_version(Context* c, const Argument* a) noexcept nogil:
    return give_number(c, VERSION_OFFSET + <uint64_t>c.version)


cdef bint storage_gas_available(Context* c, const Argument* a) noexcept nogil:
    return give_number(c, 0)


cdef bint is_top_level_call(Context* c, const Argument* a) noexcept nogil:
    return give_number(c, c.call.depth <= 2)


cdef bint alias_of(Context* c, const Argument* a) noexcept nogil:
    cdef Word word
    word_add(&word, &a[0].word, &ALIAS_OFFSET)
    word.d[2] &= 0xffffffffu
    word.d[3] = 0
    return give(c, &word)


# Always returns False: only messages from L1 have aliases, and fastevm does not execute them.
cdef bint was_callers_address_aliased(Context* c, const Argument* a) noexcept nogil:
    return give_number(c, 0)


cdef bint callers_address_without_aliasing(Context* c, const Argument* a) noexcept nogil:
    if c.call.callers_caller == NULL:
        return give_number(c, 0)
    return give_address(c, c.call.callers_caller)


# --- messages to L1 ---

cdef int bit_length(uint64_t number) noexcept nogil:
    cdef int count = 0
    while number != 0:
        number >>= 1
        count += 1
    return count


cdef void store_number(uint8_t* out, uint64_t number) noexcept nogil:
    cdef Word word
    word_set(&word, number)
    word_store(out, &word)


# Computes the hash of a message, which contains everything that L1 needs to execute the message.
cdef bint hash_send(
    Context* c, const Word* destination, const Argument* data, Word* out
) noexcept nogil:
    cdef uint8_t fixed[168]
    cdef uint8_t bytes[32]
    cdef Buffer all
    cdef size_t size = data.size if data != NULL else 0
    if not charge_hash(c, sizeof(fixed) + size):
        return False
    memset(&all, 0, sizeof(all))
    memcpy(fixed, c.call.caller.b, 20)
    word_store(bytes, destination)
    memcpy(fixed + 20, bytes + 12, 20)
    store_number(fixed + 40, c.call.number)
    store_number(fixed + 72, c.call.l1_number)
    store_number(fixed + 104, c.call.timestamp)
    word_store(fixed + 136, &c.call.value)
    if not buffer_append(&all, fixed, sizeof(fixed)) or (
        size != 0 and not buffer_append(&all, data.bytes, size)
    ):
        buffer_free(&all)
        return native_end(c.call, NATIVE_OUT_OF_MEMORY)
    keccak256(bytes, all.bytes, all.size)
    buffer_free(&all)
    word_load(out, bytes)
    return True


cdef bint log_update(
    Context* c, uint64_t level, uint64_t leaf, const uint8_t* hash
) noexcept nogil:
    cdef Word topics[4]
    word_copy(&topics[0], &SEND_MERKLE_UPDATE)
    word_set(&topics[1], 0)
    word_load(&topics[2], hash)
    word_set(&topics[3], leaf)
    topics[3].d[3] = level
    return native_log(c.call, &c.call.account.address, topics, 4, NULL, 0)


# Appends a leaf to the Merkle tree of messages, which is stored as at most 64 partial hashes. Two
# hashes of a level are combined to a hash of the next level. `nodes` receives the hashes of new
# nodes, `count` their number.
cdef bint append_send(
    Context* c, const Word* send, uint64_t* leaf, uint8_t (*nodes)[32], uint64_t* count
) noexcept nogil:
    cdef uint8_t pair[64]
    cdef uint64_t size = 0, level = 0
    cdef Word word, zero
    word_set(&zero, 0)
    if not load_number(c, &SENDS, 0, &size):
        return False
    leaf[0] = size
    word_set(&word, size + 1)
    if not store_at(c, &SENDS, 0, &word):
        return False
    word_store(pair, send)
    keccak256(pair + 32, pair, 32)
    while level < <uint64_t>bit_length(size):
        if not load_at(c, &SENDS, 2 + level, &word):
            return False
        if word_is_zero(&word):
            break
        word_store(pair, &word)
        if not charge_hash(c, sizeof(pair)):
            return False
        keccak256(pair + 32, pair, sizeof(pair))
        if not store_at(c, &SENDS, 2 + level, &zero):
            return False
        memcpy(nodes[level], pair + 32, 32)
        level += 1
    count[0] = level
    word_load(&word, pair + 32)
    return store_at(c, &SENDS, 2 + level, &word)


cdef bint log_send(
    Context* c, const Word* destination, const Word* send, uint64_t leaf, const Argument* data
) noexcept nogil:
    cdef Word topics[4]
    cdef size_t size = data.size if data != NULL else 0
    word_copy(&topics[0], &L2_TO_L1_TX)
    word_copy(&topics[1], destination)
    word_copy(&topics[2], send)
    word_set(&topics[3], leaf)
    c.call.output.size = 0
    if not (
        give_address(c, &c.call.caller) and give_number(c, c.call.number)
        and give_number(c, c.call.l1_number) and give_number(c, c.call.timestamp)
        and give(c, &c.call.value) and give_number(c, 6 * 32) and give_number(c, size)
        and (size == 0 or native_append(c.call, data.bytes, size)) and pad(c, size)
    ):
        return False
    if not native_log(
        c.call, &c.call.account.address, topics, 4, c.call.output.bytes, c.call.output.size
    ):
        return False
    c.call.output.size = 0
    return True


cdef bint send(Context* c, const Word* destination, const Argument* data) noexcept nogil:
    cdef uint8_t nodes[64][32]
    cdef uint64_t owners = 0, leaf = 0, count = 0, i
    cdef Word hash
    if c.version >= 41 and not word_is_zero(&c.call.value):
        if not load_number(c, &NATIVE_TOKEN_OWNERS, 0, &owners):
            return False
        if owners != 0:
            return fail(c)
    if not hash_send(c, destination, data, &hash):
        return False
    if not append_send(c, &hash, &leaf, nodes, &count):
        return False
    if not load_number(c, &SENDS, 0, &owners):  # Nitro reads the size again
        return False
    if not world_sub_balance(c.call.world, c.call.account, &c.call.value):
        return native_end(c.call, NATIVE_OUT_OF_MEMORY)
    for i in range(count):
        if not log_update(c, i + 1, leaf, nodes[i]):
            return False
    if not log_send(c, destination, &hash, leaf, data):
        return False
    return give_number(c, leaf) if c.version >= 4 else give(c, &hash)


cdef bint send_tx_to_l1(Context* c, const Argument* a) noexcept nogil:
    return send(c, &a[0].word, &a[1])


cdef bint withdraw_eth(Context* c, const Argument* a) noexcept nogil:
    return send(c, &a[0].word, NULL)


cdef bint caller_not_arbos(Context* c, const Argument* a) noexcept nogil:
    return fail_named(c, CALLER_NOT_ARBOS)


cdef void put_topic(Word* out, bytes signature) noexcept:
    cdef uint8_t digest[32]
    keccak256(digest, <const uint8_t*><const char*>signature, len(signature))
    word_load(out, digest)


ALIAS_OFFSET.d[0] = 0x1111
ALIAS_OFFSET.d[2] = 0x11110000
put_topic(&SEND_MERKLE_UPDATE, b"SendMerkleUpdate(uint256,bytes32,uint256)")
put_topic(
    &L2_TO_L1_TX,
    b"L2ToL1Tx(address,address,uint256,uint256,uint256,uint256,uint256,uint256,bytes)",
)

add(ARB_SYS, 1, VIEW, b"arbBlockNumber()", arb_block_number)
add(ARB_SYS, 1, VIEW, b"arbBlockHash(uint256)", arb_block_hash)
add(ARB_SYS, 1, VIEW, b"arbChainID()", arb_chain_id)
add(ARB_SYS, 1, VIEW, b"arbOSVersion()", arbos_version)
add(ARB_SYS, 1, VIEW, b"getStorageGasAvailable()", storage_gas_available)
add(ARB_SYS, 1, VIEW, b"isTopLevelCall()", is_top_level_call)
add(ARB_SYS, 1, PURE, b"mapL1SenderContractAddressToL2Alias(address,address)", alias_of)
add(ARB_SYS, 1, VIEW, b"wasMyCallersAddressAliased()", was_callers_address_aliased)
add(ARB_SYS, 1, VIEW, b"myCallersAddressWithoutAliasing()", callers_address_without_aliasing)
add(ARB_SYS, 1, PAYABLE, b"withdrawEth(address)", withdraw_eth)
add(ARB_SYS, 1, PAYABLE, b"sendTxToL1(address,bytes)", send_tx_to_l1)
add_refused(
    ARB_SYS, 1, VIEW, b"sendMerkleTreeState()", "only validators of the chain may call it"
)
for signature in (
    b"startBlock(uint256,uint64,uint64,uint64)",
    b"batchPostingReport(uint256,address,uint64,uint64,uint256)",
    b"batchPostingReportV2(uint256,address,uint64,uint64,uint64,uint64,uint256)",
):
    add(ARBOS_ACTS, 1, WRITE, signature, caller_not_arbos)
