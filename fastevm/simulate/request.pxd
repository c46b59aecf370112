# One request of eth_simulateV1 as plain C values, read straight from its JSON text.
from libc.stdint cimport uint64_t

from fastevm.primitives.arena cimport Arena
from fastevm.primitives.hashes cimport Address, Hash
from fastevm.primitives.word cimport Word
from fastevm.simulate.jobs cimport List


# An entry of blockStateCalls: what is not overridden is as the rules of simulated chains have it.
cdef struct BlockJob:
    bint has_number
    bint has_time
    bint has_gas_limit
    bint has_fee_recipient
    bint has_prev_randao
    bint has_base_fee
    bint has_blob_base_fee
    bint has_beacon_root
    uint64_t number
    uint64_t time
    uint64_t gas_limit
    Address fee_recipient
    Hash prev_randao
    Word base_fee
    Word blob_base_fee
    Hash beacon_root
    size_t first_call
    size_t call_count
    size_t first_override
    size_t override_count


cdef class Request:
    cdef List blocks           # BlockJob
    cdef List calls            # CallJob; its tx misses the chain's id
    cdef List overrides        # OverrideJob
    cdef List slots            # SlotJob
    cdef Arena* arena          # call data
    cdef bint validation
    cdef bint trace_transfers
    cdef bint names_chain      # some call has a chainId, which is then `chain_id` in all that do
    cdef uint64_t chain_id
    cdef size_t end            # where the payload ends in the text
