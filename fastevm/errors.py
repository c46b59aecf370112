"""The public exceptions: input that cannot be executed, and failures of files or endpoints.

A revert or a halt inside the EVM is part of the result. Only the method ``check`` of a result
raises it as an exception.
"""

from pathlib import Path
from typing import Any

from fastevm.core.primitives.safe_text import UNSAFE_IN_LINES


def error_text(error: BaseException) -> str:
    """Returns the message of an error for users, without the number of an OSError.

    For example, ``none.json: no such file or directory`` instead of ``[Errno 2] No such file ...:
    'none.json'``. Returns the class name of an error without a message. Escapes terminal control
    characters, which names of files may contain.
    """
    if not isinstance(error, OSError) or not error.strerror:
        text = str(error) or type(error).__name__
    else:
        text = f"{error.strerror[:1].lower()}{error.strerror[1:]}"
        if error.filename is not None:
            text = f"{error.filename}: {text}"
    return text.translate(UNSAFE_IN_LINES)


def install_command(extra: str) -> str:
    """Returns the command that installs an extra.

    In a clone, run the command in the clone's folder.
    """
    if (Path(__file__).parents[1] / "pyproject.toml").is_file():  # only a clone has it
        # without FASTEVM_ONLY pip would compile all modules again
        return f'FASTEVM_ONLY=none pip install --editable ".[{extra}]"'
    return f'pip install "fastevm[{extra}]"'


FORK_TEXT = 600  # characters of the message of a `ForkError`


class FastevmError(Exception):
    """Base class of all exceptions that this library raises on purpose. All can be pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[FastevmError], args: tuple[Any, ...], members: dict[str, Any]) -> Any:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(members)
    return error


class InvalidTransaction(FastevmError):
    """A transaction breaks a validity rule. Nothing was changed.

    ``code``: short name of the rule (``nonce_too_low`` ...). ``message``: a text that clients
    match. ``have`` and ``want``: the two values, if the rule compares two. ``position``: in a
    simulated chain, the index of the block and of the call in the block.
    """

    position: tuple[int, int] | None = None

    def __init__(self, code: str, message: str, *, have: Any = None, want: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.have = have
        self.want = want


class TransactionDecodeError(FastevmError, ValueError):
    """The bytes are not a canonical transaction of a known type (EIP-2718, RLP)."""


class InvalidBlock(FastevmError):
    """A block breaks a rule. Has the block number, the field, the expected and the found value.

    ``text`` replaces the two values in the message.
    """

    def __init__(
        self,
        number: int | None,
        field: str,
        *,
        expected: Any = None,
        found: Any = None,
        text: str | None = None,
    ) -> None:
        where = "block" if number is None else f"block {number}"
        rule = f"expected {_shown(expected)}, found {_shown(found)}" if text is None else text
        super().__init__(f"{where}: {field}: {rule}")
        self.number = number
        self.field = field
        self.expected = expected
        self.found = found


class UnknownBlockError(FastevmError, KeyError):
    """The chain does not have this block: it was never received, or its branch was removed."""

    def __str__(self) -> str:
        return str(self.args[0])


class StateUnavailableError(FastevmError):
    """The block is known, but its state is no longer kept."""


class BlockUnavailableError(FastevmError):
    """The block is known, but the file of old blocks does not contain it or cannot be read."""


class ExecutionOutOfMemory(MemoryError):
    """An execution needs more memory than the machine has. Nothing was changed."""


class ForkError(FastevmError):
    """A value of a remote state cannot be fetched. The message names the endpoint without its key.

    The message may quote the endpoint's answer and is cut after ``FORK_TEXT`` characters.
    """

    def __init__(self, message: object = "") -> None:
        text = str(message)
        super().__init__(text if len(text) <= FORK_TEXT else text[:FORK_TEXT] + "...")


class StateNotKnown(FastevmError):
    """A remote state lacks a value and this thread must not wait, or the value is of another
    block.
    """


class ExecutionFailed(FastevmError):
    """A call reverted or halted. ``check`` of a result raises this error.

    ``result``: the result.
    """

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


class Revert(FastevmError):
    """A precompile in Python raises this to revert the call with ``data``. ``gas_used`` is paid."""

    def __init__(self, data: bytes | str = b"", gas_used: int = 0) -> None:
        raw = bytes.fromhex(data.removeprefix("0x")) if isinstance(data, str) else bytes(data)
        super().__init__("0x" + raw.hex())
        self.data = raw
        self.gas_used = gas_used


class PrecompileFailed(FastevmError):
    """A precompile in Python raises this to make the call fail and consume all its gas."""


class UnknownForkError(FastevmError, ValueError):
    """An unknown hardfork name; the message suggests the nearest name."""


class ResourceLimitError(FastevmError):
    """A named limit (time, memory, queue, size) was reached; ``limit`` is its name."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(message)
        self.limit = limit


def _shown(value: Any) -> str:
    return "0x" + value.hex() if isinstance(value, bytes | bytearray) else str(value)
