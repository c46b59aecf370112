"""The state, block, switches and snapshots of an ``EVM``."""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from fastevm.core.primitives.located import shown

from fastevm.evm.hook_calls cimport HostPrecompiles, Watch
from fastevm.core.execution.block.block_context cimport context_put, environment_value
from fastevm.core.execution.transaction.arguments cimport (
    ancestor_hashes, integer, unknown_name,
)
from fastevm.core.execution.transaction.message_setup cimport MessageSetup
from fastevm.core.interpreter.machine cimport BlockContext, machine_free, machine_new
from fastevm.core.primitives.bytes_like cimport bytes_like, parse_address, slot_number
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.spec.schedule cimport ForkSchedule
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.world cimport world_free, world_new

from collections.abc import Mapping
from copyreg import __newobj__
from importlib import import_module

from fastevm.evm.hook_calls import Precompiles, callables_of, packed
from fastevm.evm.snapshot import Remembered, Snapshot
from fastevm.evm.switches import checked_names, limited_code
from fastevm.core.execution.types import BlockEnvironment
from fastevm.core.spec.schedule import schedule_for


ANCESTOR_LIMIT = 256
# Imported when the first hook is set.
HOOKS = "fastevm.tracing.hook_observer"
IN_USE = "this EVM is running code; give each thread an EVM of its own"
ENVIRONMENT = (*BlockEnvironment.__struct_fields__, "block_hashes")

cdef frozenset NOTHING_SKIPPED = frozenset()
cdef Layer EMPTY = Layer.empty()
cdef ForkSchedule DEFAULT_SCHEDULE = schedule_for("osaka")


