"""Builds and executes blocks: runs the transactions and the system calls of a block in one world.
"""

import os

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.errors import FastevmError, InvalidBlock, InvalidTransaction, StateNotKnown
from fastevm.core.execution.block.block_access_list import fetch_listed
from fastevm.core.execution.block.fees import blob_base_fee
from fastevm.core.execution.block.header_draft import sealed_header
from fastevm.core.execution.op_stack.post_exec import post_exec_refunds
from fastevm.core.execution.op_stack.predeploys import message_passer_root
from fastevm.core.execution.block.requests import requests_hash
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.pow.rewards import block_rewards, withdrawal_credits
from fastevm.core.execution.transaction.senders import recover_senders
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.execution.block.validation import withdrawals_root
from fastevm.core.state.remote import resolved
from fastevm.core.execution.types import ZERO_HASH, Block

from fastevm.core.execution.block.block_context cimport context_of_arbos, fill_context
from fastevm.core.execution.block.block_end cimport RECEIPTS_OF_AN_END, block_end
from fastevm.core.execution.block.block_executor cimport (
    Credit,
    executor_encode_receipt,
    executor_encode_receipts,
    executor_has_gas,
    executor_leave,
    executor_open,
    executor_pay,
    executor_start,
    executor_take,
    executor_transact,
    executor_transact_from,
)
from fastevm.core.execution.parallel.bal_executor cimport take_bal_executor
from fastevm.core.execution.block.packed_receipts cimport packed_receipts
from fastevm.core.execution.parallel.parallel cimport ParallelRun, keep_run, pays, take
from fastevm.core.execution.block.receipts cimport (
    ReceiptRecord,
    receipt_value,
    receipts_bloom,
    receipts_root,
)
from fastevm.core.execution.transaction.refusals cimport not_known, raise_host_failure, refusal
from fastevm.core.execution.parallel.optimistic cimport MOST_THREADS, optimistic_run
from fastevm.core.execution.parallel.pipelined_recovery cimport run_pipelined
from fastevm.core.execution.transaction.sender_recovery cimport are_recovered
from fastevm.core.execution.block.system_calls cimport (
    SYSTEM_DONE,
    SYSTEM_FAILED,
    SystemOutcome,
)
from fastevm.core.execution.block.system_operations cimport (
    QUEUE_COUNT,
    deposits_of,
    requests_of,
    run_queue_calls,
    system_contracts_read,
)
from fastevm.core.execution.transaction.transaction cimport Transaction, recover_now
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport (
    TX_OUT_OF_MEMORY,
    TX_VALID,
    TxOptions,
    TxResult,
)
from fastevm.core.interpreter.machine cimport status_text
from fastevm.core.primitives.exact_bytes cimport exactly
from fastevm.core.primitives.bloom cimport BLOOM_SIZE
from fastevm.core.primitives.buffer cimport Buffer, buffer_free
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.intrinsics cimport atomic_store_int
from fastevm.core.primitives.word cimport word_from_int
from fastevm.core.spec.constants cimport BLOCK_HASH_WINDOW
from fastevm.core.spec.schedule cimport ForkSchedule
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.reader cimport Reader
from fastevm.core.state.records cimport Accesses
from fastevm.core.state.world cimport (
    LogRecord,
    accesses_count,
    accesses_encode,
)


cdef int CORES = os.cpu_count() or 1


# The stages of a builder, in order.
cdef enum:
    CREATED = 0
    OPEN = 1
    CLOSED = 2


class AccessListMismatch(Exception):
    """The access list of a block does not match the execution of the block."""


cdef extern from "pythread.h" nogil:
    unsigned long PyThread_get_thread_ident()

# value of `owner` while the block calls a function of the user
cdef unsigned long IN_PYTHON = ~<unsigned long>0


