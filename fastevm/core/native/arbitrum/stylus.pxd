# Contracts in WebAssembly (Stylus), which fastevm does not run.
from libc.stdint cimport uint8_t

from fastevm.core.spec.schedule cimport Schedule


cdef inline const char* no_stylus() noexcept nogil:
    return b"a Stylus contract (WebAssembly) does not run here, where only EVM code does"


# Whether the chain may have contracts in WebAssembly: since version 30 of ArbOS.
cdef inline bint allows_stylus(const Schedule* schedule) noexcept nogil:
    return schedule.arbos_version >= 30


# Whether code is a Stylus program (0xeff000), or the root of a program in fragments (0xeff002).
cdef inline bint is_stylus_code(const uint8_t* code, size_t size) noexcept nogil:
    return (
        size >= 4 and code[0] == 0xef and code[1] == 0xf0
        and (code[2] == 0x00 or code[2] == 0x02)
    )
