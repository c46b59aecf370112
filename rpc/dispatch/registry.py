"""The table of methods. A decorator registers a handler, its parameters and its `RunOn`."""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from fastevm.node import Node
from fastevm.rpc.dialect import Dialect
from fastevm.rpc.dispatch.lenient_numbers import decoded
from fastevm.rpc.errors import RpcError
from fastevm.rpc_types.quantity import DecodeError
from fastevm.rpc_types.state_reads import Read

Handler = TypeVar("Handler", bound=Callable[..., Any])


class RunOn(Enum):
    """Where a handler runs.

    LOOP: on the event loop (microseconds of work). LIGHT: on the loop; the handler executes EVM
    code, is stopped after about a millisecond and then runs again in a worker thread. WORKER: in a
    worker thread. SMALL: on the loop; a handler with too much work calls `workers.require_worker`
    and then runs again in a worker. TASK: a coroutine, on the loop. SOCKET: on the loop, with the
    client's `SocketRequest` as second argument; refused over HTTP.
    """

    LOOP = 0
    WORKER = 1
    TASK = 2
    SOCKET = 3
    LIGHT = 4
    SMALL = 5


class Needs(Enum):
    """The part of the node that a method needs.

    CONTROLS: the development controls; without them the method does not exist. OWN_BLOCKS: also the
    development controls, but the error says why the method is refused.
    """

    NOTHING = 0
    CONTROLS = 1
    OWN_BLOCKS = 2


class Param(Struct, frozen=True):
    """A positional parameter with its decoder and its default.

    ``default_in`` returns the default if it depends on the dialect. ``strict`` replaces the decoder
    in dialects that refuse unknown members of overrides.
    """

    decode: Callable[[Any], Any]
    optional: bool = False
    default: Any = None
    required_by_interface: bool = False
    default_in: Callable[[Dialect], Any] | None = None
    strict: Callable[[Any], Any] | None = None

    def may_miss(self, dialect: Dialect) -> bool:
        """Return whether the parameter is optional in ``dialect``."""
        if self.required_by_interface:
            return not dialect.block_parameter_required
        return self.optional

    def missing(self, dialect: Dialect) -> Any:
        """Return the default of the parameter in ``dialect``."""
        return self.default if self.default_in is None else self.default_in(dialect)


class Method(Struct, frozen=True):
    """A JSON-RPC method: ``handler(context, *decoded)`` returns a JSON value, or JSON as bytes.

    ``direct(context, params, head)`` takes the params as JSON text and the head of the answer (see
    `envelope.head_of`). It returns the whole answer as JSON text, or None to call the handler.
    ``reads``: `StateReads` answers requests of the usual form without the handler.
    ``prepare_many(context, params_list)`` does the work that coalesced calls share. ``needs`` is
    the part of the node without which the method is refused.
    """

    name: str
    handler: Callable[..., Any]
    params: tuple[Param, ...]
    run_on: RunOn
    direct: Callable[[Any, bytes, bytes], bytes | None] | None = None
    reads: Read | None = None
    prepare_many: Callable[[Any, list[list[Any]]], None] | None = None
    needs: Needs = Needs.NOTHING
    decoders: tuple[Callable[[Any], Any], ...] = ()
    strict_decoders: tuple[Callable[[Any], Any], ...] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "decoders", tuple(param.decode for param in self.params))
        strict = tuple(param.strict or param.decode for param in self.params)
        force_setattr(self, "strict_decoders", strict)

    def check_needs(self, node: Node) -> None:
        """Raise RpcError if the node lacks the part that the method needs."""
        if node.development.is_present:
            return
        if self.needs is Needs.CONTROLS:
            raise RpcError("method_not_found", method=self.name)
        raise RpcError("server_error", "this node does not build its own blocks")

    @property
    def is_long_running(self) -> bool:
        """Return whether the method runs as a long job."""
        return getattr(self.handler, "long_running", False)

    def bind(self, values: list[Any], dialect: Dialect) -> list[Any]:
        """Decode positional ``values``; raises RpcError for missing, invalid and extra values."""
        decoders = self.strict_decoders if dialect.refuses_unknown_overrides else self.decoders
        if len(values) == len(decoders) and None not in values:
            try:
                return [decode(value) for decode, value in zip(decoders, values, strict=True)]
            except DecodeError:
                pass  # decode one by one to find the invalid parameter
        return self._bind_each(values, decoders, dialect)

    def _bind_each(
        self, values: list[Any], decoders: tuple[Callable[[Any], Any], ...], dialect: Dialect
    ) -> list[Any]:
        bound = []
        given, position = len(values), 0
        for param, decode in zip(self.params, decoders, strict=True):
            value = values[position] if position < given else None
            if value is not None:
                try:
                    bound.append(decoded(decode, value, dialect))
                except DecodeError as fault:
                    raise RpcError("invalid_argument", position=position, fault=fault) from None
            elif param.may_miss(dialect):
                bound.append(param.missing(dialect))
            else:
                raise RpcError("missing_argument", position=position)
            position += 1
        if given > position:
            raise RpcError("too_many_arguments", limit=position)
        return bound


METHODS: Final[dict[str, Method]] = {}

# Methods whose namespace differs from their prefix. Methods that sign with keys of the node are in
# geth's namespace ``personal``. The method that sends an unsigned transaction is in ``anvil``.
# base_transactionStatus is in ``eth``, so that everybody who may send a transaction may request its
# status.
NAMESPACES: Final = {
    "eth_accounts": "personal",
    "eth_requestAccounts": "personal",
    "eth_sendTransaction": "personal",
    "eth_sendTransactionSync": "personal",
    "eth_sendUnsignedTransaction": "anvil",
    "eth_sign": "personal",
    "eth_signTransaction": "personal",
    "eth_signTypedData": "personal",
    "eth_signTypedData_v3": "personal",
    "eth_signTypedData_v4": "personal",
    "base_transactionStatus": "eth",
}


def namespace_of(name: str) -> str:
    """Return the namespace that contains the method ``name``."""
    return NAMESPACES.get(name) or name.partition("_")[0]


def method(
    name: str,
    *params: Param,
    run_on: RunOn = RunOn.LOOP,
    direct: Callable[[Any, bytes, bytes], bytes | None] | None = None,
    reads: Read | None = None,
    prepare_many: Callable[[Any, list[list[Any]]], None] | None = None,
    needs: Needs = Needs.NOTHING,
) -> Callable[[Handler], Handler]:
    """Register the decorated function as the handler of ``name``; see `Method`."""

    def register(handler: Handler) -> Handler:
        if name in METHODS:
            raise ValueError(f"method {name} is registered twice")
        METHODS[name] = Method(name, handler, params, run_on, direct, reads, prepare_many, needs)
        return handler

    return register
