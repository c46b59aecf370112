"""A complete node inside this process, with the ordinary dispatcher and without a socket."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from importlib import import_module
from types import TracebackType
from typing import Any, Final, NoReturn, Self

import msgspec

from fastevm.core.primitives.deep_json import decode_json
from fastevm.core.primitives.hex import checksum_address, hex_bytes
from fastevm.errors import FastevmError
from fastevm.integrations.local_channel import LocalChannel
from fastevm.rpc.command import dialect_of, server_of
from fastevm.rpc.dev.state_file import StateFile
from fastevm.rpc.dispatch.dispatcher import Dispatcher
from fastevm.rpc.dispatch.long_answer import LongAnswer
from fastevm.rpc.transport.access import DEFAULT_ACCESS
from fastevm.rpc.transport.client_session import Session
from fastevm.rpc.transport.server import (
    DEFAULT_HOST,
    Listener,
    Server,
    client_version,
    loop_factory,
)

COMMANDS: Final = {"dev": "fastevm.rpc.dev.command", "node": "fastevm.rpc.command"}
CLIENT: Final = "in-process"
STOP_SECONDS: Final = 10.0
# seconds; includes the requests of a fork and reading a data directory
START_SECONDS: Final = 600.0


class NodeError(FastevmError):
    """A JSON-RPC error answer, with its ``code``, ``message`` and ``data``."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code, self.message, self.data = code, message, data


class NodeAccount(str):
    """A funded account of a node: its checksummed address, and its ``key`` as hex text."""

    __slots__ = ("key",)
    key: str

    @classmethod
    def of(cls, address: bytes, key: bytes) -> NodeAccount:
        """Returns the account with this address and private key."""
        account = cls(checksum_address(address))
        account.key = hex_bytes(key)
        return account


def json_value(value: Any) -> Any:
    """Converts a value for JSON: bytes to hex, subclasses of str and mappings to base types."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return hex_bytes(bytes(value))
    if isinstance(value, Mapping):
        return {str(name): json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    return value


class _Usage(argparse.ArgumentParser):
    """A parser that raises an exception instead of exiting."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message.replace("argument --", "option "))


def words_of(options: dict[str, Any]) -> list[str]:
    """Converts keyword options to arguments: ``block_time=2`` to ``--block-time=2``."""
    words = []
    for name, value in options.items():
        word = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        for each in value if isinstance(value, (list, tuple)) else (value,):
            words.append(word if each is True else f"{word}={each}")
    return words


def parsed(command: str, options: dict[str, Any]) -> argparse.Namespace:
    """Parses the options of a command. Raises ValueError for unknown options and invalid values."""
    module = COMMANDS.get(command)
    if module is None:
        raise ValueError(f"unknown command {command!r}: expected one of {', '.join(COMMANDS)}")
    parser = _Usage(prog=f"fastevm {command}", allow_abbrev=False, exit_on_error=False)
    import_module(module).add_arguments(parser)
    try:
        arguments, rest = parser.parse_known_args(words_of(options))
    except argparse.ArgumentError as error:
        raise ValueError(str(error).replace("argument --", "option ")) from None
    if rest:
        raise ValueError(f"unknown option {rest[0].lstrip('-').partition('=')[0]!r}")
    return arguments


class LocalNode:
    """A node that answers JSON-RPC requests of this process.

    ``command``: ``dev`` mines a block for each transaction, like anvil; ``node`` produces slices
    every 200 ms. The other options are those of the command line, with ``_`` for ``-``:
    ``LocalNode(chain_id=1, block_time=2)``, ``LocalNode("node", slice_interval="100ms")``,
    ``LocalNode(fork_url="https://...")``. Raises ValueError for invalid options.

    The node runs on its own thread until ``stop``, the end of a ``with`` block, or garbage
    collection of the object. Any thread may send requests.
    """

    def __init__(self, command: str = "dev", **options: Any) -> None:
        arguments = parsed(command, options)
        self.command = command
        self._thread = _NodeThread(arguments, command)
        self._ids = itertools.count(1)
        self._pid = os.getpid()
        self.observer: Callable[[bytes], None] | None = None  # receives every request body
        self._finalizer = weakref.finalize(self, self._thread.stop)
        self._thread.begin()

    def __repr__(self) -> str:
        return f"<LocalNode {self.command} chain {self.chain_id}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stops the node. Later requests raise ConnectionError. Further calls have no effect."""
        self._finalizer()

    @property
    def accounts(self) -> list[NodeAccount]:
        """The funded accounts, whose keys the node has."""
        accounts = self._thread.node.accounts
        return [NodeAccount.of(each.address, each.private_key) for each in accounts]

    @property
    def chain_id(self) -> int:
        """The chain id."""
        return int(self._thread.node.config.chain_id)

    def state_mark(self) -> tuple[bytes, int]:
        """Returns the newest block hash and the number of direct changes of the state."""
        chain = self._thread.node.chain
        return chain.head.hash, chain.amendments

    def listen(self, port: int = 0, host: str = DEFAULT_HOST) -> str:
        """Starts an HTTP and WebSocket server for other processes and returns its URL.

        If ``port`` is 0, the system chooses a port. Raises OSError if the port is in use.
        """
        thread = self._reached()
        listener = Listener(thread.dialect, host, port)
        return asyncio.run_coroutine_threadsafe(
            thread.server.listen(listener), thread.loop
        ).result()

    # --- requests ---

    def request(self, method: str, params: Sequence[Any] = ()) -> Any:
        """Calls a method and returns its result. Raises NodeError for an error answer.

        Bytes in ``params`` are converted to hex.
        """
        return self._result(self.exchange(self._body(method, params)))

    def unobserved(self, method: str, params: Sequence[Any] = ()) -> Any:
        """Works like `request`, but does not call the ``observer``."""
        return self._result(self._begin(self._body(method, params)).result())

    def _body(self, method: str, params: Sequence[Any]) -> bytes:
        call = {"jsonrpc": "2.0", "id": next(self._ids), "method": method}
        return msgspec.json.encode(call | {"params": json_value(params)})

    def _result(self, answer: bytes) -> Any:
        found = decode_json(answer)
        error = found.get("error")
        if error is not None:
            raise NodeError(error["code"], error["message"], error.get("data"))
        return found["result"]

    def exchange(self, body: bytes) -> bytes:
        """Returns the answer to a request body (or batch), as to an HTTP POST."""
        return self.begin_exchange(body).result()

    def begin_exchange(self, body: bytes) -> Future[bytes]:
        """Starts answering a request body. The future may be awaited on any event loop."""
        if self.observer is not None:
            self.observer(body)
        return self._begin(body)

    def _begin(self, body: bytes) -> Future[bytes]:
        thread = self._reached()
        answer: Future[bytes] = Future()
        thread.call(thread.respond, body, answer)
        return answer

    def open_channel(self, loop: asyncio.AbstractEventLoop) -> LocalChannel:
        """Opens a channel, the in-process equivalent of a WebSocket with subscriptions."""
        thread = self._reached()
        channel = LocalChannel(thread.loop, loop)
        thread.call(thread.converse, channel)
        return channel

    def _reached(self) -> _NodeThread:
        if self._pid != os.getpid():
            raise ConnectionError("the node runs in the parent process")
        if not self._finalizer.alive:
            raise ConnectionError("the node has stopped")
        return self._thread


