"""Messages that keep their changes, as in pyrevm; ordinary messages run without Python."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.integrations.pyrevm.message_rules cimport SentMessage
from fastevm.evm.result cimport ExecutionResult
from fastevm.core.execution.transaction.arguments cimport integer
from fastevm.core.interpreter.machine cimport CALL_MESSAGE, Message, TransactionContext
from fastevm.core.primitives.word cimport word_from_int

import json
import sys

from fastevm.integrations.pyrevm.environments import address_bytes, unsigned
from fastevm.integrations.pyrevm.outcomes import ExecutionResult as Shown
from fastevm.integrations.pyrevm.outcomes import Log, halt_reason
from fastevm.tracing.runner import message_traced
from fastevm.tracing.step_loggers import Eip3155Logger
from fastevm.tracing.tracer import precompiles_of
from fastevm.core.primitives.hex import checksum_address


RETURN, SELFDESTRUCT = 0xf3, 0xff

cdef int64_t HIGHEST_FRAME_GAS = 0x7fffffffffffffff


cdef class Ended:
    @property
    def tx(self) -> dict[str, object]:
        """Returns the fields of a ``TxEnv``."""
        sent = self.sent
        return {
            "caller": sent.caller, "to": sent.to, "data": sent.data, "value": sent.value,
            "gas_limit": sent.gas_limit, "gas_price": sent.gas_price,
        }

    cdef object spent(self):
        cdef object used = self.outcome.gas_used
        if used < frame_gas(self.sent):
            return self.sent.before + used
        return self.sent.gas_limit

    @property
    def gas_refunded(self) -> int:
        if not self.outcome.success:
            return 0
        return min(self.outcome.gas_refunded, self.spent() // self.rules.refund_quotient)

    @property
    def gas_used(self) -> int:
        return self.spent() - self.gas_refunded

    @property
    def is_halt(self) -> bool:
        return not str(self.outcome.error).startswith("execution reverted")

    @property
    def reason(self) -> str:
        """Returns revm's name for the kind of success."""
        if self.opcode == SELFDESTRUCT and self.sent.to is not None:
            return "SelfDestruct"
        returns = self.opcode == RETURN or self.sent.to is None or self.outcome.output
        return "Return" if returns or self.target in precompiles_of(self.schedule) else "Stop"

    def result(self) -> Shown:
        """Returns the outcome in pyrevm's format."""
        outcome = self.outcome
        used, refunded = self.gas_used, self.gas_refunded
        if outcome.success:
            return Shown(True, False, self.reason, used, refunded, [Log(log) for log in outcome.logs])
        halts = self.is_halt
        reason = halt_reason(str(outcome.error), self.opcode) if halts else "Revert"
        return Shown(False, halts, reason, used, 0, [])

    def failure(self) -> RuntimeError:
        """Returns the exception for a failed message."""
        if self.is_halt:
            reason = halt_reason(str(self.outcome.error), self.opcode)
            return RuntimeError(f"Halt {{ reason: {reason}, gas_used: {self.gas_used} }}")
        output = self.outcome.output.hex()
        return RuntimeError(f"Revert {{ gas_used: {self.gas_used}, output: 0x{output} }}")


cdef int64_t frame_gas(SentMessage sent) noexcept:
    """Returns the gas of the message itself, without intrinsic gas."""
    cdef uint64_t gas = sent.gas_limit - <uint64_t>sent.before
    return HIGHEST_FRAME_GAS if gas > <uint64_t>HIGHEST_FRAME_GAS else <int64_t>gas


cdef bytes payload(object data):
    """Converts bytes or a sequence of numbers below 256 to bytes."""
    if type(data) is bytes:
        return data
    if data is None:
        return b""
    if isinstance(data, str):
        raise TypeError("data are bytes, not str")
    return bytes(data)