cdef class BlockBuilder:
    """A block under construction on top of a layer.

    ``begin()`` makes the system calls at the block's start, ``add()`` executes a transaction,
    ``snapshot()`` returns the current state, ``seal()`` ends the block. ``header`` is a draft with
    all fields that execution does not compute (see
    `fastevm.core.execution.block.header_draft.draft_header`).
    """

    def __cinit__(self, *args, **options):
        if not executor_take(&self.c):
            raise MemoryError
        self.cancelled = False
        self.c.machine.cancel = &self.cancelled
        self.added = []
        self.made = []
        self.blob_gas_price = 0
        self.deposit_contract = bytes(20)
        self.rest_on(Layer.empty(), schedule_for("osaka"), b"")

    cdef int rest_on(self, Layer layer, ForkSchedule schedule, bytes ancestors) except -1:
        """Attaches the block to a state, its rules and the hashes of earlier blocks."""
        cdef Reader reader
        memset(&reader, 0, sizeof(reader))
        self.base = self.layer = layer
        self.schedule = schedule
        self.ancestors = ancestors
        self.c.context.ancestors = <const Hash*>PyBytes_AS_STRING(ancestors)
        self.c.context.ancestor_count = PyBytes_GET_SIZE(ancestors) // 32
        if self.suspends:
            layer.attach_suspending(&reader)
        else:
            layer.attach(&reader)
        executor_open(&self.c, &schedule.c, &reader)
        return 0

    def __dealloc__(self):
        executor_leave(&self.c)

    def __init__(
        self, Layer layer not None, header, ForkSchedule schedule not None, *, chain_id,
        deposit_contract, ancestors=(), withdrawals=None, ommers=(), suspends=False,
        root_of=None, threads=1, access_list=None,
    ):
        """Sets up a block on the state ``layer``. ``begin`` starts the block.

        - ``ancestors``: hashes of the preceding blocks, parent first; only the first 256 are used
        - ``suspends``: whether unknown values of a remote state stop execution. The remote state
          records them; `add` refuses a transaction that reads an unknown value with code
          ``needs_state``, and `begin` raises StateNotKnown.
        - ``deposit_contract``: 20-byte address of the contract whose logs are deposits (EIP-6110)
        - ``root_of``: a function from a layer to its 32-byte state root, for receipts that contain
          state roots; None: the layer computes it
        - ``threads``: how many threads ``add_all`` may use. Small blocks, blocks over a remote
          state, blocks of the OP stack and blocks whose receipts contain state roots run on one
          thread.
        - ``access_list``: RLP of the block access list that came with the block (EIP-7928). It lets
        threads execute the transactions in parallel. Raises `AccessListMismatch` if the list is
        wrong.
        """
        self.set_up_once()
        try:
            exactly(deposit_contract, 20, "deposit_contract")
            if threads < 1:
                raise ValueError(f"threads is at least 1, not {threads}")
            self.root_of, self.threads = root_of, threads
            self.given_list, self.header = access_list, header
            self.suspends = suspends
            self.ommers = tuple(ommers)
            self.withdrawals = None if withdrawals is None else tuple(withdrawals)
            self.deposit_contract = deposit_contract
            self.blob_gas_price = 0
            if schedule.c.has_blobs:
                self.blob_gas_price = blob_base_fee(header.excess_blob_gas or 0, schedule)
            self.added, self.made = [], []
            self.stage = CREATED
            fill_context(&self.c.context, header, chain_id, self.blob_gas_price)
            context_of_arbos(&self.c.context, &schedule.c, &self.c.context.difficulty)
            self.rest_on(layer, schedule, b"".join(ancestors[:BLOCK_HASH_WINDOW]))
        finally:
            self.owner = 0

    cdef int set_up_once(self) except -1:
        """Reserves the block for its constructor. Raises RuntimeError if the block is set up or in
        use.
        """
        if self.is_set_up or not self.claim():
            raise RuntimeError("a block is made once: make another builder")
        self.is_set_up = True
        return 0

    cdef bint claim(self) except -1:
        """Claims the block for the calling thread. Returns False if this thread has claimed it
        before.

        Raises RuntimeError if another thread has claimed the block. Setting ``owner`` to 0 ends the
        claim.
        """
        cdef unsigned long here = PyThread_get_thread_ident()
        if self.owner == here:
            return False
        if self.owner:
            raise RuntimeError("this block is in use; give each thread a block of its own")
        self.owner = here
        return True

    cdef int look(self) except -1:
        """Raises RuntimeError if another thread has claimed the block."""
        if self.claim():
            self.owner = 0
        return 0

    cdef int expect(self, int stage, str action) except -1:
        if self.stage != stage:
            states = ("has not begun", "has begun", "is sealed")
            raise FastevmError(f"cannot {action}: the block {states[self.stage]}")
        return 0

    cdef int expect_more(self, str action) except -1:
        """Raises FastevmError unless transactions may be added."""
        self.expect(OPEN, action)
        if self.bal_executor is not None:
            raise FastevmError(f"cannot {action}: the block ran by its access list")
        return 0

    cdef const LogRecord* logs(self) noexcept:
        """Returns the logs that the receipts refer to."""
        return self.c.world.logs if self.packed is None else self.packed.logs

    # ------------------------------------------------------------------------------------------
    # start, requests and credits

    cdef object queue_fault(self, size_t queue, SystemOutcome outcome):
        """Returns the error for a system contract of `QUEUES` that has no code or failed."""
        cdef bytes address = self.contracts.queues[queue].b[:20]
        found = "no code there"
        if outcome == SYSTEM_FAILED:
            found = status_text(self.c.machine.status).decode()
        field = f"system call to 0x{address.hex()}"
        return InvalidBlock(self.header.number, field, expected="success", found=found)

    cdef int pay(self, list entries) except -1:
        """Adds to balances. ``entries`` is a list of (address, wei) pairs, applied in order."""
        cdef size_t i, count = len(entries)
        cdef SystemOutcome outcome
        cdef Credit* credits = <Credit*>PyMem_RawMalloc((count + 1) * sizeof(Credit))
        if credits == NULL:
            raise MemoryError
        try:
            for i in range(count):
                address, amount = entries[i]
                memcpy(credits[i].address.b, exactly(address, 20, "address"), 20)
                word_from_int(&credits[i].amount, amount)
            with nogil:
                outcome = executor_pay(&self.c, credits, count)
        finally:
            PyMem_RawFree(credits)
        raise_host_failure(outcome, self.c.world)
        return 0

    def begin(self):
        """Makes the system calls at the block's start (EIP-4788, EIP-2935); contracts without code
        are skipped.
        """
        cdef const uint8_t* beacon_root = NULL
        cdef const uint8_t* parent_hash
        cdef SystemOutcome outcome
        cdef bint is_first = self.claim()
        try:
            self.expect(CREATED, "begin")
            self.stage = OPEN
            system_contracts_read(&self.contracts, self.schedule)
            if self.contracts.has_beacon_roots:
                beacon_root = exactly(
                    self.header.parent_beacon_block_root, 32, "parent_beacon_block_root"
                )
            parent_hash = exactly(self.header.parent_hash, 32, "parent_hash")
            with nogil:
                outcome = executor_start(&self.c, &self.contracts, beacon_root, parent_hash)
            raise_host_failure(outcome, self.c.world)
        finally:
            if is_first:
                self.owner = 0

    # ------------------------------------------------------------------------------------------
    # transactions

    cdef int close_receipt(self) except -1:
        """Completes the receipt of the last transaction."""
        cdef ForkSchedule schedule = self.schedule
        cdef ReceiptRecord* record = &self.c.receipts.records[self.c.receipts.count - 1]
        cdef bytes root
        cdef bint ok
        if schedule.c.receipt_has_state_root:
            self.layer = self.layer.commit(self.c.world)
            root = self.layer.state_root() if self.root_of is None else self.asked_root()
            memcpy(record.post_state.b, PyBytes_AS_STRING(root), 32)
            record.has_post_state = True
        with nogil:
            ok = executor_encode_receipt(&self.c)
        if not ok:
            raise MemoryError
        return 0

    cdef bytes asked_root(self):
        """Returns the state root that ``root_of`` computes. ``root_of`` must not use this block."""
        cdef unsigned long owner = self.owner
        cdef bytes root
        self.owner = IN_PYTHON
        try:
            root = self.root_of(self.layer)
        finally:
            self.owner = owner
        if root is None or len(root) != 32:
            raise ValueError("a root has 32 bytes")
        return root

    def add(self, Transaction transaction not None):
        """Executes a transaction and returns its receipt.

        Raises `InvalidTransaction`, and changes nothing, if the transaction is not valid here.
        The error's code is ``cancelled`` if another thread called ``cancel``.
        """
        cdef TxOptions options
        cdef TxResult result
        cdef bint is_first = self.claim()
        memset(&result, 0, sizeof(result))
        try:
            self.expect_more("add a transaction")
            recover_now(transaction)
            memset(&options, 0, sizeof(options))
            with nogil:
                executor_transact(&self.c, &transaction.c, &options, &result)
            if result.error != TX_VALID:
                raise refusal(result.error, &transaction.c, &result)
            self.close_receipt()
            self.added.append(transaction)
            return self.receipt(self.c.receipts.count - 1)
        finally:
            if is_first:
                self.owner = 0

    def cancel(self):
        """Stops the current transaction and refuses all later ones until ``resume``."""
        atomic_store_int(<int*>&self.cancelled, True)

    def resume(self):
        """Allows transactions again after ``cancel``."""
        atomic_store_int(<int*>&self.cancelled, False)

    def add_all(self, transactions):
        """Executes all transactions of a given block.

        Raises `InvalidBlock` for the first invalid transaction. The block cannot be continued then.
        """
        cdef ForkSchedule schedule = self.schedule
        cdef bint is_first
        self.expect_more("add transactions")
        transactions = tuple(transactions)
        is_first = self.claim()
        try:
            self.expect_more("add transactions")
            if schedule.c.receipt_has_state_root:
                recover_senders(transactions)
                for index, transaction in enumerate(transactions):
                    try:
                        self.add(transaction)
                    except InvalidTransaction as error:
                        raise self.invalid(index, error) from None
            else:
                self.run_all(transactions)
                self.added.extend(transactions)
        finally:
            if is_first:
                self.owner = 0

    cdef int run_all(self, tuple transactions) except -1:
        """Executes all transactions without the GIL, and recovers their senders."""
        cdef size_t count = len(transactions), first = self.c.receipts.count, ran = 0, i
        cdef bint by_list = self.given_list is not None, encoded
        cdef int cores = CORES
        cdef TxResult result
        cdef Transaction transaction
        cdef Tx** signed = <Tx**>PyMem_RawMalloc((count + 1) * sizeof(Tx*))
        cdef const Tx** pointers = <const Tx**>signed
        cdef uint64_t* refunds = NULL
        memset(&result, 0, sizeof(result))
        if signed == NULL:
            raise MemoryError
        try:
            refunds = self.refunds_of(transactions)
            for i in range(count):
                transaction = <Transaction?>transactions[i]
                signed[i] = &transaction.c
            if refunds == NULL and not by_list and not self.is_parallel(pointers, count):
                with nogil:
                    ran = run_pipelined(&self.c, signed, count, cores, &result)
            else:
                if not are_recovered(signed, count):
                    recover_senders(transactions)
                if by_list:
                    ran = self.run_by_list(pointers, count)
                elif refunds == NULL:
                    ran = self.run_on_threads(pointers, count)
                with nogil:
                    ran = executor_transact_from(&self.c, pointers, ran, count, refunds, &result)
            if ran < count:
                raise self.invalid(ran, refusal(result.error, pointers[ran], &result))
            if self.bal_executor is None:
                with nogil:
                    encoded = executor_encode_receipts(&self.c, first, self.threads)
                if not encoded:
                    raise MemoryError
        finally:
            PyMem_RawFree(signed)
            PyMem_RawFree(refunds)

    cdef bint is_parallel(self, const Tx** transactions, size_t count) noexcept:
        """Returns whether these transactions run optimistically on several threads (Block-STM)."""
        cdef ForkSchedule schedule = self.schedule
        return (
            self.threads > 1 and self.base.remote_state is None
            and pays(&schedule.c, self.c.world, transactions, count)
        )

    cdef size_t run_by_list(self, const Tx** transactions, size_t count) except? 0:
        """Runs the transactions by the block access list that came with the block (EIP-7928).

        Returns the number executed: all, or 0 if this block must be executed sequentially. Raises
        `AccessListMismatch` if an execution contradicts the list.
        """
        cdef ForkSchedule schedule = self.schedule
        cdef BalExecutor run
        cdef Address deposits
        if (
            self.threads < 2 or count == 0 or self.c.world.accesses == NULL
            or self.c.receipts.count != 0 or self.base.remote_state is not None
            or not schedule.c.counts_gas_before_refunds
        ):
            return 0
        run = take_bal_executor(self.base, self.given_list, min(self.threads, <int>MOST_THREADS))
        memcpy(deposits.b, PyBytes_AS_STRING(self.deposit_contract), 20)
        if run is None or not run.run(&self.c, transactions, count, &deposits):
            raise AccessListMismatch
        self.bal_executor = run
        self.packed = run.packed(self.blob_gas_price)
        return count

    cdef size_t run_on_threads(self, const Tx** transactions, size_t count) except? 0:
        """Executes transactions optimistically on threads (Block-STM).

        Returns the number of transactions that were committed, counted from the first. The caller
        executes the remaining transactions.
        """
        cdef ParallelRun run = take(min(self.threads, <int>MOST_THREADS))
        cdef TxResult result
        cdef size_t ran
        memset(&result, 0, sizeof(result))
        with nogil:
            ran = optimistic_run(run.c, &self.c, transactions, count, &result)
        keep_run(run, ran)
        if result.error == TX_OUT_OF_MEMORY:
            raise MemoryError
        return ran

    cdef uint64_t* refunds_of(self, tuple transactions) except? NULL:
        """Returns the gas that the post-exec transaction refunds to each transaction, or NULL if
        the block has no post-exec transaction.
        """
        cdef ForkSchedule schedule = self.schedule
        cdef uint64_t* refunds
        cdef size_t index
        if not schedule.c.has_post_exec:
            return NULL
        found = post_exec_refunds(transactions, self.header.number)
        if found is None:
            return NULL
        refunds = <uint64_t*>PyMem_RawCalloc(len(transactions), sizeof(uint64_t))
        if refunds == NULL:
            raise MemoryError
        for index, refund in found.items():
            refunds[index] = refund
        return refunds

    def invalid(self, index, error):
        """Returns the InvalidBlock error for ``error`` of the transaction at ``index``."""
        if not isinstance(error, InvalidTransaction):
            return error
        if error.code == "needs_state":
            return not_known(self.c.world)
        field = f"transactions[{index}]"
        return InvalidBlock(
            self.header.number, field, expected="a valid transaction", found=error.message
        )

    # ------------------------------------------------------------------------------------------
    # the results so far

    def receipt(self, size_t index):
        """Returns the receipt of transaction ``index``. Raises IndexError if there is none."""
        cdef size_t ready
        cdef bint is_first = self.claim()
        try:
            if index >= self.c.receipts.count:
                raise IndexError(f"the block has {self.c.receipts.count} transactions so far")
            for ready in range(len(self.made), index + 1):
                self.made.append(receipt_value(
                    &self.c.receipts.records[ready], self.logs(), self.blob_gas_price
                ))
            return self.made[index]
        finally:
            if is_first:
                self.owner = 0

    @property
    def receipts(self):
        """The receipts so far."""
        self.look()
        if self.c.receipts.count:
            self.receipt(self.c.receipts.count - 1)
        return tuple(self.made)

    @property
    def transactions(self):
        """The transactions so far."""
        return tuple(self.added)

    @property
    def gas_used(self):
        """Gas used so far."""
        self.look()
        return self.c.gas_used

    @property
    def blob_gas_used(self):
        """Blob gas used so far."""
        self.look()
        return self.c.blob_gas_used

    def has_gas_for(self, Transaction transaction not None, uint64_t gas_budget):
        """Returns whether the transaction's gas limit fits into the rest of ``gas_budget`` gas.

        Forks with state gas check both gas dimensions.
        """
        self.look()
        return executor_has_gas(&self.c, &transaction.c, gas_budget)

    @property
    def receipts_root(self):
        """The root of the receipts so far."""
        cdef Hash root
        cdef bint ok = True
        cdef bint is_first = self.claim()
        if self.bal_executor is not None:
            root = self.bal_executor.receipts.root
        elif self.end is not None:
            root = self.end.root
        else:
            with nogil:
                ok = receipts_root(&self.c.receipts, self.threads, &root)
        if is_first:
            self.owner = 0
        if not ok:
            raise MemoryError
        return root.b[:32]

    @property
    def logs_bloom(self):
        """The bloom of the logs so far."""
        cdef uint8_t bloom[BLOOM_SIZE]
        cdef bint is_first = self.claim()
        with nogil:
            receipts_bloom(&self.c.receipts, bloom)
        if is_first:
            self.owner = 0
        return bloom[:BLOOM_SIZE]

    def snapshot(self):
        """Returns the current state as a layer. Its root is computed on demand."""
        cdef bint is_first = self.claim()
        cdef Layer layer = self.layer
        try:
            self.layer = layer.commit(self.c.world)
            return self.layer
        finally:
            if is_first:
                self.owner = 0

    # ------------------------------------------------------------------------------------------
    # the end

    cdef bytes deposits(self):
        cdef Address contract
        if self.bal_executor is not None and not self.bal_executor.receipts.has_deposits:
            return b""
        memcpy(contract.b, PyBytes_AS_STRING(self.deposit_contract), 20)
        try:
            return deposits_of(&self.c.receipts, self.logs(), &contract)
        except ValueError as error:
            raise InvalidBlock(
                self.header.number, "deposits", expected="canonical events", found=str(error)
            ) from None

    cdef object finished_receipts(self):
        """Returns all receipts: a tuple if all Receipt values exist already, else PackedReceipts.
        """
        if self.packed is not None:
            return self.packed
        if len(self.made) == <Py_ssize_t>self.c.receipts.count:
            return tuple(self.made)
        return packed_receipts(&self.c.receipts, self.c.world.logs, self.blob_gas_price)

    cdef tuple requests(self):
        """Returns the requests of the block, sorted by type (EIP-7685)."""
        cdef ForkSchedule schedule = self.schedule
        cdef Buffer queues[QUEUE_COUNT]
        cdef SystemOutcome outcome
        cdef size_t at = 0, i
        if not schedule.c.collects_requests:
            return ()
        memset(queues, 0, sizeof(queues))
        deposits = self.deposits()
        try:
            with nogil:
                outcome = run_queue_calls(self.c.machine, &self.contracts, False, queues, &at)
            raise_host_failure(outcome, self.c.world)
            if outcome != SYSTEM_DONE:
                raise self.queue_fault(at, outcome)
            return requests_of(deposits, queues)
        finally:
            for i in range(QUEUE_COUNT):
                buffer_free(&queues[i])

    def rewards(self, draft):
        """Returns the block rewards as (address, wei) pairs.

        ``draft`` is a block with the header and the uncles.
        """
        return block_rewards(draft, self.schedule)

    def finish(self, *, state_root=True):
        """Ends the block (credits, requests, roots) and returns its `BlockResult`.

        With ``state_root=False`` the root is not computed and is 32 zero bytes in the result.
        """
        cdef bint is_first = self.claim()
        try:
            return self.ended(state_root)
        finally:
            if is_first:
                self.owner = 0

    cdef object ended(self, object state_root):
        """Closes the block and returns its result."""
        cdef ForkSchedule schedule = self.schedule
        self.expect(OPEN, "end it")
        self.stage = CLOSED
        draft = Block(self.header, (), self.ommers, self.withdrawals)
        self.pay([*self.rewards(draft), *withdrawal_credits(draft)])
        requests = self.requests()
        self.end_on_threads()
        root, bloom = self.receipts_root, self.logs_bloom
        accesses = self.access_list()
        layer = self.layer_after()
        return BlockResult(
            layer=layer,
            state_root=(
                layer.state_root(min(self.threads, <int>MOST_THREADS)) if state_root else ZERO_HASH
            ),
            receipts=self.finished_receipts(),
            receipts_root=root,
            logs_bloom=bloom,
            gas_used=self.c.gas_used,
            blob_gas_used=self.c.blob_gas_used if schedule.c.has_blobs else None,
            requests=requests,
            requests_hash=requests_hash(requests) if schedule.c.has_requests else None,
            withdrawals_root=self.withdrawals_root(layer, state_root),
            access_list=accesses,
        )

    cdef int end_on_threads(self) except -1:
        """On several threads, commits the state and hashes the receipts of a large block."""
        if (
            self.threads > 1 and self.bal_executor is None and not self.made
            and self.c.receipts.count >= RECEIPTS_OF_AN_END and self.base.remote_state is None
        ):
            self.end = block_end(
                self.layer, &self.c, min(self.threads, <int>MOST_THREADS), self.blob_gas_price
            )
            self.packed = self.end.packed
        return 0

    cdef Layer layer_after(self):
        """Returns the state after the block.

        Raises `AccessListMismatch` if the block ran by its access list and the list names an item
        that the block did not access.
        """
        if self.bal_executor is None:
            return self.snapshot() if self.end is None else self.end.layer
        if not self.bal_executor.is_complete(&self.c):
            raise AccessListMismatch
        return self.bal_executor.layer_after()

    def access_list(self):
        """Returns the RLP of the block access list so far; None in forks without access lists.

        Raises InvalidBlock if the list exceeds the size that the gas limit allows (EIP-7928).
        """
        cdef bint is_first = self.claim()
        try:
            return self.listed()
        finally:
            if is_first:
                self.owner = 0

    cdef object listed(self):
        """Returns the RLP of the block access list so far, or None; see ``access_list``."""
        cdef ForkSchedule schedule = self.schedule
        cdef Accesses* accesses = self.c.world.accesses
        cdef Buffer encoded
        cdef bint ok
        if accesses == NULL:
            return None
        most = self.header.gas_limit // schedule.c.block_access_item_gas
        found = accesses_count(accesses)
        if self.bal_executor is not None:
            found = self.bal_executor.bal.sums.items
        if found > most:
            raise InvalidBlock(
                self.header.number, "block_access_list",
                expected=f"at most {most} items", found=f"{found} items",
            )
        if self.bal_executor is not None:
            return self.given_list
        memset(&encoded, 0, sizeof(Buffer))
        try:
            with nogil:
                ok = accesses_encode(accesses, &encoded)
            if not ok:
                raise MemoryError
            return PyBytes_FromStringAndSize(<const char*>encoded.bytes, encoded.size)
        finally:
            buffer_free(&encoded)

    def withdrawals_root(self, Layer layer not None, bint state_root):
        """Returns the withdrawals root of a block that ends in this state; None if the fork has no
        such field.

        On chains of the OP stack this is a storage root, so with ``state_root=False`` it is 32 zero
        bytes.
        """
        cdef ForkSchedule schedule = self.schedule
        if not schedule.c.has_withdrawals:
            return None
        if not schedule.c.commits_to_withdrawals:
            return withdrawals_root(Block(self.header, (), (), self.withdrawals))
        if not state_root:
            return ZERO_HASH
        return message_passer_root(layer)

    def seal(self, *, state_root=True):
        """Ends the block. Returns the complete block and its `BlockResult`; see ``finish``."""
        result = self.finish(state_root=state_root)
        body = Block(self.header, self.transactions, self.ommers, self.withdrawals)
        header = sealed_header(body, result)
        return Block(
            header, body.transactions, body.ommers, body.withdrawals, result.access_list
        ), result


