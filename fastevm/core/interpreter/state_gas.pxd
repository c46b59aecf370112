# State gas (EIP-8037): the second dimension of gas, which pays for what grows the state.
#
# A frame has a reservoir beside its gas, from which only state charges draw; what the reservoir
# lacks, the gas pays. `Machine.state_gas` holds one record per frame, used by forks with state gas
# only. Version 1 is the devnet of April 2026, version 2 Amsterdam (`Schedule.state_gas_version`).
from libc.stdint cimport int64_t, uint64_t

from fastevm.core.interpreter.machine cimport Frame, Machine
from fastevm.core.interpreter.status cimport Status
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.account cimport Account, Slot


# The price of a byte of state in a block with this gas limit.
cdef int64_t state_byte_price(const Schedule* s, uint64_t gas_limit) noexcept nogil
# The reservoir of the first frame.
cdef void begin_state_gas(Machine* m, int64_t reservoir) noexcept nogil
# Pay state gas; False: neither reservoir nor gas suffice, and nothing is taken.
cdef bint charge_state(Frame* f, int64_t amount) noexcept nogil
# Hand the whole reservoir to the frame that follows, after the state gas of the account that it
# creates (0: none) is paid. False: it cannot be paid.
cdef bint hand_on_reservoir(Frame* f, int64_t charge) noexcept nogil
# The new account of a call: 0 where it creates none.
cdef int64_t new_account_charge(const Frame* f) noexcept nogil
# A creation: the account is paid, and the reservoir handed on. False: it cannot be paid.
# `refused`: it cannot begin for another reason.
cdef bint begin_creation(Frame* f, Account* created, bint refused) noexcept nogil
# SSTORE after its access is paid; `change` is a row of the schedule.
cdef Status store_slot(Frame* f, Slot* slot, int change, const Word* value) noexcept nogil
# The top frame is left: its reservoir goes to the caller, and what a failed one had paid comes
# back.
cdef void leave_state_gas(Machine* m, Frame* f, Status status) noexcept nogil
