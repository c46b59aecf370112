# State gas (EIP-8037): the second gas dimension, which pays for state growth.
#
# In addition to its gas, a frame has a reservoir only for state charges. If it is exhausted,
# regular gas pays. `Machine.state_gas` holds one record per frame, used by forks with state gas
# only. Version 1 is the devnet of April 2026, version 2 Amsterdam (`Schedule.state_gas_version`).
from libc.stdint cimport int64_t, uint64_t

from fastevm.core.interpreter.machine cimport Frame, Machine
from fastevm.core.interpreter.status cimport Status
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.account cimport Account, Slot


# The price of a byte of state at this block gas limit.
cdef int64_t state_byte_price(const Schedule* s, uint64_t gas_limit) noexcept nogil
# The reservoir of the first frame.
cdef void begin_state_gas(Machine* m, int64_t reservoir) noexcept nogil
# Charges state gas. False if reservoir and gas do not suffice; then nothing is charged.
cdef bint charge_state(Frame* f, int64_t amount) noexcept nogil
# Charges the state gas of the account that the next frame creates (0 = none) and passes the whole
# reservoir to the next frame. False if it cannot be paid.
cdef bint hand_on_reservoir(Frame* f, int64_t charge) noexcept nogil
# The state gas of the account that a call creates; 0 if it creates none.
cdef int64_t new_account_charge(const Frame* f) noexcept nogil
# For a creation: charges the account and passes the reservoir on. False if it cannot be paid.
# `refused`: it cannot start for another reason.
cdef bint begin_creation(Frame* f, Account* created, bint refused) noexcept nogil
# Charges an SSTORE after its access was paid; `change` is a row of the schedule.
cdef Status store_slot(Frame* f, Slot* slot, int change, const Word* value) noexcept nogil
# Leaves the top frame: the caller takes its reservoir; state gas paid by a failed frame is
# refunded.
cdef void leave_state_gas(Machine* m, Frame* f, Status status) noexcept nogil