cdef class Messages:
    def __reduce__(self):
        raise TypeError("an EVM by pyrevm's names cannot be copied or pickled, as pyrevm's cannot")

    cdef bytes key_of(self, object address):
        cdef PyObject* found
        if self._keys is None:
            raise TypeError("this EVM was never initialised")
        found = PyDict_GetItem(self._keys, address)
        if found == NULL:
            key = self._keys[address] = address_bytes(address)
            return key
        return <bytes>found

    def _touch(self, address: object) -> bytes:
        return self.key_of(address)

    def message_call(
        self, caller: object, to: object, calldata: object = None, value: object = None,
        gas: object = None, gas_price: object = None, is_static: object = False,
    ) -> bytes:
        """Calls ``to``, keeps the changes and returns the output. Raises RuntimeError on failure.

        Gas includes intrinsic gas, and the sender must be able to pay for it, but does not pay. The
        nonce does not change.
        """
        cdef SentMessage sent = self.read(caller, to, calldata, value, gas, gas_price)
        cdef bytes sender = self.key_of(caller), target = self.key_of(to)
        cdef Ended ended = self.send(sent, sender, target, is_static)
        if not ended.outcome.success:
            raise ended.failure()
        return ended.outcome.output

    def deploy(
        self, deployer: object, code: object, value: object = None, gas: object = None,
        gas_price: object = None, is_static: object = False, _abi: object = None,
    ) -> str:
        """Deploys a contract and returns its address. Raises RuntimeError on failure.

        Charges gas at ``gas_price`` and increments the nonce.
        """
        cdef SentMessage sent = self.read(deployer, None, code, value, gas, gas_price)
        cdef bytes sender = self.key_of(deployer)
        nonce = self._evm.nonce(sender)
        cdef Ended ended = self.send(sent, sender, None, False)
        if not ended.outcome.success:
            self._evm.set_nonce(sender, nonce + 1)
        self.pay(sender, ended)
        address = ended.outcome.created_address
        if address is None:
            raise ended.failure()
        return checksum_address(address).lower()

    cdef SentMessage read(
        self, object caller, object to, object data, object value, object gas, object price
    ):
        cdef SentMessage sent = SentMessage.__new__(SentMessage)
        sent.caller, sent.to = caller, to
        sent.data = payload(data)
        sent.value = 0 if value is None else unsigned(integer(value, "value"))
        sent.gas_price = 0 if price is None else unsigned(integer(price, "gas_price"))
        sent.gas_limit = self._gas_limit if gas is None else unsigned(integer(gas, "gas"), 64)
        return sent

    cdef Ended send(self, SentMessage sent, bytes sender, bytes to, bint static):
        """Checks and executes a message; ``to`` None creates a contract."""
        cdef Ended ended = Ended.__new__(Ended)
        self._last = None
        ended.rules, ended.sent = self._rules, sent
        ended.target, ended.schedule = to, self._evm.schedule
        if self._is_bare and to is not None and not self.tracing:
            ended.outcome = self.run_bare(sent, sender, to, static)
        else:
            ended.outcome = self.run(sent, sender, to, static)
        ended.opcode = self._evm.machine.halt_opcode
        self._last = ended
        self._has_run = True
        if self.tracing:
            self.summarise()
        return ended

    cdef ExecutionResult run_bare(self, SentMessage sent, bytes sender, bytes to, bint static):
        """Executes a call whose ``TxEnv`` is empty."""
        cdef Message message
        cdef TransactionContext terms
        self._rules.admit_bare(self._evm, sent, sender, self._gas_limit)
        memset(&message, 0, sizeof(Message))
        memset(&terms, 0, sizeof(TransactionContext))
        message.kind = CALL_MESSAGE
        message.is_static = static
        memcpy(message.sender.b, PyBytes_AS_STRING(sender), 20)
        memcpy(message.recipient.b, PyBytes_AS_STRING(to), 20)
        terms.origin = message.sender
        if sent.value:
            word_from_int(&message.value, sent.value)
        if sent.gas_price:
            word_from_int(&terms.gas_price, sent.gas_price)
        message.data = <const uint8_t*>PyBytes_AS_STRING(sent.data)
        message.size = PyBytes_GET_SIZE(sent.data)
        message.gas = frame_gas(sent)
        return self._evm.message(&message, &terms, sent.data, not static)

    cdef ExecutionResult run(self, SentMessage sent, bytes sender, bytes to, bint static):
        cdef tuple args
        self._rules.admit(self._evm, sent, sender, self._gas_limit, self._tx)
        options = self.options(sent, sender, static)
        if to is None:
            run, args = self._evm.create, (sent.data,)
        else:
            run, args = self._evm.call, (to, sent.data)
            options["static"] = static
        if not self.tracing:
            return run(*args, **options)
        observer = Eip3155Logger(sys.stdout, standard=True, return_data=True)
        try:
            return message_traced(self._evm, observer, run, *args, **options)
        finally:
            observer.flush()

    cdef dict options(self, SentMessage sent, bytes sender, bint static):
        """Returns the arguments of a message besides target and data."""
        options = {
            "sender": sender, "value": sent.value, "gas": frame_gas(sent),
            "gas_price": sent.gas_price, "commit": not static,
        }
        if self._tx.blob_hashes:
            options["blob_hashes"] = self._tx.blob_hashes
        if self._tx.access_list and self._rules.has_access_lists:
            listed = self._tx.access_list
            options["access_list"] = [(address_bytes(each), slots) for each, slots in listed]
        return options

    cdef int pay(self, bytes sender, Ended ended) except -1:
        if ended.sent.gas_price:
            evm, cost = self._evm, ended.sent.gas_price * ended.gas_used
            evm.set_balance(sender, evm.balance(sender) - cost)
            coinbase = evm.block.coinbase
            evm.set_balance(coinbase, evm.balance(coinbase) + cost)
        return 0

    cdef int summarise(self) except -1:
        summary = {
            "stateRoot": "0x" + "00" * 32,
            "output": "0x" + self._last.outcome.output.hex(),
            "gasUsed": hex(self._last.gas_used),
            "pass": self._last.outcome.success,
            "fork": self._rules.shown_name,
        }
        print(json.dumps(summary))
        return 0
