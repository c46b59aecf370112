# Canonical bytes from the fields of a transaction given in Python.
from fastevm.execution.tx cimport Tx


# The envelope of the fields that Transaction.build names; TransactionDecodeError, TypeError.
cdef bytes encode_fields(dict fields)
# The same transaction with another signature.
cdef bytes encode_signed(const Tx* tx, object v, object r, object s)