class _NodeThread:
    """The event loop of a node.

    It has no reference to the `LocalNode`, so that the `LocalNode` can be garbage-collected.
    """

    def __init__(self, arguments: argparse.Namespace, command: str) -> None:
        self.arguments = arguments
        module = import_module(COMMANDS[command])
        self.node: Any = module.node_of(arguments)
        self.node.producer.collects_garbage = False  # the program controls garbage collection
        self.dialect = dialect_of(arguments)
        client = None
        if command == "dev":
            raising = arguments.throw_on_transaction_failures
            self.dialect = self.dialect.of_development(failed_send_is_error=raising)
            client = f"{module.COMPATIBLE} ({client_version()})"
        self.server: Server = server_of(self.node, arguments, DEFAULT_ACCESS, client)
        self.server.listeners, self.server.ipc = (), None
        self.server.metrics_listener = self.server.terminal = None
        self.state_file = StateFile(self.node, arguments) if command == "dev" else None
        self.loop: asyncio.AbstractEventLoop
        self.dispatcher: Dispatcher
        self._ended: asyncio.Event
        self._begun: Future[None] = Future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="fastevm-node", daemon=True)

    def begin(self) -> None:
        """Starts the node and waits until it is ready. Raises errors of the start."""
        if self.state_file is not None:
            self.state_file.__enter__()
        self._thread.start()
        self._begun.result(START_SECONDS)

    def stop(self) -> None:
        """Stops the node and its thread."""
        if self._thread.ident is None or not self._thread.is_alive():
            return
        self.loop.call_soon_threadsafe(self._ended.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(STOP_SECONDS)
        if self.state_file is not None:
            self.state_file.__exit__(None, None, None)

    def call(self, function: Any, *values: Any) -> None:
        """Calls a function on the loop. Raises ConnectionError after the end of the loop."""
        try:
            self.loop.call_soon_threadsafe(function, *values)
        except RuntimeError:
            raise ConnectionError("the node has stopped") from None

    def respond(self, body: bytes, answer: Future[bytes]) -> None:
        """Answers a request body. Runs on the loop."""
        try:
            found = self.dispatcher.respond(body, CLIENT)
        except Exception as error:
            answer.set_exception(error)
            return
        if isinstance(found, bytes):
            answer.set_result(found)
        else:
            self._begin(self._await(found, answer))

    def converse(self, channel: LocalChannel) -> None:
        """Serves a channel until it is closed. Runs on the loop."""
        self._begin(self._converse(channel))

    def _begin(self, work: Any) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _await(self, found: Any, answer: Future[bytes]) -> None:
        try:
            text = await found
            if isinstance(text, LongAnswer):
                text = await asyncio.to_thread(text.read)
            answer.set_result(text)
        except asyncio.CancelledError:
            answer.set_exception(ConnectionError("the node has stopped"))
        except Exception as error:
            answer.set_exception(error)

    async def _converse(self, channel: LocalChannel) -> None:
        context = self.dispatcher.context
        share = self.server.turns.share_of(CLIENT)
        try:
            await Session(self.dispatcher, context.hub, channel, CLIENT, share).run()
        finally:
            channel.end()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            self.loop = runner.get_loop()
            try:
                runner.run(self._main())
            except BaseException as error:
                if not self._begun.done():
                    self._begun.set_exception(error)
                    return
                raise

    async def _main(self) -> None:
        self._ended = asyncio.Event()
        await self.server.start()
        try:
            self.dispatcher = self.server.dispatcher(self.dialect)
            self._begun.set_result(None)
            await self._ended.wait()
        finally:
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            try:
                await self.server.stop()
            except RuntimeError:
                if threading.main_thread().is_alive():
                    raise  # at interpreter shutdown, no thread waits for the answer any more
