"""Observers of the accounts and slots that opcodes access.

The definition of an access is that of go-ethereum's access list tracer and prestate tracer and, for
validations (ERC-7562), of its erc7562 tracer (eth/tracers/native/erc7562.go).
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from fastevm.core.interpreter.machine cimport (
    CREATE2_MESSAGE,
    CREATE_MESSAGE,
    Frame,
    Machine,
)
from fastevm.core.interpreter.opcodes cimport (
    BALANCE,
    CALL,
    CALLCODE,
    DELEGATECALL,
    EXTCODECOPY,
    EXTCODEHASH,
    EXTCODESIZE,
    GAS,
    ISZERO,
    KECCAK256,
    RETURN,
    REVERT,
    SELFDESTRUCT,
    SLOAD,
    SSTORE,
    STATICCALL,
    TLOAD,
    TSTORE,
)
from fastevm.core.interpreter.status cimport OUT_OF_GAS, STACK_OVERFLOW
from fastevm.core.interpreter.tracer cimport (
    TRACE_ACCESS,
    TRACE_ENTER,
    TRACE_STEP,
    AccessRecord,
    EnterRecord,
    StepRecord,
    StepTrace,
    TraceHead,
    tracer_clear,
)
from fastevm.core.primitives.buffer cimport Buffer, buffer_append, buffer_free
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word, word_copy, word_fits64, word_to_address, word_to_int
from fastevm.core.spec.constants cimport CALL_DEPTH_LIMIT
from fastevm.core.state.account cimport Account, Slot
from fastevm.core.state.world cimport world_account, world_slot
from fastevm.tracing.observer cimport Observer

from collections.abc import Iterable

from fastevm.tracing.frames import FrameAccess
from fastevm.tracing.values import CALLS_BYTES_LIMIT


cdef enum:
    COLLECT_AT = 1024 * 1024
    ACCESS_LIMIT = 1_000_000      # distinct accounts and slots per execution
    MOST_FRAMES = CALL_DEPTH_LIMIT + 3
    OPCODES = 256
    ENTRY_SIZE = 256              # estimated size in bytes of an entry of a validation frame
    PADDING_LIMIT = 1024 * 1024   # most zero bytes added to a preimage that exceeds the memory


cdef enum AccessKind:
    NO_ACCESS
    ACCOUNT_ACCESS
    CALLEE_ACCESS
    SLOT_ACCESS
    CREATION


cdef struct Access:
    AccessKind kind
    Address address
    Word key


cdef class AccessObserver(Observer):
    """Collects the accesses of opcodes and of native contracts.

    - ``accounts``: accounts read or called, and beneficiaries of SELFDESTRUCT
    - ``callees``: accounts called
    - ``created``: addresses of creations
    - ``slots``: slots by contract
    - ``skip_failed``: whether to ignore ops that halt because of gas or stack
    """
    cdef bint skips_failed
    cdef Access next_access
    cdef Buffer found
    cdef readonly set accounts
    cdef readonly set callees
    cdef readonly set created
    cdef readonly dict slots
    cdef size_t count

    def __cinit__(self, *, bint skip_failed=False) -> None:
        self.trace = StepTrace(steps=True, calls=True, accesses=True, stack_words=0, limit=1)
        self.skips_failed = skip_failed
        self.accounts, self.callees, self.created, self.slots = set(), set(), set(), {}

    def __dealloc__(self) -> None:
        buffer_free(&self.found)

    cdef bint observe(self, Machine* m) noexcept nogil:
        cdef const TraceHead* head
        cdef size_t at = 0
        while at < self.trace.c.records.size:
            head = <const TraceHead*>(self.trace.c.records.bytes + at)
            if head.kind == TRACE_STEP:
                self.step_over(<const StepRecord*>head)
            elif head.kind == TRACE_ENTER:
                self.entered(<const EnterRecord*>head)
            elif head.kind == TRACE_ACCESS:
                self.accessed(<const AccessRecord*>head)
            at += head.size
        tracer_clear(self.trace.c)
        self.next_access.kind = NO_ACCESS
        if m.depth != 0:
            self.look_ahead(&m.frames[m.depth - 1])
        if self.starved:
            return False
        return self.found.size < COLLECT_AT or self.collect()

    cdef bint finish(self, Machine* m) noexcept nogil:
        return self.observe(m) and self.collect()

    cdef void note(self, const Access* access) noexcept nogil:
        if not buffer_append(&self.found, access, sizeof(Access)):
            self.starved = True

    cdef void step_over(self, const StepRecord* step) noexcept nogil:
        if self.next_access.kind == NO_ACCESS:
            return
        if self.skips_failed and OUT_OF_GAS <= step.status <= STACK_OVERFLOW:
            return
        self.note(&self.next_access)

    cdef void entered(self, const EnterRecord* frame) noexcept nogil:
        cdef Access access
        if frame.message_kind == CREATE_MESSAGE or frame.message_kind == CREATE2_MESSAGE:
            memset(&access, 0, sizeof(access))
            access.kind = CREATION
            access.address = frame.recipient
            self.note(&access)

    cdef void accessed(self, const AccessRecord* record) noexcept nogil:
        cdef Access access
        memset(&access, 0, sizeof(access))
        access.kind = SLOT_ACCESS if record.is_slot else ACCOUNT_ACCESS
        access.address = record.address
        word_copy(&access.key, &record.key)
        self.note(&access)

    cdef void look_ahead(self, const Frame* f) noexcept nogil:
        cdef uint32_t height = <uint32_t>(f.base - f.sp)
        cdef uint8_t op = f.pc[0]
        cdef Access* access = &self.next_access
        if height >= 1 and (op == SLOAD or op == SSTORE):
            access.kind = SLOT_ACCESS
            access.address = f.account.address
            word_copy(&access.key, &f.sp[0])
        elif height >= 1 and (
            op == EXTCODECOPY or op == EXTCODEHASH or op == EXTCODESIZE or op == BALANCE
            or op == SELFDESTRUCT
        ):
            access.kind = ACCOUNT_ACCESS
            word_to_address(&access.address, &f.sp[0])
        elif height >= 5 and (
            op == CALL or op == CALLCODE or op == DELEGATECALL or op == STATICCALL
        ):
            access.kind = CALLEE_ACCESS
            word_to_address(&access.address, &f.sp[1])

    cdef bint collect(self) noexcept nogil:
        with gil:
            try:
                self.collect_all()
            except Exception as error:
                self.error = error
                return False
        self.overflowed = self.count > ACCESS_LIMIT
        return not self.overflowed

    cdef int collect_all(self) except -1:
        cdef const Access* access = <const Access*>self.found.bytes
        cdef uint64_t i
        for i in range(self.found.size // sizeof(Access)):
            self.collect_one(&access[i])
        self.found.size = 0
        self.count = len(self.accounts) + len(self.created) + sum(map(len, self.slots.values()))
        return 0

    cdef int collect_one(self, const Access* access) except -1:
        cdef bytes address = access.address.b[:20]
        if access.kind == SLOT_ACCESS:
            self.slots.setdefault(address, set()).add(word_to_int(&access.key))
        elif access.kind == CREATION:
            self.created.add(address)
        else:
            self.accounts.add(address)
            if access.kind == CALLEE_ACCESS:
                self.callees.add(address)
        return 0


# --------------------------------------------------------------------------------------------------
# validations (ERC-7562)

cdef inline bint reads_code(uint8_t op) noexcept nogil:
    return op == EXTCODEHASH or op == EXTCODESIZE or op == EXTCODECOPY


cdef inline bint calls(uint8_t op) noexcept nogil:
    return op == CALL or op == CALLCODE or op == DELEGATECALL or op == STATICCALL


cdef inline bint stores(uint8_t op) noexcept nogil:
    return op == SLOAD or op == SSTORE or op == TLOAD or op == TSTORE


cdef class Erc7562Observer(Observer):
    """Collects the accesses of each frame of a validation.

    Counts ops without the GIL. Ops with an access are processed with the GIL before they are
    executed.

    - ``frames``: accesses of each frame in order of entry
    - ``preimages``: data hashed by KECCAK256
    - ``budget``: bytes of entries after which execution stops
    - ``ignored``: ops that are not counted
    """
    cdef uint32_t* counts         # counts by op, one row per active frame
    cdef bint[OPCODES] ignored
    cdef bint has_last            # whether there is a previous op that did not end its frame
    cdef uint8_t last_op
    cdef Word last_top            # top of the stack before the previous op
    cdef size_t size, budget
    cdef list running
    cdef readonly list frames
    cdef readonly set preimages

    def __cinit__(self, *args: object, **options: object) -> None:
        self.counts = <uint32_t*>calloc(MOST_FRAMES * OPCODES, sizeof(uint32_t))
        if self.counts == NULL:
            raise MemoryError

    def __init__(
        self, *, size_t budget=CALLS_BYTES_LIMIT, ignored: Iterable[int] = ()
    ) -> None:
        self.trace = StepTrace(steps=True, calls=True, stack_words=0, limit=1)
        self.budget = budget
        self.running, self.frames, self.preimages = [], [], set()
        for op in ignored:
            self.ignored[<uint8_t>op] = True

    def __dealloc__(self) -> None:
        free(self.counts)

    @property
    def kept(self) -> int:
        """Estimated size of the entries in bytes."""
        return self.size

    cdef bint observe(self, Machine* m) noexcept nogil:
        cdef const TraceHead* head
        cdef size_t at = 0
        while at < self.trace.c.records.size:
            head = <const TraceHead*>(self.trace.c.records.bytes + at)
            if head.kind != TRACE_STEP and not self.turn(head.kind == TRACE_ENTER, head.depth):
                return False
            at += head.size
        tracer_clear(self.trace.c)
        if m.depth != 0 and not self.look_at(&m.frames[m.depth - 1], m.depth):
            return False
        self.overflowed = self.size > self.budget
        return not self.overflowed

    # Processes the start or the end of a frame.
    cdef bint turn(self, bint enters, uint32_t depth) noexcept nogil:
        cdef uint32_t* row = self.counts + depth * OPCODES
        with gil:
            try:
                if enters:
                    memset(row, 0, OPCODES * sizeof(uint32_t))
                    self.size += ENTRY_SIZE
                    frame = FrameAccess()
                    self.running.append(frame)
                    self.frames.append(frame)
                else:
                    frame = self.running.pop()
                    frame.opcodes.update({op: row[op] for op in range(OPCODES) if row[op] != 0})
                return True
            except Exception as error:
                self.error = error
                return False

    cdef bint look_at(self, Frame* f, uint32_t depth) noexcept nogil:
        cdef uint32_t* row = self.counts + depth * OPCODES
        cdef uint32_t height = <uint32_t>(f.base - f.sp)
        cdef uint8_t op = f.pc[0]
        if op == REVERT or op == RETURN:
            self.has_last = False
        if self.is_of_interest(op, height):
            with gil:
                try:
                    self.look_closely(f, op, height)
                except Exception as error:
                    self.error = error
                    return False
        if self.has_last and self.last_op == GAS and not calls(op):
            row[<uint8_t>GAS] += 1
        if op != GAS and not self.ignored[op]:
            row[op] += 1
        self.has_last, self.last_op = True, op
        if height != 0:
            word_copy(&self.last_top, &f.sp[0])
        return True

    cdef bint is_of_interest(self, uint8_t op, uint32_t height) noexcept nogil:
        if self.has_last and reads_code(self.last_op):
            return True
        return height >= 1 and (
            reads_code(op) or calls(op) or stores(op) or op == KECCAK256
        )

    cdef int look_closely(self, Frame* f, uint8_t op, uint32_t height) except -1:
        cdef Address address
        frame = self.running[len(self.running) - 1]
        if self.has_last and reads_code(self.last_op) and not (
            self.last_op == EXTCODESIZE and op == ISZERO
        ):
            word_to_address(&address, &self.last_top)
            frame.external.append(address.b[:sizeof(Address)])
            self.size += ENTRY_SIZE
        if reads_code(op) and height >= 1:
            self.note_size(frame, f, op, &f.sp[0])
        elif calls(op) and height >= 2:
            self.note_size(frame, f, op, &f.sp[1])
        elif stores(op) and height >= 1:
            self.note_slot(frame, f, op)
        elif op == KECCAK256 and height >= 2:
            self.note_preimage(f)
        return 0

    cdef int note_size(self, object frame, Frame* f, uint8_t op, const Word* target) except -1:
        cdef Address address
        cdef Account* account
        word_to_address(&address, target)
        key = address.b[:sizeof(Address)]
        if key in frame.sizes:
            return 0
        account = world_account(f.world, &address)
        if account == NULL:
            raise MemoryError
        frame.sizes[key] = (account.code.size if account.code != NULL else 0, op)
        self.size += ENTRY_SIZE
        return 0

    cdef int note_slot(self, object frame, Frame* f, uint8_t op) except -1:
        cdef Slot* slot
        key = word_to_int(&f.sp[0])
        self.size += ENTRY_SIZE
        if op == SSTORE:
            frame.writes[key] = frame.writes.get(key, 0) + 1
        elif op == TLOAD:
            frame.transient_reads[key] = frame.transient_reads.get(key, 0) + 1
        elif op == TSTORE:
            frame.transient_writes[key] = frame.transient_writes.get(key, 0) + 1
        elif key not in frame.reads and key not in frame.writes:
            slot = world_slot(f.world, f.account, &f.sp[0])
            if slot == NULL:
                raise MemoryError
            frame.reads[key] = word_to_int(&slot.current)
        return 0

    cdef int note_preimage(self, Frame* f) except -1:
        cdef uint64_t offset, size, known
        if not (word_fits64(&f.sp[0]) and word_fits64(&f.sp[1])):
            return 0
        offset, size = f.sp[0].d[0], f.sp[1].d[0]
        known = min(size, f.memory_size - offset) if offset < f.memory_size else 0
        if size - known > PADDING_LIMIT:
            return 0
        data = (<const char*>f.memory)[offset:offset + known] if known != 0 else b""
        self.preimages.add(data + bytes(size - known))
        self.size += ENTRY_SIZE + size
        return 0
