"""Precompiles implemented in Python, and observers of executions."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int64_t
from libc.string cimport memset

from fastevm.core.execution.transaction.arguments cimport gas_of
from fastevm.core.interpreter.machine cimport (
    HOST_PRECOMPILE, Frame, Machine, PrecompileMove, machine_answer, machine_host_frame,
    machine_native_call,
)
from fastevm.core.native.call cimport (
    NATIVE_FAILED, NATIVE_RUNNING, NativeCall, native_charge, native_end, native_revert,
)
from fastevm.core.primitives.buffer cimport buffer_append
from fastevm.evm.precompile_call cimport PrecompileCall, begin_call
from fastevm.core.primitives.bytes_like cimport address_bytes, bytes_like, parse_address

from collections.abc import Callable, Iterator, Mapping, MutableMapping

from fastevm.errors import PrecompileFailed, ResourceLimitError, Revert
from fastevm.evm.stateful import StatefulPrecompile


cdef class Watch:
    cdef int begin(self, Machine* m) except -1:
        return 0

    cdef int read(self, Machine* m) except -1:
        return 0

    cdef int finish(self, Machine* m) except -1:
        return 0


cdef class HostPrecompiles:
    def __cinit__(self) -> None:
        self.callables = {}

    def __dealloc__(self) -> None:
        PyMem_RawFree(self.moves)

    cdef int pack(self, dict callables, object idle) except -1:
        cdef size_t count = <size_t>len(callables)
        cdef PrecompileMove* moves
        if count > PRECOMPILES_LIMIT:
            raise ResourceLimitError(
                "precompiles", f"a machine has at most {PRECOMPILES_LIMIT} precompiles in Python"
            )
        moves = <PrecompileMove*>PyMem_RawMalloc((count + 1) * sizeof(PrecompileMove))
        if moves == NULL:
            raise MemoryError
        for i, address in enumerate(callables):
            parse_address(address, &moves[<size_t>i].address, "address")
            moves[<size_t>i].precompile = HOST_PRECOMPILE
        try:
            if idle is not None:
                idle()
        except BaseException:
            PyMem_RawFree(moves)
            raise
        # No Python code runs until `moves` and `count` are both replaced.
        PyMem_RawFree(self.moves)
        self.moves, self.count = moves, count
        self.callables = callables
        return 0

    cdef int answer(self, Machine* m) except -1:
        """Runs the callable like a native contract, see `fastevm/core/native`."""
        cdef const Frame* f = machine_host_frame(m)
        cdef NativeCall native
        cdef bint is_revert = False
        cdef int64_t used = 0
        cdef bytes output = b""
        cdef PrecompileCall call
        memset(&native, 0, sizeof(native))
        machine_native_call(m, &native)
        run = self.callables[f.code_address.b[:20]]
        data = (<const char*>f.data)[:f.data_size] if f.data_size else b""
        try:
            if isinstance(run, StatefulPrecompile):
                call = begin_call(m, &native, data)
                try:
                    output, used = given(run(call))
                finally:
                    call.native = NULL
            else:
                output, used = given(run(data, f.gas))
        except Revert as revert:
            is_revert, output, used = True, revert.data, gas_of(revert.gas_used)
        except PrecompileFailed:
            if native.status == NATIVE_RUNNING:
                native_end(&native, NATIVE_FAILED)
        if native.status == NATIVE_RUNNING and native_charge(&native, used) and is_revert:
            native_revert(&native)
        m.output.size = 0
        if PyBytes_GET_SIZE(output) > OUTPUT_LIMIT:
            raise ResourceLimitError("precompile_output", f"over {OUTPUT_LIMIT} bytes of output")
        if not buffer_append(&m.output, PyBytes_AS_STRING(output), PyBytes_GET_SIZE(output)):
            raise MemoryError
        machine_answer(m, &native)
        return 0


cdef tuple given(object answer):
    """Returns output and gas from the return value of a precompile."""
    if answer is None:
        return b"", 0
    if not isinstance(answer, tuple):
        return bytes_like(answer, "output of a precompile"), 0
    if len(answer) != 2:
        raise TypeError(f"a precompile gives its output and its gas, not {len(answer)} values")
    output, gas = answer
    return b"" if output is None else bytes_like(output, "output of a precompile"), gas_of(gas)


class Precompiles(MutableMapping):
    """The precompiles of a machine that are implemented in Python, by address.

    A call to such an address runs ``callable(input, gas)`` with the input (bytes) and the available
    gas. The callable returns the output, or a pair of output and gas used; if it used more than the
    available gas, the call is out of gas. It may raise ``fastevm.Revert(data)``, which reverts the
    call, or ``fastevm.PrecompileFailed``, which consumes all gas. Any other exception ends the
    execution without changes and propagates to the caller. The callable replaces a precompile of
    the fork. The address has no code unless ``set_code`` sets some (Solidity checks for code before
    a call), and it is cold like other addresses.

    To access the state, set ``fastevm.evm.stateful(run)``: ``run`` gets a ``PrecompileCall``.
    Inside a callable, using the machine raises RuntimeError. Over a remote state, an execution and
    its callables are repeated until no value is missing. More than 1,024 precompiles raise
    ResourceLimitError.
    """

    __slots__ = ("_host", "_idle")

    def __init__(self, host: HostPrecompiles, idle: Callable[[], object]) -> None:
        self._host, self._idle = host, idle

    def __getitem__(self, address: bytes | str) -> object:
        cdef HostPrecompiles host = self._host
        return host.callables[address_bytes(address, "address")]

    def __setitem__(self, address: bytes | str, run: object) -> None:
        cdef HostPrecompiles host = self._host
        if not callable(run):
            raise TypeError(f"a precompile is called, and {type(run).__name__} cannot be")
        host.pack(host.callables | {address_bytes(address, "address"): run}, self._idle)

    def __delitem__(self, address: bytes | str) -> None:
        cdef HostPrecompiles host = self._host
        callables = dict(host.callables)
        del callables[address_bytes(address, "address")]
        host.pack(callables, self._idle)

    def __iter__(self) -> Iterator[bytes]:
        cdef HostPrecompiles host = self._host
        return iter(host.callables)

    def __len__(self) -> int:
        cdef HostPrecompiles host = self._host
        return len(host.callables)

    def __repr__(self) -> str:
        addresses = ", ".join([f"0x{address.hex()}" for address in self])
        return f"<precompiles in Python: {addresses or 'none'}>"


def packed(callables: Mapping[bytes, object] | None) -> HostPrecompiles | None:
    """Returns the precompiles for a machine; None if there are none."""
    cdef HostPrecompiles host
    if callables is None:
        return None
    host = HostPrecompiles()
    host.pack(dict(callables), None)
    return host


def callables_of(host: HostPrecompiles | None) -> dict[bytes, object] | None:
    """Returns the callables from which ``packed`` created ``host``."""
    return None if host is None else (<HostPrecompiles>host).callables
