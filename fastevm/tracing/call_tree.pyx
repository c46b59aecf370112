"""The call tree of a transaction, in the format of go-ethereum's callTracer.

Frame records are kept until execution ends. Then they are linked and written as JSON text, without
the GIL and without Python values. Long text is written to a spool in pieces.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from fastevm.core.interpreter.machine cimport (
    CALLCODE_MESSAGE,
    CREATE2_MESSAGE,
    CREATE_MESSAGE,
    DELEGATECALL_MESSAGE,
    STATICCALL_MESSAGE,
    Machine,
)
from fastevm.core.interpreter.status cimport REVERTED, RUNNING, STOPPED
from fastevm.core.interpreter.tracer cimport (
    TRACE_ENTER,
    TRACE_SELFDESTRUCT,
    EnterRecord,
    LeaveRecord,
    StepTrace,
    TraceHead,
)
from fastevm.core.primitives.buffer cimport buffer_append, buffer_free
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport word_to_int
from fastevm.core.spec.constants cimport CALL_DEPTH_LIMIT
from fastevm.tracing.step_loggers cimport frame_end_message
from fastevm.tracing.text_observer cimport SPILL_AT, TextObserver
from fastevm.rpc_types.text.json_writer cimport (
    JsonText,
    json_hex,
    json_put,
    json_quantity,
    json_quantity_word,
    json_raw,
    json_string,
)

from collections.abc import Sequence

import msgspec

from fastevm.core.interpreter.tracer import MESSAGE_KINDS
from fastevm.core.simulation.revert import revert_reason
from fastevm.core.simulation.values import SimulatedLog
from fastevm.tracing.frames import CallFrame
from fastevm.tracing.spool import Spool, SpooledText
from fastevm.tracing.values import TRACE_BYTES_LIMIT
from fastevm.core.primitives.hex import hex_bytes, quantity


cdef enum:
    MOST_OPEN = CALL_DEPTH_LIMIT + 3      # most open frames, with a refused call and a SELFDESTRUCT


# Names by message kind; the module owns the texts.
cdef const char* KIND_NAMES[TRACE_SELFDESTRUCT + 1]
KIND_TEXTS = [name.encode() for name in MESSAGE_KINDS]


cdef int fill_kind_names() except -1:
    cdef bytes text
    cdef int kind
    for kind in range(TRACE_SELFDESTRUCT + 1):
        text = KIND_TEXTS[kind]
        KIND_NAMES[kind] = text
    return 0


fill_kind_names()


cdef inline const uint8_t* input_of(const EnterRecord* r) noexcept nogil:
    return <const uint8_t*>r + sizeof(EnterRecord)


cdef inline const uint8_t* output_of(const LeaveRecord* r) noexcept nogil:
    return <const uint8_t*>r + sizeof(LeaveRecord)


cdef inline bint has_failed(const LeaveRecord* r) noexcept nogil:
    return r.status != RUNNING and r.status != STOPPED


def log_text(log: SimulatedLog, index: int, position: int) -> bytes:
    """Returns a log as JSON text.

    ``index``: of the log in the block. ``position``: number of calls of its frame before the log.
    """
    return msgspec.json.encode({
        "address": hex_bytes(log.address),
        "topics": [hex_bytes(topic) for topic in log.topics],
        "data": hex_bytes(log.data),
        "index": quantity(index),
        "position": quantity(position),
    })


cdef object frame_of(const CallNode* node):
    cdef const EnterRecord* entered = node.entered
    cdef const LeaveRecord* left = node.left
    return CallFrame(
        kind=MESSAGE_KINDS[entered.message_kind],
        depth=entered.head.depth - 1,
        caller=node.caller.b[:sizeof(Address)],
        target=entered.recipient.b[:sizeof(Address)],
        value=word_to_int(&entered.value),
        gas=entered.gas,
        gas_used=left.gas_used,
        input=(<const char*>input_of(entered))[:entered.data_size],
        output=(<const char*>output_of(left))[:left.data_size],
        error=frame_end_message(left).decode() if has_failed(left) else None,
        reverted=left.status == REVERTED,
    )


cdef class CallTree(TextObserver):
    """Keeps the records of frames, and writes them as a call tree after the execution.

    ``budget``: bytes of records after which execution stops and ``overflowed`` is set.
    ``only_top``: whether to include only the top frame.
    """

    def __init__(
        self,
        *,
        size_t budget=TRACE_BYTES_LIMIT,
        bint only_top=False,
        spool: Spool | None = None,
    ) -> None:
        self.trace = StepTrace(steps=False, calls=True, limit=budget + 1)
        self.budget, self.only_top = budget, only_top
        self.spool, self.spills = spool, spool is not None

    def __dealloc__(self) -> None:
        buffer_free(&self.nodes)
        buffer_free(&self.owners)

    @property
    def first_index(self) -> int:
        """The number of logs in the block before this transaction."""
        return self.first_log

    @property
    def kept(self) -> int:
        """Size of the records in bytes."""
        return self.trace.c.records.size

    cdef bint observe(self, Machine* m) noexcept nogil:
        self.overflowed = self.trace.c.records.size > self.budget
        return not self.overflowed

    def text(
        self, *, uint64_t gas_limit, uint64_t gas_used, logs: Sequence[SimulatedLog]
    ) -> object:
        """Returns the result of callTracer: JSON bytes, or a position in the spool. Call it once.

        The top frame has the gas of the whole transaction. ``logs`` are the logs of the outcome; if
        empty, no logs are included. Raises TracingError if the spool is full.
        """
        cdef bint done
        self.logs, self.shows_logs = logs, bool(logs)
        with nogil:
            done = self.link() and self.write(gas_limit, gas_used)
            buffer_free(&self.trace.c.records)
            buffer_free(&self.nodes)
            buffer_free(&self.owners)
        if self.error is not None:
            raise self.error
        if not done or self.writer.starved:
            raise MemoryError("no memory for a trace")
        cdef size_t size = self.writer.out.size
        if self.spilled == 0 and (not self.spills or self.spool.fits_in_memory(size)):
            return self.writer.out.bytes[:size]
        self.spill_now()
        return SpooledText(self.spool, self.start, self.spilled)

    def frames(self) -> list[CallFrame]:
        """Returns the frames in order of entry, each with its own gas. Call it once.

        Afterwards ``log_owners`` has, for each log, the index of its frame and the number of the
        frame's calls before the log. ``first_index`` is the index of the first log in the block.
        """
        cdef bint done
        cdef size_t i
        with nogil:
            done = self.link()
        if not done:
            raise MemoryError("no memory for a trace")
        nodes = <const CallNode*>self.nodes.bytes
        found = [frame_of(&nodes[i]) for i in range(self.nodes.size // sizeof(CallNode))]
        owners = <const LogOwner*>self.owners.bytes
        self.log_owners = [
            (owners[i].node, owners[i].position)
            for i in range(self.owners.size // sizeof(LogOwner))
        ]
        buffer_free(&self.trace.c.records)
        buffer_free(&self.nodes)
        buffer_free(&self.owners)
        return found

    # ----------------------------------------------------------------------------------------------
    # frames and logs

    cdef bint link(self) noexcept nogil:
        cdef const uint8_t* at = self.trace.c.records.bytes
        cdef const uint8_t* end = at + self.trace.c.records.size
        cdef uint32_t[MOST_OPEN] open_nodes
        cdef uint32_t depth = 0, count = 0
        cdef const TraceHead* head
        cdef CallNode* node
        while at < end:
            head = <const TraceHead*>at
            if head.kind == TRACE_ENTER:
                if depth != 0 and not self.count_logs(
                    (<const EnterRecord*>head).log_count, open_nodes[depth - 1]
                ):
                    return False
                node = NULL
                if depth != 0:
                    node = <CallNode*>self.nodes.bytes + open_nodes[depth - 1]
                if depth == MOST_OPEN or self.enter(<const EnterRecord*>head, node) == NULL:
                    return False
                open_nodes[depth] = count
                depth += 1
                count += 1
            else:
                depth -= 1
                if not self.count_logs((<const LeaveRecord*>head).log_count, open_nodes[depth]):
                    return False
                node = <CallNode*>self.nodes.bytes + open_nodes[depth]
                node.left = <const LeaveRecord*>head
            at += head.size
        self.assign_logs()
        return count != 0

    cdef CallNode* enter(self, const EnterRecord* r, const CallNode* parent) noexcept nogil:
        cdef CallNode node
        cdef size_t at = self.nodes.size
        memset(&node, 0, sizeof(node))
        node.entered, node.left = r, NULL
        node.runs_as, node.caller = r.recipient, r.caller
        node.calls, node.first_log = 0, NO_LOG
        if parent == NULL:
            self.first_log = r.log_count
        else:
            if r.message_kind == DELEGATECALL_MESSAGE or r.message_kind == CALLCODE_MESSAGE:
                node.runs_as = parent.runs_as
            if r.message_kind == DELEGATECALL_MESSAGE:
                node.caller = parent.runs_as
            if not self.only_top:
                (<CallNode*>parent).calls += 1
        if not buffer_append(&self.nodes, &node, sizeof(CallNode)):
            return NULL
        return <CallNode*>(self.nodes.bytes + at)

    # Assigns the logs added between two records to the frame that was executing. If the number of
    # logs has decreased, the logs of a failed frame were reverted.
    cdef bint count_logs(self, uint64_t total, uint32_t running) noexcept nogil:
        cdef uint64_t count = total - self.first_log
        cdef LogOwner owner
        memset(&owner, 0, sizeof(owner))
        if self.owners.size > count * sizeof(LogOwner):
            self.owners.size = count * sizeof(LogOwner)
        owner.node = running
        owner.position = (<CallNode*>self.nodes.bytes)[running].calls
        owner.next = NO_LOG
        while self.owners.size < count * sizeof(LogOwner):
            if not buffer_append(&self.owners, &owner, sizeof(LogOwner)):
                return False
        return True

    cdef void assign_logs(self) noexcept nogil:
        cdef LogOwner* owners = <LogOwner*>self.owners.bytes
        cdef size_t at = self.owners.size // sizeof(LogOwner)
        cdef CallNode* node
        while at != 0:
            at -= 1
            node = <CallNode*>self.nodes.bytes + owners[at].node
            owners[at].next = node.first_log
            node.first_log = <uint32_t>at

    # ----------------------------------------------------------------------------------------------
    # text

    cdef bint write(self, uint64_t gas_limit, uint64_t gas_used) noexcept nogil:
        cdef CallNode* nodes = <CallNode*>self.nodes.bytes
        cdef size_t count = self.nodes.size // sizeof(CallNode), next_node = 1
        cdef uint32_t[MOST_OPEN] open_nodes
        cdef uint32_t depth = 1
        cdef bint follows = False      # the list already has a call: write a comma
        cdef CallNode* node
        if not self.put_head(&nodes[0], gas_limit, gas_used):
            return False
        open_nodes[0] = 0
        while depth != 0:
            node = &nodes[open_nodes[depth - 1]]
            # Records are in one buffer, so records between entry and end of a frame are its
            # children.
            if not self.only_top and next_node < count and (
                <const void*>nodes[next_node].entered < <const void*>node.left
            ):
                json_put(&self.writer, b"," if follows else b',"calls":[')
                node = &nodes[next_node]
                if not self.put_head(
                    node, <uint64_t>node.entered.gas, <uint64_t>node.left.gas_used
                ):
                    return False
                open_nodes[depth] = <uint32_t>next_node
                depth += 1
                next_node += 1
                follows = False
            else:
                json_put(&self.writer, b"]," if node.calls != 0 else b",")
                if not self.put_tail(node):
                    return False
                depth -= 1
                follows = True
        return True

    # Writes the members before ``calls`` and leaves the object open.
    cdef bint put_head(self, const CallNode* node, uint64_t gas, uint64_t used) noexcept nogil:
        cdef JsonText* w = &self.writer
        cdef const EnterRecord* entered = node.entered
        cdef const LeaveRecord* left = node.left
        cdef bint failed = has_failed(left)
        cdef bint creates = (
            entered.message_kind == CREATE_MESSAGE or entered.message_kind == CREATE2_MESSAGE
        )
        json_put(w, b'{"from":')
        json_hex(w, node.caller.b, sizeof(Address))
        json_put(w, b',"gas":')
        json_quantity(w, gas)
        json_put(w, b',"gasUsed":')
        json_quantity(w, used)
        if not (failed and creates):
            json_put(w, b',"to":')
            json_hex(w, entered.recipient.b, sizeof(Address))
        json_put(w, b',"input":')
        json_hex(w, input_of(entered), entered.data_size)
        if left.data_size != 0 and (not failed or left.status == REVERTED):
            json_put(w, b',"output":')
            json_hex(w, output_of(left), left.data_size)
        return not failed or self.put_failure(left)

    cdef bint put_failure(self, const LeaveRecord* left) noexcept nogil:
        with gil:
            try:
                self.put_words(left)
                return True
            except Exception as error:
                self.error = error
                return False

    cdef int put_words(self, const LeaveRecord* left) except -1:
        cdef bytes text = frame_end_message(left)
        json_put(&self.writer, b',"error":')
        json_string(&self.writer, text, len(text))
        if left.status == REVERTED:
            reason = revert_reason((<const char*>output_of(left))[:left.data_size])
            if reason is not None:
                text = reason.encode()
                json_put(&self.writer, b',"revertReason":')
                json_string(&self.writer, text, len(text))
        return 0

    # Writes the members after ``calls`` and closes the object.
    cdef bint put_tail(self, const CallNode* node) noexcept nogil:
        cdef JsonText* w = &self.writer
        if self.shows_logs and node.first_log != NO_LOG and not self.put_logs(node):
            return False
        if node.entered.message_kind != STATICCALL_MESSAGE:
            json_put(w, b'"value":')
            json_quantity_word(w, &node.entered.value)
            json_put(w, b",")
        json_put(w, b'"type":"')
        json_put(w, KIND_NAMES[node.entered.message_kind])
        json_put(w, b'"}')
        return not self.spills or w.out.size < SPILL_AT or self.spill()

    cdef bint put_logs(self, const CallNode* node) noexcept nogil:
        cdef uint32_t at = node.first_log
        json_put(&self.writer, b'"logs":[')
        while at != NO_LOG:
            if at != node.first_log:
                json_put(&self.writer, b",")
            with gil:  # acquired for each log, so that other threads can run in between
                try:
                    self.put_log(at)
                except Exception as error:
                    self.error = error
                    return False
            at = (<const LogOwner*>self.owners.bytes)[at].next
        json_put(&self.writer, b"],")
        return True

    cdef int put_log(self, uint32_t at) except -1:
        cdef uint32_t position = (<const LogOwner*>self.owners.bytes)[at].position
        cdef bytes text = log_text(self.logs[at], self.first_log + at, position)
        json_raw(&self.writer, <const char*>text, len(text))
        return 0
