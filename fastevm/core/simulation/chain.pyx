"""Executes the blocks of a simulated chain step by step, without the GIL.

This file implements the rules of eth_simulateV1 on a plan of C values. A step that needs Python
returns a `Halt`; the chain then continues at the same step. A refusal is a code with its numbers.

Sources: the eth_simulateV1 specification of execution-apis, and go-ethereum where the specification
is silent.
"""


from cpython.mem cimport PyMem_RawFree
from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset


from fastevm.core.execution.block.block_context cimport fill_from_fields
from fastevm.core.execution.block.block_executor cimport (
    Credit,
    executor_free,
    executor_new,
    executor_next_block,
    executor_pay,
    executor_start,
    executor_transact,
)
from fastevm.core.execution.block.header cimport (
    EMPTY_HEADER,
    FEE_PARAMETERS_SIZE,
    header_append,
    header_begin,
)
from fastevm.core.execution.block.receipts cimport (
    receipts_bloom,
    receipts_encode_from,
    receipts_root,
)
from fastevm.core.execution.block.system_calls cimport (
    SYSTEM_CANCELLED,
    SYSTEM_DONE,
    SYSTEM_NEEDS_STATE,
    SYSTEM_NO_CODE,
    SYSTEM_OUT_OF_MEMORY,
)
from fastevm.core.execution.block.system_operations cimport run_queue_calls
from fastevm.core.execution.transaction.transaction_data cimport LEGACY_TX, Tx
from fastevm.core.execution.transaction.transaction_result cimport TX_CANCELLED, TX_OUT_OF_MEMORY, TX_VALID
from fastevm.core.primitives.buffer cimport buffer_free
from fastevm.core.primitives.hashes cimport address_eq
from fastevm.core.primitives.intrinsics cimport atomic_load_int, load64_big, store64_big
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.word cimport word_copy, word_is_zero, word_set
from fastevm.core.simulation.body cimport (
    block_size,
    body_add,
    body_free,
    body_hash,
    body_next_block,
)
from fastevm.core.simulation.overrides cimport (
    APPLIED,
    APPLY_REFUSED,
    Applied,
    moves_attach,
    overrides_apply,
)
from fastevm.core.simulation.plan cimport (
    PlannedOverride,
    SlotValue,
    block_at,
    call_at,
    call_check,
    call_defaults,
    call_transaction,
    list_add,
    shown_transaction,
)
from fastevm.core.simulation.records cimport (
    record_at,
    records_add_call,
    records_count,
    records_free,
)
from fastevm.core.simulation.refusals cimport (
    BLOCK_GAS_REACHED,
    BLOCK_NUMBERS_ORDER,
    BLOCK_TIMES_ORDER,
    FAULTY_CALL,
    INVALID_CALL,
    NO_QUEUE_CONTRACT,
    QUEUE_FAILED,
    STATE_UNKNOWN,
    TOO_MANY_BLOCKS,
    TOO_MANY_CALLS,
    TOO_MANY_CALLS_OF_BLOCK,
    TRACE_LIMIT_REACHED,
    OUTPUT_CAP_REACHED,
    refuse,
)
from fastevm.core.spec.constants cimport BLOCK_HASH_WINDOW
from fastevm.core.state.world cimport (
    LogRecord,
    accesses_encode,
)

from fastevm.core.simulation.limits import MAX_BLOCKS, MAX_CALLS, MAX_CALLS_PER_BLOCK


cdef uint64_t MOST_BLOCKS = MAX_BLOCKS
cdef uint64_t MOST_CALLS = MAX_CALLS
cdef uint64_t MOST_CALLS_PER_BLOCK = MAX_CALLS_PER_BLOCK


cdef void simulation_options(TxOptions* options, bint validation) noexcept nogil:
    memset(options, 0, sizeof(TxOptions))
    options.skip_nonce = not validation
    options.skip_sender_code_check = True
    options.skip_gas_cap = True
    options.skip_block_gas = True
    options.fees_optional = not validation
    options.skip_l1_fee = True


