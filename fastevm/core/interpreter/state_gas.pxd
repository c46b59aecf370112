# State gas (EIP-8037): the second gas dimension, which pays for state growth.
#
# In addition to its gas, a frame has a reservoir that pays for state growth only. If the reservoir
# is empty, regular gas pays. `Machine.state_gas` has one record per frame, which only forks with
# state gas use. `Schedule.state_gas_version` is 1 for the devnet of April 2026 and 2 for Amsterdam.
# All amounts are in gas.
from libc.stdint cimport int64_t, uint64_t

from fastevm.core.interpreter.machine cimport Frame, Machine
from fastevm.core.interpreter.status cimport Status
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.account cimport Account, Slot


# Returns the gas for each byte of new state in a block with this gas limit.
cdef int64_t state_byte_price(const Schedule* s, uint64_t gas_limit) noexcept nogil
# Sets the reservoir of the first frame and the price of a byte of state for this message.
cdef void begin_state_gas(Machine* m, int64_t reservoir) noexcept nogil
# Charges state gas. Returns False and charges nothing if the reservoir and the gas do not suffice.
cdef bint charge_state(Frame* f, int64_t amount) noexcept nogil
# Charges the state gas of the account that the child frame creates (0 = it creates none) and passes
# the whole reservoir to the child frame. Returns False if the frame cannot pay the charge.
cdef bint pass_reservoir(Frame* f, int64_t charge) noexcept nogil
# Returns the state gas of one new account.
cdef int64_t new_account_charge(const Frame* f) noexcept nogil
# For CREATE and CREATE2: charges the new account and passes the reservoir to the child frame.
# Returns False if the frame cannot pay. `refused`: whether the creation cannot start for another
# reason.
cdef bint begin_creation(Frame* f, Account* created, bint refused) noexcept nogil
# Charges the state gas of an SSTORE and writes the value. The access is already paid. `change` is
# an index of `Schedule.sstore_cost`, such as SSTORE_CREATE.
cdef Status store_slot(Frame* f, Slot* slot, int change, const Word* value) noexcept nogil
# Ends the top frame: returns its reservoir to the caller, and refunds the state gas that a failed
# frame has paid.
cdef void leave_state_gas(Machine* m, Frame* f, Status status) noexcept nogil
