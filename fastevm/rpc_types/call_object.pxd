# Call objects of JSON-RPC.
from fastevm.core.simulation.plan cimport Plan
from fastevm.rpc_types.text.json_reader cimport Cursor


# Read a call object in its usual form from JSON text into a new call of the plan. Returns False for
# any other form, which `read_call` must read.
cdef bint take_call(Plan plan, Cursor* c) noexcept nogil
# Read a call from parsed JSON (or ints and bytes), or a CallRequest, into a new call of the plan.
# Raises ValueError with the invalid member.
cdef int read_call(Plan plan, object value) except -1