cdef void refuse_queue(
    Refusal* refusal, const SystemContracts* contracts, size_t queue, SystemOutcome outcome,
    const Machine* m
) noexcept nogil:
    refuse(refusal, NO_QUEUE_CONTRACT if outcome == SYSTEM_NO_CODE else QUEUE_FAILED, 0, 0)
    refusal.address = contracts.queues[queue]
    refusal.queue = <int>queue
    refusal.status = m.status


cdef class SimulatedChain:
    """Executes plans, one at a time. Each thread owns a `SimulatedChain` and reuses it."""

    def __cinit__(self) -> None:
        if not executor_new(&self.b):
            raise MemoryError
        self.deadline = Deadline()
        self.b.machine.cancel = <const bint*>&self.deadline.request

    def __dealloc__(self) -> None:
        cdef size_t i
        executor_free(&self.b)
        records_free(&self.records)
        body_free(&self.body)
        buffer_free(&self.scratch)
        for i in range(QUEUE_COUNT):
            buffer_free(&self.queues[i])
        buffer_free(&self.text)
        PyMem_RawFree(self.rules.items)
        PyMem_RawFree(self.blocks.items)
        PyMem_RawFree(self.hash_memory)

    # ------------------------------------------------------------------------------------------
    # the blocks to run

    cdef ChainBlock* block(self, size_t index) noexcept nogil:
        return &(<ChainBlock*>self.blocks.items)[index]

    cdef const BlockRules* rules_of(self, const ChainBlock* block) noexcept nogil:
        return &(<const BlockRules*>self.rules.items)[block.rules]

    cdef ChainBlock* add_block(
        self, const PlannedBlock* plan, uint64_t number, uint64_t time
    ) noexcept nogil:
        cdef ChainBlock* block = <ChainBlock*>list_add(&self.blocks, sizeof(ChainBlock))
        if block != NULL:
            block.plan = plan
            block.header = EMPTY_HEADER
            block.number = number
            block.time = time
        return block

    cdef bint count_calls(self) noexcept nogil:
        """Checks the limits on the number of blocks and calls."""
        cdef uint64_t count, total = 0
        cdef size_t i
        if self.plan.blocks.count > MOST_BLOCKS:
            refuse(&self.refusal, TOO_MANY_BLOCKS, self.plan.blocks.count, MOST_BLOCKS)
            return False
        for i in range(self.plan.blocks.count):
            count = block_at(self.plan, i).call_count
            total += count
            if count > MOST_CALLS_PER_BLOCK:
                refuse(&self.refusal, TOO_MANY_CALLS_OF_BLOCK, count, MOST_CALLS_PER_BLOCK)
                return False
        if total > MOST_CALLS:
            refuse(&self.refusal, TOO_MANY_CALLS, total, MOST_CALLS)
            return False
        return True

    cdef Halt plan_blocks(self) noexcept nogil:
        """Assigns numbers and times to all blocks, including those that fill gaps."""
        cdef uint64_t number = self.base.number, time = self.base.timestamp
        cdef uint64_t base = number, wanted, due
        cdef const PlannedBlock* plan
        cdef size_t i
        if not self.count_calls():
            return CHAIN_REFUSED
        for i in range(self.plan.blocks.count):
            plan = block_at(self.plan, i)
            wanted = plan.number if plan.has_number else number + 1
            if wanted <= number:
                refuse(&self.refusal, BLOCK_NUMBERS_ORDER, wanted, number)
                return CHAIN_REFUSED
            if i == 0 and not self.fills_gaps:
                base = number = wanted - 1
            if wanted - base > MOST_BLOCKS:
                refuse(&self.refusal, TOO_MANY_BLOCKS, wanted - base, MOST_BLOCKS)
                return CHAIN_REFUSED
            while number + 1 < wanted:
                number += 1
                time += self.spacing
                if self.add_block(NULL, number, time) == NULL:
                    return CHAIN_OUT_OF_MEMORY
            # Beyond the last uint64 the time wraps to zero, as in go-ethereum.
            due = plan.time if plan.has_time else time + self.spacing
            if due <= time:
                refuse(&self.refusal, BLOCK_TIMES_ORDER, due, time)
                return CHAIN_REFUSED
            number, time = wanted, due
            if self.add_block(plan, number, time) == NULL:
                return CHAIN_OUT_OF_MEMORY
        return CHAIN_DONE

    # ------------------------------------------------------------------------------------------
    # one block after the other

    cdef Halt advance(self) noexcept nogil:
        """Runs until the chain is done or halts. The next call continues at the same step."""
        cdef Halt halt = CHAIN_DONE
        while halt == CHAIN_DONE and self.at < self.blocks.count:
            if atomic_load_int(&self.deadline.request):
                return CHAIN_CANCELLED
            halt = self.step(self.block(self.at))
        return halt

    cdef Halt step(self, ChainBlock* block) noexcept nogil:
        if self.stage == DRAFTING:
            return self.draft(block)
        if self.stage == OPENING:
            return self.open_block(block)
        if self.stage == RUNNING_CALLS:
            return self.run_calls(block)
        if self.stage == PAYING:
            return self.pay(block)
        if self.stage == ASKING_QUEUES:
            return self.ask_queues(block)
        if self.stage == HASHING:
            return self.hash_block(block)
        return self.seal(block)

    cdef Halt draft(self, ChainBlock* block) noexcept nogil:
        """Drafts the header: fields inherited from the parent, overrides, then the fork's rules."""
        cdef const HeaderFields* parent = &self.block(self.at - 1).header if self.at else &self.base
        cdef const Schedule* s = self.rules_of(block).schedule
        cdef uint64_t target = s.blob_target * s.blob_gas_per_blob
        if not self.fees_known:
            if (self.plan.validation and s.has_base_fee) or (
                s.accepts_blobs and parent.excess_blob_gas + parent.blob_gas_used >= target
            ):
                return CHAIN_NEEDS_FEES
            word_set(&block.blob_base_fee, s.blob_min_base_fee if s.has_blobs else 0)
        self.fees_known = False
        self.fill_header(block, self.rules_of(block), parent)
        self.fill_context(block, s)
        self.stage = OPENING
        return CHAIN_DONE

    cdef void fill_header(
        self, ChainBlock* block, const BlockRules* rules, const HeaderFields* parent
    ) noexcept nogil:
        cdef const Schedule* s = rules.schedule
        cdef const PlannedBlock* plan = block.plan
        cdef HeaderFields* h = &block.header
        header_begin(h, rules.header_fields, parent)
        h.parent_hash = self.hashes[self.blocks.count - self.at]
        h.number = block.number
        h.timestamp = block.time
        h.coinbase = parent.coinbase
        h.gas_limit = parent.gas_limit
        if s.fee_parameters_version != 0:
            memcpy(h.extra_data, parent.extra_data, FEE_PARAMETERS_SIZE)
            h.extra_data_size = parent.extra_data_size
        if not self.is_merged or s.arbos_version != 0:
            word_copy(&h.difficulty, &parent.difficulty)
        if s.arbos_version != 0:
            h.mix_hash = parent.mix_hash
            store64_big(h.mix_hash.b + 8, load64_big(h.mix_hash.b + 8) + 1)  # the L1 block number
        if plan == NULL:
            return
        if plan.has_fee_recipient:
            h.coinbase = plan.fee_recipient
        if plan.has_gas_limit:
            h.gas_limit = plan.gas_limit
        if plan.has_difficulty and not self.is_merged:
            word_copy(&h.difficulty, &plan.difficulty)
        if plan.has_base_fee and s.has_base_fee:
            word_copy(&h.base_fee_per_gas, &plan.base_fee)
        if plan.has_blob_base_fee and s.has_blobs:
            word_copy(&block.blob_base_fee, &plan.blob_base_fee)
        if plan.withdrawal_count and s.has_withdrawals:
            h.withdrawals_root = plan.withdrawals_root
        if s.arbos_version == 0:
            h.mix_hash = plan.prev_randao
        h.parent_beacon_block_root = plan.beacon_root

    cdef void fill_context(self, const ChainBlock* block, const Schedule* s) noexcept nogil:
        """Sets the block context of the machine, which calls read."""
        cdef const HeaderFields* h = &block.header
        cdef size_t known = self.at + self.known_ancestors
        fill_from_fields(&self.b.context, h, s)
        if block.plan != NULL and block.plan.has_difficulty and not s.difficulty_is_randomness:
            word_copy(&self.b.context.difficulty, &block.plan.difficulty)
        if block.plan != NULL and block.plan.has_base_fee:
            word_copy(&self.b.context.base_fee, &block.plan.base_fee)
        word_copy(&self.b.context.blob_base_fee, &block.blob_base_fee)
        self.b.context.ancestors = &self.hashes[self.blocks.count - self.at]
        self.b.context.ancestor_count = <uint32_t>(
            known if known < BLOCK_HASH_WINDOW else BLOCK_HASH_WINDOW
        )

    cdef Halt open_block(self, ChainBlock* block) noexcept nogil:
        """Applies overrides, then makes the system calls at the block's start (EIP-4788, EIP-2935).
        """
        cdef const BlockRules* rules = self.rules_of(block)
        cdef SystemOutcome outcome
        cdef Applied applied
        executor_next_block(&self.b, rules.schedule)
        body_next_block(&self.body)
        self.moves.count = 0
        if block.plan != NULL and block.plan.override_count:
            applied = overrides_apply(
                self.b.world, rules.schedule,
                &(<const PlannedOverride*>self.plan.overrides.items)[block.plan.first_override],
                block.plan.override_count, <const SlotValue*>self.plan.slots.items,
                &self.moves, &self.refusal,
            )
            if applied != APPLIED:
                return CHAIN_REFUSED if applied == APPLY_REFUSED else CHAIN_OUT_OF_MEMORY
        moves_attach(self.b.machine, &self.moves)
        # After the overrides, so that they do not appear in the block's access list.
        outcome = executor_start(
            &self.b, &rules.contracts, block.header.parent_beacon_block_root.b,
            block.header.parent_hash.b,
        )
        if outcome >= SYSTEM_NEEDS_STATE:
            return self.halt_of(outcome)
        block.first_call = self.body.offsets.count
        self.call_at = 0
        self.stage = RUNNING_CALLS
        return CHAIN_DONE

    cdef Halt halt_of(self, SystemOutcome outcome) noexcept nogil:
        """Returns the halt for a system call that needs state, or was cancelled or out of memory.
        """
        if outcome == SYSTEM_CANCELLED:
            return CHAIN_CANCELLED
        if outcome == SYSTEM_OUT_OF_MEMORY:
            return CHAIN_OUT_OF_MEMORY
        refuse(&self.refusal, STATE_UNKNOWN, 0, 0)
        return CHAIN_REFUSED

    # ------------------------------------------------------------------------------------------
    # calls

    cdef Halt run_calls(self, ChainBlock* block) noexcept nogil:
        cdef bint ends_in_python = (
            self.has_extras or self.rules_of(block).schedule.receipt_has_state_root
        )
        cdef size_t index
        cdef Halt halt
        if block.plan != NULL:
            while self.call_at < block.plan.call_count:
                if self.has_extras and not self.traced:
                    return CHAIN_NEEDS_TRACING
                index = block.plan.first_call + self.call_at
                halt = self.run_call(call_at(self.plan, index), index)
                if halt != CHAIN_DONE:
                    return halt
                self.call_at += 1
                block.call_count += 1
                self.traced = False
                if ends_in_python:
                    return CHAIN_NEEDS_CALL_END
        self.stage = PAYING
        return CHAIN_DONE

    cdef Halt check_call(self, const PlannedCall* call, size_t index, uint64_t gas) noexcept nogil:
        """Checks a call before it runs. ``gas``: gas left in the block."""
        self.refusal.call = index
        if not call_check(call, self.b.context.chain_id, &self.refusal):
            return CHAIN_REFUSED
        if not call.default_gas and call.tx.gas_limit > gas:
            refuse(&self.refusal, BLOCK_GAS_REACHED, gas, call.tx.gas_limit)
            return CHAIN_REFUSED
        if call.is_faulty:
            refuse(&self.refusal, FAULTY_CALL, 0, 0)
            return CHAIN_REFUSED
        return CHAIN_DONE

    cdef Halt run_call(self, const PlannedCall* call, size_t index) noexcept nogil:
        cdef Tx* tx = &self.tx
        cdef TxError error = TX_OUT_OF_MEMORY
        cdef bint capped = False
        cdef uint64_t left = self.b.context.gas_limit - self.b.gas_used
        cdef Halt halt = self.check_call(call, index, left)
        if halt != CHAIN_DONE:
            return halt
        call_transaction(tx, call, self.b.schedule, self.b.context.chain_id)
        if call_defaults(self.b.world, tx, call, left, self.budget, &capped):
            error = executor_transact(&self.b, tx, &self.tx_options, &self.result)
        if error != TX_VALID:
            return self.refused_call(error)
        return self.note_call(call, capped)

    cdef Halt refused_call(self, TxError error) noexcept nogil:
        if error == TX_CANCELLED and not atomic_load_int(&self.deadline.request):
            refuse(&self.refusal, TRACE_LIMIT_REACHED, 0, 0)
            return CHAIN_REFUSED
        if error == TX_CANCELLED:
            return CHAIN_CANCELLED
        if error == TX_OUT_OF_MEMORY:
            return CHAIN_OUT_OF_MEMORY
        self.refusal.code = INVALID_CALL
        self.refusal.error = error
        self.refusal.tx = self.tx
        self.refusal.result = self.result
        self.refusal.gas = self.tx.gas_limit
        return CHAIN_REFUSED

    cdef Halt note_call(self, const PlannedCall* call, bint capped) noexcept nogil:
        """Records the result of a call, and the transaction that represents it in the block."""
        cdef Tx* tx = &self.tx
        if self.has_budget:
            self.budget -= self.result.gas_used
        if tx.tx_type != LEGACY_TX and (call.has_gas_price or not self.b.schedule.has_base_fee):
            shown_transaction(tx)
            self.b.receipts.records[self.b.receipts.count - 1].tx_type = LEGACY_TX
        if not (
            records_add_call(
                &self.records, self.b.machine, self.b.world, &self.result, capped
            )
            and body_add(&self.body, tx)
        ):
            return CHAIN_OUT_OF_MEMORY
        if not self.spend_output(
            record_at(&self.records, records_count(&self.records) - 1).output_size
        ):
            return CHAIN_REFUSED
        return CHAIN_DONE

    cdef bint spend_output(self, uint64_t size) noexcept nogil:
        """Counts bytes of output. Returns False if the request exceeds its limit."""
        if size > self.output_left:
            refuse(&self.refusal, OUTPUT_CAP_REACHED, 0, 0)
            return False
        self.output_left -= size
        return True

    # ------------------------------------------------------------------------------------------
    # the end of a block

    cdef Halt pay(self, ChainBlock* block) noexcept nogil:
        """Encodes the receipts, then pays the miner or the withdrawals (EIP-4895)."""
        cdef const BlockRules* rules = self.rules_of(block)
        cdef SystemOutcome outcome = SYSTEM_DONE
        cdef Credit reward
        if not receipts_encode_from(&self.b.receipts, 0, self.b.world.logs):
            return CHAIN_OUT_OF_MEMORY
        if not word_is_zero(&rules.reward):
            reward.address, reward.amount = block.header.coinbase, rules.reward
            outcome = executor_pay(&self.b, &reward, 1)
        elif block.plan != NULL and rules.schedule.has_withdrawals:
            outcome = executor_pay(
                &self.b,
                &(<const Credit*>self.plan.withdrawals.items)[block.plan.first_withdrawal],
                block.plan.withdrawal_count,
            )
        else:
            outcome = executor_pay(&self.b, NULL, 0)
        if outcome >= SYSTEM_NEEDS_STATE:
            return self.halt_of(outcome)
        self.stage = ASKING_QUEUES if rules.schedule.collects_requests else HASHING
        self.block_has_deposits = rules.schedule.collects_requests and self.has_deposits()
        return CHAIN_NEEDS_DEPOSITS if self.block_has_deposits else CHAIN_DONE

    cdef bint has_deposits(self) noexcept nogil:
        """Returns whether the deposit contract emitted a log (EIP-6110)."""
        cdef const LogRecord* log
        cdef size_t i
        for i in range(self.b.world.log_count):
            log = &self.b.world.logs[i]
            if not log.pseudo and address_eq(&log.address, &self.deposit_contract):
                return True
        return False

    cdef Halt ask_queues(self, ChainBlock* block) noexcept nogil:
        """Collects the requests of the system contracts (EIP-7002, EIP-7251, EIP-8282)."""
        cdef const BlockRules* rules = self.rules_of(block)
        cdef size_t at = 0
        cdef SystemOutcome outcome = run_queue_calls(
            self.b.machine, &rules.contracts, self.optional_contracts, self.queues, &at
        )
        if outcome >= SYSTEM_NEEDS_STATE:
            return self.halt_of(outcome)
        if outcome != SYSTEM_DONE:
            refuse_queue(&self.refusal, &rules.contracts, at, outcome, self.b.machine)
            return CHAIN_REFUSED
        self.stage = HASHING
        return CHAIN_NEEDS_REQUESTS if self.has_requests() else CHAIN_DONE

    cdef bint has_requests(self) noexcept nogil:
        cdef size_t i
        for i in range(QUEUE_COUNT):
            if self.queues[i].size != 0:
                return True
        return self.block_has_deposits

    cdef Halt hash_block(self, ChainBlock* block) noexcept nogil:
        """Fills in the header fields that depend on transactions and receipts, and hashes the
        transactions.
        """
        cdef HeaderFields* h = &block.header
        cdef const Schedule* s = self.rules_of(block).schedule
        h.gas_used = self.b.gas_used
        if s.has_blobs:
            h.blob_gas_used = self.b.blob_gas_used
        receipts_bloom(&self.b.receipts, h.logs_bloom)
        if block.call_count != 0 and not (
            receipts_root(&self.b.receipts, 1, &h.receipts_root)
            and body_hash(&self.body, &h.transactions_root)
        ):
            return CHAIN_OUT_OF_MEMORY
        if s.has_block_access_list and not self.hash_accesses(&h.block_access_list_hash):
            return CHAIN_OUT_OF_MEMORY
        self.stage = SEALING
        return CHAIN_NEEDS_ROOT if self.needs_roots else CHAIN_DONE

    cdef bint hash_accesses(self, Hash* out) noexcept nogil:
        """Hashes the block access list (EIP-7928). Returns False if memory is exhausted."""
        self.scratch.size = 0
        if not accesses_encode(self.b.world.accesses, &self.scratch):
            return False
        keccak256(out.b, self.scratch.bytes, self.scratch.size)
        return True

    cdef Halt seal(self, ChainBlock* block) noexcept nogil:
        """Hashes the header and moves on to the next block."""
        self.scratch.size = 0
        if not header_append(&self.scratch, &block.header):
            return CHAIN_OUT_OF_MEMORY
        keccak256(block.hash.b, self.scratch.bytes, self.scratch.size)
        block.size = block_size(
            &self.body, self.scratch.size, self.rules_of(block).schedule.has_withdrawals,
            block.plan.withdrawals_size if block.plan != NULL else 0,
        )
        self.hashes[self.blocks.count - self.at - 1] = block.hash
        self.at += 1
        self.stage = DRAFTING
        if self.renews_worlds:
            return CHAIN_NEEDS_WORLD
        return CHAIN_DONE