def execute_block(
    layer, block, schedule, *, chain_id, deposit_contract, ancestors=(), state_root=True,
    root_of=None, threads=1, on_builder=None,
):
    """Executes a block on its parent's state under ``schedule`` and returns its `BlockResult`.

    - ``ancestors``: hashes of the preceding blocks, parent first; only the first 256 are used
    - ``state_root``: if False, state roots are not computed and are 32 zero bytes in the result
    - ``root_of``: see `BlockBuilder`
    - ``threads``: how many threads may execute transactions; the number does not change the result
    - ``on_builder``: called with each `BlockBuilder` before the builder runs transactions, so that
      another thread can cancel the builder

    If the block has an access list, threads execute by it. If the list is wrong, the block is
    executed again without it. Over a remote state, one request fetches everything that the list
    names.

    Raises `InvalidBlock` if a transaction or a system call makes the block invalid. The header's
    other fields are not compared with the result: see
    `fastevm.core.execution.block.validation.validate_result`.
    """
    def run(access_list=None):
        builder = BlockBuilder(
            layer,
            block.header,
            schedule,
            chain_id=chain_id,
            deposit_contract=deposit_contract,
            ancestors=ancestors,
            withdrawals=block.withdrawals,
            ommers=block.ommers,
            root_of=root_of,
            threads=threads,
            access_list=access_list,
        )
        if on_builder is not None:
            on_builder(builder)
        builder.begin()
        builder.add_all(block.transactions)
        return builder.finish(state_root=state_root)

    if layer.remote_state is not None:
        fetch_listed(layer.remote_state, block, schedule.parameters["block_access_item_gas"])
    if threads > 1 and block.access_list is not None and layer.remote_state is None:
        try:
            return run(block.access_list)
        except (AccessListMismatch, InvalidBlock, StateNotKnown):
            pass  # the sequential execution below reports the error
    return resolved(layer, run)
