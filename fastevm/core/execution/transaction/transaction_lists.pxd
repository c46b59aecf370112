# Reads the lists that transactions and messages carry. An error names the index of the entry and
# the member: ``access_list[1].storageKeys[0]: ...``. ``name`` is the name of the list.


# Returns pairs of a 20-byte address and a tuple of slots (ints below 2**256). An entry is a pair,
# or a mapping as in JSON-RPC.
cdef list access_list_entries(object entries, str name)
# Returns tuples (chain id, 20-byte address, nonce, y parity, r, s). An entry is such a tuple, or a
# mapping as in JSON-RPC.
cdef list authorization_entries(object entries, str name)
# Returns hashes of 32 bytes.
cdef list hash_entries(object hashes, str name)
