# Calls, creations and SELFDESTRUCT. Calls and creations prepare the child frame; the machine then
# opens it.
from fastevm.core.interpreter.machine cimport (
    CALL_MESSAGE,
    CALLCODE_MESSAGE,
    CREATE2_MESSAGE,
    CREATE_MESSAGE,
    DELEGATECALL_MESSAGE,
    STATICCALL_MESSAGE,
    Frame,
    MessageKind,
)
from fastevm.core.interpreter.status cimport STATIC_VIOLATION, Status
from fastevm.core.primitives.intrinsics cimport unlikely
from fastevm.core.primitives.word cimport Word, word_is_zero
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.account cimport Account


# Charges a call and prepares its frame. Returns ENTER_CALL if the child frame `f + 1` is prepared
# and its gas deducted from `f`. `sp`: gas and address. `value`: NULL for DELEGATECALL and
# STATICCALL. `spans`: offset and size of the input, offset and size of the output.
cdef Status begin_call(
    Frame* f, MessageKind kind, const Word* sp, const Word* value, const Word* spans
) noexcept nogil
# Charges a creation and prepares its frame, like `begin_call`. `sp`: value, offset and size of the
# init code, and the salt for CREATE2.
cdef Status begin_create(Frame* f, MessageKind kind, const Word* sp) noexcept nogil
cdef Status self_destruct(Frame* f, const Word* address) noexcept nogil
# Whether the account has code, a nonce or storage, so that no contract can be created at its
# address (an address collision).
cdef bint is_occupied(const Schedule* s, const Account* a) noexcept nogil


cdef inline Status op_create(Frame* f, Word* sp) noexcept nogil:
    return begin_create(f, CREATE_MESSAGE, sp)


cdef inline Status op_create2(Frame* f, Word* sp) noexcept nogil:
    return begin_create(f, CREATE2_MESSAGE, sp)


cdef inline Status op_call(Frame* f, Word* sp) noexcept nogil:
    if unlikely(f.is_static) and not word_is_zero(&sp[2]):
        return STATIC_VIOLATION
    return begin_call(f, CALL_MESSAGE, sp, &sp[2], &sp[3])


cdef inline Status op_callcode(Frame* f, Word* sp) noexcept nogil:
    return begin_call(f, CALLCODE_MESSAGE, sp, &sp[2], &sp[3])


cdef inline Status op_delegatecall(Frame* f, Word* sp) noexcept nogil:
    return begin_call(f, DELEGATECALL_MESSAGE, sp, NULL, &sp[2])


cdef inline Status op_staticcall(Frame* f, Word* sp) noexcept nogil:
    return begin_call(f, STATICCALL_MESSAGE, sp, NULL, &sp[2])


cdef inline Status op_selfdestruct(Frame* f, Word* sp) noexcept nogil:
    return self_destruct(f, sp)
