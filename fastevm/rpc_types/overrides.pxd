# Overrides of blocks and accounts.
from fastevm.core.simulation.plan cimport Plan, PlannedBlock
from fastevm.rpc_types.text.json_reader cimport Cursor


# Read an object in its usual form from JSON text into a block of the plan. Return False for any
# other form, which the reader of parsed JSON must read.
cdef bint take_state_overrides(Plan plan, Cursor* c, PlannedBlock* block) noexcept nogil
cdef bint take_block_overrides(Cursor* c, PlannedBlock* block) noexcept nogil