cdef class EvmBase:
    """The part of ``EVM`` that does not execute code."""

    def __cinit__(self) -> None:
        self.world = world_new()
        self.machine = machine_new()
        self.ancestors = <Hash*>PyMem_RawCalloc(ANCESTOR_LIMIT, sizeof(Hash))
        if self.world == NULL or self.machine == NULL or self.ancestors == NULL:
            raise MemoryError
        self.context.ancestors = self.ancestors
        self.layer = EMPTY
        self.schedule = self.fork_schedule = DEFAULT_SCHEDULE
        self.skipped = NOTHING_SKIPPED
        self.layers = []
        self.snapshot_count = 0

    def __dealloc__(self) -> None:
        machine_free(self.machine)
        world_free(self.world)
        PyMem_RawFree(self.ancestors)

    cdef int check_idle(self) except -1:
        """Raises RuntimeError while code is executing, because nothing may change during it."""
        if self.running:
            self.check_readable()
            raise RuntimeError(IN_USE)
        return 0

    cdef int check_readable(self) except -1:
        """Raises RuntimeError inside a precompile or hook: `layer` is not the current state."""
        if self.is_calling:
            raise RuntimeError(
                "the EVM is running: a precompile or a hook in Python can neither read nor use it"
            )
        return 0

    @property
    def precompiles(self) -> Precompiles:
        """A mutable mapping of precompiles implemented in Python, by address."""
        if self.host is None:
            self.put_precompiles(packed({}))
        return Precompiles(self.host, self.assert_idle)

    def assert_idle(self) -> None:
        """Raises RuntimeError while code is executing."""
        self.check_idle()

    cdef int put_precompiles(self, HostPrecompiles host) except -1:
        self.check_idle()
        self.host = host
        return 0

    cdef int set_schedule(self, ForkSchedule schedule) except -1:
        self.check_idle()
        self.schedule = self.fork_schedule = schedule
        return 0

    @property
    def hooks(self) -> object:
        """The hooks that executions call: a ``Hooks`` or None."""
        return self.hooks_set

    @hooks.setter
    def hooks(self, hooks: object) -> None:
        cdef Watch watch = None if hooks is None else import_module(HOOKS).watch_of(hooks)
        self.check_idle()
        self.watch, self.hooks_set = watch, hooks

    @property
    def unchecked(self) -> frozenset[str]:
        """The names of the rules that are not checked; see `UNCHECKED`."""
        return self.skipped

    @unchecked.setter
    def unchecked(self, names: object) -> None:
        cdef frozenset found = NOTHING_SKIPPED if names == () else checked_names(names)
        self.check_idle()
        self.skipped = found
        self.options.skip_nonce = "nonce" in found
        self.options.skip_sender_code_check = "sender_code" in found
        self.options.skip_gas_cap = "gas_cap" in found
        self.options.skip_block_gas = "block_gas_limit" in found
        self.options.skip_balance = "balance" in found
        self.options.fees_optional = "base_fee" in found
        self.limit_code()

    @property
    def code_size_limit(self) -> int | None:
        """Code size limit in bytes; init code may have twice the size. 0: no limit; None: the
        limit of the fork.
        """
        return self.size_limit

    @code_size_limit.setter
    def code_size_limit(self, limit: object) -> None:
        found = None if limit is None else integer(limit, "code_size_limit")
        self.check_idle()
        before, self.size_limit = self.size_limit, found
        try:
            self.limit_code()
        except BaseException:
            self.size_limit = before
            raise

    cdef int limit_code(self) except -1:
        cdef ForkSchedule found = self.fork_schedule
        limit = 0 if "code_size" in self.skipped else self.size_limit
        if limit is not None:
            found = limited_code(found, limit)
        self.check_idle()
        self.schedule = found
        return 0

    @property
    def state(self) -> Layer:
        """The state that code reads and transactions change; may be set to any ``Layer``."""
        self.check_readable()
        return self.layer

    @state.setter
    def state(self, layer: Layer) -> None:
        if not isinstance(layer, Layer):
            raise TypeError(f"a state is a Layer, not {type(layer).__name__}")
        self.check_idle()
        self.layer = layer

    @state.deleter
    def state(self) -> None:
        raise AttributeError("an EVM always has a state")

    @property
    def snapshots(self) -> tuple[Layer, ...]:
        """The states of the existing snapshots, oldest first."""
        return tuple([found.state for found in self.layers])

    @property
    def snapshot_numbers(self) -> tuple[int, ...]:
        """The numbers of the existing snapshots, oldest first."""
        return tuple([found.number for found in self.layers])

    def set_block(self, **fields: object) -> None:
        """Changes fields of the block environment; other fields keep their values.

        The names are those of `BlockEnvironment`. ``coinbase``: an address. ``difficulty``,
        ``prev_randao`` and fees (wei) are below 2**256. All other fields, such as ``timestamp``
        (seconds), are below 2**64. ``block_hashes``: up to 256 hashes of the preceding blocks,
        parent first. Raises TypeError for an unknown name. An error changes nothing.
        """
        cdef BlockContext block = self.context
        cdef list hashes = ancestor_hashes(fields.get("block_hashes", ()))
        for name, value in fields.items():
            if name != "block_hashes" and not context_put(&block, name, value):
                raise unknown_name("the block environment", name, ENVIRONMENT)
        self.check_idle()
        if "block_hashes" in fields:
            self.put_ancestors(hashes)
            block.ancestor_count = <uint32_t>len(hashes)
        self.context = block

    cdef int put_ancestors(self, list hashes) except -1:
        for i, item in enumerate(hashes):
            memcpy(self.ancestors[<size_t>i].b, PyBytes_AS_STRING(item), 32)
        return 0

    @property
    def block(self) -> object:
        """The block environment that code sees; ``set_block`` changes it."""
        return environment_value(&self.context)

    @property
    def block_hashes(self) -> tuple[bytes, ...]:
        """The hashes of preceding blocks that ``set_block`` has set, parent first."""
        return tuple([self.ancestors[i].b[:32] for i in range(self.context.ancestor_count)])

    @property
    def chain_id(self) -> int:
        """The chain id that CHAINID returns and signatures must contain."""
        return self.context.chain_id

    # --- state ---

    def set_account(
        self,
        address: bytes | str,
        balance: object = 0,
        nonce: object = 0,
        code: bytes | str = b"",
        storage: Mapping[int, int] | None = None,
    ) -> None:
        """Replaces the account at the address, including its storage."""
        self.change(address, {
            "balance": integer(balance, "balance"), "nonce": integer(nonce, "nonce"),
            "code": bytes_like(code, "code"), "storage": storage or {}, "reset": True,
        })

    def set_balance(self, address: bytes | str, balance: object) -> None:
        """Sets the balance of an account in wei."""
        self.change(address, {"balance": integer(balance, "balance")})

    def set_nonce(self, address: bytes | str, nonce: object) -> None:
        """Sets the nonce of an account."""
        self.change(address, {"nonce": integer(nonce, "nonce")})

    def set_code(self, address: bytes | str, code: bytes | str) -> None:
        """Sets the code of an account."""
        self.change(address, {"code": bytes_like(code, "code")})

    def set_storage(self, address: bytes | str, slot: object, value: object) -> None:
        """Sets a storage slot of an account."""
        self.change(address, {"storage": {slot_number(slot, "slot"): slot_number(value, "value")}})

    cdef int change(self, object address, dict fields) except -1:
        """Replaces fields of an account."""
        cdef Address key
        parse_address(address, &key, "address")
        self.state = self.layer.with_accounts({key.b[:20]: fields})
        return 0

    def balance(self, address: bytes | str) -> int:
        """Returns the balance in wei; 0 if the account does not exist."""
        cdef Address key
        parse_address(address, &key, "address")
        self.check_readable()
        return self.layer.balance(key.b[:20])

    def nonce(self, address: bytes | str) -> int:
        """Returns the nonce; 0 if the account does not exist."""
        cdef Address key
        parse_address(address, &key, "address")
        self.check_readable()
        return self.layer.nonce(key.b[:20])

    def code(self, address: bytes | str) -> bytes:
        """Returns the code; empty if there is none."""
        cdef Address key
        parse_address(address, &key, "address")
        self.check_readable()
        return self.layer.code(key.b[:20])

    def storage(self, address: bytes | str, slot: object) -> int:
        """Returns the value of a storage slot; 0 if nothing was stored."""
        cdef Address key
        parse_address(address, &key, "address")
        self.check_readable()
        return self.layer.storage(key.b[:20], slot_number(slot, "slot"))

    def snapshot(self) -> Snapshot:
        """Takes a snapshot of state and block, without a copy. ``revert`` or ``with`` restore it.
        """
        self.check_idle()
        number = self.snapshot_count
        self.snapshot_count = number + 1
        self.layers.append(Remembered(number, self.layer, self.block, self.block_hashes))
        return Snapshot(number, self)

    def revert(self, snapshot: object) -> None:
        """Restores the state and block of a snapshot. Deletes it and all later snapshots.

        Raises ValueError if the snapshot does not exist any more.
        """
        wanted = integer(snapshot, "a snapshot")
        numbers = self.snapshot_numbers
        if wanted not in numbers:
            raise ValueError(f"there is no snapshot {shown(wanted)}")
        at = numbers.index(wanted)
        found = self.layers[at]
        self.state = found.state
        self.restore_block(found.block, found.block_hashes)
        del self.layers[at:]

    cdef int restore_block(self, object block, object hashes) except -1:
        fields = {name: getattr(block, name) for name in ENVIRONMENT if name != "block_hashes"}
        self.set_block(block_hashes=hashes, **fields)
        return 0

    def __reduce__(self) -> object:
        self.check_idle()
        state = (
            self.fork_schedule, self.layer, self.block, self.block_hashes, list(self.layers),
            self.snapshot_count, getattr(self, "__dict__", None), self.transient_storage,
            self.skipped, self.size_limit, callables_of(self.host),
            self.hooks_set,
        )
        return __newobj__, (type(self),), state

    def __setstate__(self, state: tuple[object, ...]) -> None:
        if len(state) != 12 or not isinstance(state[0], ForkSchedule):
            raise TypeError("this is not a pickled EVM")
        schedule, layer, block, hashes, layers, count, attributes, transient = state[:8]
        self.state = layer
        self.restore_block(block, hashes)
        self.set_schedule(schedule)
        self.unchecked, self.code_size_limit = state[8], state[9]
        self.put_precompiles(packed(state[10]))
        self.hooks = state[11]
        self.layers, self.snapshot_count = list(layers), count
        self.transient_storage = transient
        if attributes:
            self.__dict__.update(attributes)

    def __repr__(self) -> str:
        cdef object count = self.layer.account_count
        accounts = "1 account" if count == 1 else f"{count} accounts"
        block = f"chain {self.context.chain_id}, block {self.context.number}"
        remote = "" if self.layer.remote_state is None else " here, above a remote state"
        return f"<{type(self).__name__} {self.schedule.name}, {block}, {accounts}{remote}>"

    def _repr_html_(self) -> str:
        """Returns an HTML table for notebooks: fork, block and accounts."""
        table = import_module("fastevm.evm.html_table").html_table
        rows = [("fork", self.schedule.name)]
        names = [name for name in ENVIRONMENT if name != "block_hashes"]
        rows += [(name, getattr(self.block, name)) for name in names]
        rows.append(("accounts", self.layer.account_count))
        rows.append(("snapshots", len(self.layers)))
        return table(type(self).__name__, (), rows)

    @property
    def transient_storage(self) -> dict[tuple[bytes, int], int] | None:
        """Transient storage kept from message to message, by (address, slot); None: not kept."""
        return None if self.setup is None else dict(self.setup.transient)

    @transient_storage.setter
    def transient_storage(self, values: Mapping[tuple[bytes, int], int] | None) -> None:
        self.check_idle()
        self.setup = None if values is None else MessageSetup(values)
