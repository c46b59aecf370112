"""Creates contracts with a message: ``EVM.create``."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from fastevm.evm.machine cimport EVM, ExecutionResult
from fastevm.core.execution.transaction.arguments cimport (
    gas_of, hash_run, hashes_in, word_argument,
)
from fastevm.core.execution.transaction.message_setup cimport MessageSetup
from fastevm.core.interpreter.addresses cimport create_address
from fastevm.core.interpreter.machine cimport CREATE_MESSAGE, Message, TransactionContext
from fastevm.core.primitives.bytes_like cimport bytes_like, parse_address
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.state.layer cimport Layer


ZERO_ADDRESS = bytes(20)


def create(
    evm: EVM, initcode: bytes | str, *, sender: bytes | str = ZERO_ADDRESS, value: object = 0,
    gas: object = 30_000_000, gas_price: object = 0, address: bytes | str | None = None,
    origin: bytes | str | None = None, commit: bool = False, blob_hashes: object = (),
    access_list: object = None, timeout: object = None, trace: object = None,
) -> ExecutionResult:
    """Runs init code as a message; see ``EVM.create``."""
    cdef EVM machine = evm
    cdef Message message
    cdef TransactionContext terms
    cdef ExecutionResult result
    memset(&message, 0, sizeof(message))
    memset(&terms, 0, sizeof(terms))
    cdef bytes code = bytes_like(initcode, "initcode")
    cdef bytes hashes = hash_run(blob_hashes)
    if machine.is_limited(timeout) or trace is not None or access_list is not None:
        return machine.special((timeout, trace, access_list), create, (initcode,), {
            "sender": sender, "value": value, "gas": gas, "gas_price": gas_price,
            "address": address, "origin": origin, "commit": commit, "blob_hashes": hashes_in(hashes),
        })
    message.kind = CREATE_MESSAGE
    parse_address(sender, &message.sender, "sender")
    word_argument(&message.value, value, "value")
    message.data = <const uint8_t*>PyBytes_AS_STRING(code)
    message.size = PyBytes_GET_SIZE(code)
    message.gas = gas_of(gas)
    choose_address(machine.layer, &message, address)
    terms.origin = message.sender
    if origin is not None:
        parse_address(origin, &terms.origin, "origin")
    word_argument(&terms.gas_price, gas_price, "gas_price")
    terms.blob_hashes = <const Hash*>PyBytes_AS_STRING(hashes)
    terms.blob_hash_count = <uint32_t>(PyBytes_GET_SIZE(hashes) // 32)
    result = run_creation(machine, &message, &terms, code, commit)
    if result.success:
        result.created_address = message.recipient.b[:20]
    return result


cdef int choose_address(Layer layer, Message* message, object address) except -1:
    """Sets the address of the new contract."""
    if address is not None:
        return parse_address(address, &message.recipient, "address")
    create_address(&message.recipient, &message.sender, layer.nonce(message.sender.b[:20]))
    return 0


cdef ExecutionResult run_creation(
    EVM machine, const Message* message, const TransactionContext* terms, bytes code, bint commit
):
    """Increments the sender's nonce and runs the creation. Keeps the changes if ``commit``."""
    cdef MessageSetup usual = machine.setup
    machine.check_idle()
    machine.setup = MessageSetup({}) if usual is None else usual
    try:
        return machine.message(message, terms, code, commit)
    finally:
        machine.setup = usual
