# Block information: BLOCKHASH to BLOBBASEFEE.
from libc.stdint cimport UINT64_MAX, uint8_t, uint64_t

from fastevm.core.interpreter.frame cimport missing
from fastevm.core.interpreter.machine cimport (
    READS_BASE_FEE,
    READS_BLOB_BASE_FEE,
    READS_BLOCK_HASH,
    READS_COINBASE,
    READS_GAS_LIMIT,
    READS_NUMBER,
    READS_RANDOMNESS,
    READS_SLOT_NUMBER,
    READS_TIMESTAMP,
    BlockContext,
    Frame,
    Machine,
    visible_number,
)
from fastevm.core.interpreter.ops.l1_block cimport blockhash_of_l1
from fastevm.core.interpreter.ops.spans cimport narrow_span
from fastevm.core.interpreter.status cimport RUNNING, Status
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.primitives.intrinsics cimport likely, unlikely
from fastevm.core.primitives.word cimport (
    Word,
    word_copy,
    word_fits64,
    word_from_address,
    word_load,
    word_set,
    word_zero,
)
from fastevm.core.spec.constants cimport BLOCK_HASH_WINDOW
from fastevm.core.state.world cimport world_block_hash


cdef inline void mark_block_hash(Machine* m, const Word* wanted) noexcept nogil:
    cdef uint64_t number = wanted.d[0] if word_fits64(wanted) else UINT64_MAX
    if not m.environment_reads & READS_BLOCK_HASH or number < m.oldest_hash:
        m.oldest_hash = number
    if not m.environment_reads & READS_BLOCK_HASH or number > m.newest_hash:
        m.newest_hash = number
    m.environment_reads |= READS_BLOCK_HASH


cdef inline Status op_blockhash(Frame* f, Word* sp) noexcept nogil:
    cdef const BlockContext* block = f.machine.block
    cdef Hash found
    cdef uint64_t back = block.number - sp[0].d[0]
    mark_block_hash(f.machine, &sp[0])
    if unlikely(block.l1_number != 0):
        return blockhash_of_l1(f, sp)
    if not word_fits64(&sp[0]) or sp[0].d[0] >= block.number or back > BLOCK_HASH_WINDOW:
        word_zero(&sp[0])
    elif back <= block.ancestor_count:
        word_load(&sp[0], block.ancestors[back - 1].b)
    elif world_block_hash(f.world, sp[0].d[0], &found):
        word_load(&sp[0], found.b)
    else:
        return missing(f)
    return RUNNING


cdef inline void op_coinbase(const Frame* f, Word* top) noexcept nogil:
    f.machine.environment_reads |= READS_COINBASE
    word_from_address(top, &f.machine.block.coinbase)


cdef inline void op_timestamp(const Frame* f, Word* top, const uint8_t* pc) noexcept nogil:
    cdef Machine* m = f.machine
    word_set(top, m.block.timestamp)
    if likely(m.spans == NULL) or not narrow_span(f, top, pc, &m.spans.timestamp):
        m.environment_reads |= READS_TIMESTAMP


cdef inline void op_number(const Frame* f, Word* top, const uint8_t* pc) noexcept nogil:
    cdef Machine* m = f.machine
    word_set(top, visible_number(m.block))
    if likely(m.spans == NULL) or not narrow_span(f, top, pc, &m.spans.number):
        m.environment_reads |= READS_NUMBER


cdef inline void op_prevrandao(const Frame* f, Word* top) noexcept nogil:
    """PREVRANDAO; before the merge the same opcode is DIFFICULTY (EIP-4399)."""
    f.machine.environment_reads |= READS_RANDOMNESS
    if f.schedule.difficulty_is_randomness:
        word_copy(top, &f.machine.block.prev_randao)
    else:
        word_copy(top, &f.machine.block.difficulty)


cdef inline void op_gaslimit(const Frame* f, Word* top) noexcept nogil:
    f.machine.environment_reads |= READS_GAS_LIMIT
    word_set(top, f.machine.block.gas_limit)


cdef inline void op_chainid(const Frame* f, Word* top) noexcept nogil:
    word_set(top, f.machine.block.chain_id)


cdef inline void op_basefee(const Frame* f, Word* top, const uint8_t* pc) noexcept nogil:
    cdef Machine* m = f.machine
    word_copy(top, &m.block.base_fee)
    if likely(m.spans == NULL) or not narrow_span(f, top, pc, &m.spans.base_fee):
        m.environment_reads |= READS_BASE_FEE


cdef inline void op_blobbasefee(const Frame* f, Word* top) noexcept nogil:
    f.machine.environment_reads |= READS_BLOB_BASE_FEE
    word_copy(top, &f.machine.block.blob_base_fee)


cdef inline void op_slotnum(const Frame* f, Word* top) noexcept nogil:
    f.machine.environment_reads |= READS_SLOT_NUMBER
    word_set(top, f.machine.block.slot_number)
