"""The exceptions of the library border: input that cannot be executed, or a broken host.

A revert or a halt inside the EVM is never an exception: it is a result.
"""

from pathlib import Path
from typing import Any


def error_text(error: BaseException) -> str:
    """Returns the message of an error for users; that of an OSError has no number.

    ``none.json: no such file or directory``, not ``[Errno 2] No such file ...: 'none.json'``. The
    name of its class for an error without a message.
    """
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    reason = f"{error.strerror[:1].lower()}{error.strerror[1:]}"
    return reason if error.filename is None else f"{error.filename}: {reason}"


def install_command(extra: str) -> str:
    """Returns the command that installs an extra; that of a clone is run in its folder."""
    if (Path(__file__).parents[1] / "pyproject.toml").is_file():  # beside no installed release
        # without the variable it would compile everything again
        return f'FASTEVM_ONLY=none pip install --editable ".[{extra}]"'
    return f'pip install "fastevm[{extra}]"'


FORK_TEXT = 600  # characters of the message of a `ForkError`


class FastevmError(Exception):
    """Base of everything that this library raises on purpose. All of them can be pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[FastevmError], args: tuple[Any, ...], members: dict[str, Any]) -> Any:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(members)
    return error


class InvalidTransaction(FastevmError):
    """A transaction that breaks a validity rule; nothing was changed.

    ``code`` is the rule's short name (``nonce_too_low`` ...), ``message`` the wording clients
    match on, ``have`` and ``want`` the two values that disagree, where the rule compares two.
    ``position``: in a simulated chain, the index of the block and of the call in the block.
    """

    position: tuple[int, int] | None = None

    def __init__(self, code: str, message: str, *, have: Any = None, want: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.have = have
        self.want = want


class TransactionDecodeError(FastevmError, ValueError):
    """Bytes that are no canonical transaction of any known type (EIP-2718, RLP)."""


class InvalidBlock(FastevmError):
    """A block that breaks a rule: which block and field, what was expected and what was found.

    ``text`` replaces the last two where a rule has words of its own.
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
    """A block that this chain does not hold: never seen, or on a branch that was dropped."""

    def __str__(self) -> str:
        return str(self.args[0])


class StateUnavailableError(FastevmError):
    """The block is known, but its state is no longer kept."""


class BlockUnavailableError(FastevmError):
    """The block is known, but the file that it lies in does not give it."""


class ForkError(FastevmError):
    """A value of a remote state cannot be had; the text names the endpoint, never its key.

    The text may quote the endpoint's answer, so a long one is cut.
    """

    def __init__(self, message: object = "") -> None:
        text = str(message)
        super().__init__(text if len(text) <= FORK_TEXT else text[:FORK_TEXT] + "...")


class StateNotKnown(FastevmError):
    """A remote state lacks a value: the thread does not wait, or it belongs to another block."""


class ExecutionFailed(FastevmError):
    """Raised by ``check`` of a result: a call reverted or halted. ``result``: the result."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


class Revert(FastevmError):
    """Raised by a precompile in Python: the call reverts with ``data``, ``gas_used`` is paid."""

    def __init__(self, data: bytes | str = b"", gas_used: int = 0) -> None:
        raw = bytes.fromhex(data.removeprefix("0x")) if isinstance(data, str) else bytes(data)
        super().__init__("0x" + raw.hex())
        self.data = raw
        self.gas_used = gas_used


class PrecompileFailed(FastevmError):
    """Raised by a precompile in Python: the call fails, and all its gas is gone."""


class UnknownForkError(FastevmError, ValueError):
    """A hardfork name that nobody knows; the message suggests the nearest one."""


class ResourceLimitError(FastevmError):
    """A named limit (time, memory, queue, size) was reached; ``limit`` is its name."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(message)
        self.limit = limit


def _shown(value: Any) -> str:
    return "0x" + value.hex() if isinstance(value, bytes | bytearray) else str(value)
