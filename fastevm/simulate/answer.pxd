# The result of eth_simulateV1 as JSON text, out of a chain that has run.
from fastevm.primitives.hashes cimport Hash
from fastevm.wire.text.json_writer cimport JsonText
from fastevm.simulate.chain cimport ChainBlock, ChainRun
from fastevm.simulate.chunk cimport CallRecord, LogCopy


# The error of a call that failed: a text beside the data it gave back, or an object of message,
# code and data. Codes of an object; those of a revert and of a halt.
cdef struct ErrorStyle:
    bint as_text
    int revert_code
    int halt_code
