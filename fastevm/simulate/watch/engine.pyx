"""The compiled core of `fastevm.simulate.Watch`: questions, jobs and published answers.

The owner of an engine serialises all calls except `Worker.run`, which runs without the GIL in
parallel with the other calls. So a job holds everything that its workers read, and a question that
is removed during a job is freed when the job ends.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.interpreter.machine cimport BlockContext
from fastevm.core.primitives.intrinsics cimport atomic_decrement, atomic_increment
from fastevm.core.simulation.records cimport CallRecord, LogCopy
from fastevm.core.simulation.refusals cimport exception_of, with_position
from fastevm.simulate.batch.bundles cimport RUN_AS_CHAIN, REFUSED, Bundle, bundle_at
from fastevm.simulate.batch.results cimport BundleRecord, BundleResult, Results
from fastevm.core.primitives.buffer cimport buffer_append
from fastevm.simulate.watch.change cimport (
    BALANCES,
    ERROR,
    NEW,
    STATUS,
    Change,
    change_of,
    differences,
    marks_of_outcomes,
    result_of,
)
from fastevm.simulate.watch.index cimport (
    READ_BASE,
    Read,
)
from fastevm.simulate.watch.base_comparison cimport BaseComparison
from fastevm.simulate.watch.program cimport (
    AS_CHAIN,
    NEXT_BLOCK,
    NOWHERE,
    OWN_BLOCK,
    QuestionReader,
    program_of,
)
from fastevm.simulate.watch.question cimport Answer, Question, answer_size
from fastevm.simulate.watch.question_runner cimport (
    ANSWERED,
    NO_MEMORY,
    NOT_RUN,
    PUBLISHED,
    REFUSED_RUN,
    STOPPED_RUN,
    Outcome,
    QuestionRunner,
    outcome_free,
)
from fastevm.simulate.watch.question_list cimport (
    NO_POSITION,
    QuestionList,
    question_free,
    question_list_add,
    question_list_close,
    question_list_remove,
    question_list_wait_again,
)

import pickle

from fastevm.core.simulation.deadline import out_of_time
from fastevm.core.simulation.values import SimulationError
from fastevm.rpc_types.positions import refused_call
from fastevm.simulate.watch.program import question_reader


cdef enum:
    GIL_ITEMS = 256  # Change objects that are created before another thread can get the GIL


cdef int64_t clock() noexcept nogil:
    """Returns the time of the monotonic clock in nanoseconds."""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <int64_t>now.tv_sec * 1_000_000_000 + now.tv_nsec


cdef int by_turn(const void* a, const void* b) noexcept nogil:
    """Compares questions: higher priority first, then longer waiting time, then older question."""
    cdef const Question* x = (<const Question**>a)[0]
    cdef const Question* y = (<const Question**>b)[0]
    if x.priority != y.priority:
        return -1 if x.priority > y.priority else 1
    if x.since != y.since:
        return -1 if x.since < y.since else 1
    return (x.id > y.id) - (x.id < y.id)


cdef class Job:
    """The questions to run on one base, in order. Several workers take questions from a job."""

    def __cinit__(self) -> None:
        self.chains = []

    def __dealloc__(self) -> None:
        cdef size_t i
        for i in range(self.count):
            outcome_free(&self.outcomes[i])
        PyMem_RawFree(self.outcomes)
        PyMem_RawFree(self.questions)

    def __len__(self) -> int:
        return self.count + len(self.chains)

    def rewind(self) -> None:
        """Starts again with the first question, after values of a remote state were fetched."""
        cdef size_t i
        cdef uint32_t position
        for i in range(self.count):
            position = self.outcomes[i].question
            outcome_free(&self.outcomes[i])
            memset(&self.outcomes[i], 0, sizeof(Outcome))
            self.outcomes[i].question = position
        self.taken = 0

    @property
    def is_over(self) -> bool:
        """Returns whether the time budget is used up."""
        return self.limit != 0 and clock() >= self.limit


cdef class Worker:
    """Runs questions on one thread. Other threads may call `cancel` and `stop_overdue`."""

    def stand_on(
        self, bint own, view, base, layer, environment, *, options, balances, bint shows_base_fee
    ) -> None:
        """Sets the base on which questions run.

        ``own``: for questions in the base's own block; False: for questions in the next block. The
        other arguments are those of `BundleRunner`.
        """
        cdef QuestionRunner runner = self.own if own else self.next
        if runner is None:
            runner = QuestionRunner(view, base, layer, environment, options, balances)
            runner.own_block, runner.shows_base_fee = own, shows_base_fee
            if own:
                self.own = runner
            else:
                self.next = runner
        runner.stand_on(view, base, layer, environment)

    def run(self, Job job not None) -> None:
        """Runs questions of a job until none is left or the time budget of the job is used up."""
        with nogil:
            self.work(job)

    def cancel(self) -> None:
        """Stops the current question and all later questions."""
        for runner in (self.own, self.next):
            if runner is not None:
                runner.cancel()

    def stop_overdue(self) -> None:
        """Stops the current question if its time limit is over."""
        for runner in (self.own, self.next):
            if runner is not None:
                runner.stop_overdue()

    cdef void work(self, Job job) noexcept nogil:
        cdef const Question* q
        cdef int64_t at
        while job.limit == 0 or clock() < job.limit:
            at = atomic_increment(&job.taken) - 1
            if at >= <int64_t>job.count:
                return
            q = job.questions[at]
            if q.block_choice == OWN_BLOCK:
                self.own.run_question(q, &job.outcomes[at])
            else:
                self.next.run_question(q, &job.outcomes[at])


cdef class Engine:
    """Stores questions with their reads and answers. See `fastevm.simulate.Watch`."""

    def __cinit__(self) -> None:
        self.own, self.next = BaseComparison(is_own=True), BaseComparison(is_own=False)
        self.own.state.questions = self.next.state.questions = &self.questions
        self.own.state.index.context = self.next.state.index.context = &self.questions
        self.reader = question_reader()
        self.positions, self.kept, self.faults, self.errors = {}, {}, {}, {}
        self.chains, self.views = {}, {}
        self.payloads, self.graves = [], []

    def __dealloc__(self) -> None:
        question_list_close(&self.questions)

    # ------------------------------------------------------------------------------------------
    # questions

    cdef Question* question(self, object id) except NULL:
        return self.questions.items[<uint32_t>self.positions[id]]

    cdef Question* question_at(self, uint32_t position) except NULL:
        """Returns the question at a position. Raises IndexError if there is none."""
        if position >= self.questions.count or self.questions.items[position] == NULL:
            raise IndexError("there is no question at this position")
        return self.questions.items[position]

    cdef BaseComparison comparison_of(self, const Question* q):
        return self.next if q.block_choice == NEXT_BLOCK else self.own

    def add(
        self, question: object, payload: bytes, int64_t priority, bint own, view: object
    ) -> int:
        """Adds a question, which waits to run. Returns its id."""
        cdef Question* q = <Question*>PyMem_RawCalloc(1, sizeof(Question))
        cdef uint32_t position
        if q == NULL:
            raise MemoryError
        try:
            kept, faults, error = self.read(q, question, own)
            position = question_list_add(&self.questions, q)
            if position == NO_POSITION:
                raise MemoryError
        except BaseException:
            question_free(q)
            raise
        self.last_id += 1
        q.id = self.last_id
        q.priority = priority
        while len(self.payloads) <= position:
            self.payloads.append(None)
        self.payloads[position] = payload
        self.positions[q.id] = position
        q.has_error = error is not None
        self.questions.bytes += sizeof(Question) + len(payload)
        if q.program != NULL:
            self.questions.bytes += q.program.size
        for values, value in (
            (self.kept, kept), (self.faults, faults), (self.errors, error), (self.views, view)
        ):
            if value is not None:
                values[position] = value
        if q.block_choice == NEXT_BLOCK:
            self.next_count += 1
        else:
            self.own_count += 1
        return q.id

    cdef tuple read(self, Question* q, object question, bint own):
        """Compiles a question.

        Returns (objects whose memory the question borrows, faults of its calls, error).
        """
        cdef QuestionReader reader = self.reader
        cdef Bundle* bundle
        cdef const Tx* tx
        cdef size_t i
        cdef bint lists = False
        reader.clear()
        reader.own = own
        reader.add(question)
        bundle = bundle_at(reader, 0)
        q.block_choice = OWN_BLOCK if own else NEXT_BLOCK
        if bundle.route == REFUSED:
            q.block_choice = NOWHERE
            return None, None, reader.faults[0]
        if bundle.route == RUN_AS_CHAIN:
            if own:
                q.block_choice = NOWHERE
                return None, None, SimulationError(
                    "override", "several blocks, block overrides, validation and extensions need"
                    ' block="next"',
                )
            q.block_choice = AS_CHAIN
            return None, None, None
        q.program = program_of(reader)
        if q.program == NULL:
            raise MemoryError
        for i in range(q.program.call_count):
            tx = &q.program.calls[i].tx
            if tx.access_count or tx.authorization_count or tx.blob_count:
                lists = True
        kept = list(reader.plan.kept) if lists else None
        faults = dict(reader.plan.faults) if reader.plan.faults else None
        return kept, faults, None

    def remove(self, ids: object) -> list[int]:
        """Removes questions. Returns the ids of those that existed."""
        cdef uint32_t position
        found = []
        for id in ids:
            at = self.positions.pop(id, None)
            if at is None:
                continue
            found.append(id)
            position = at
            self.questions.items[position].id = 0
            if self.questions.items[position].block_choice == NEXT_BLOCK:
                self.next_count -= 1
            else:
                self.own_count -= 1
            if self.busy:
                self.graves.append(position)
            else:
                self.bury(position)
        return found

    cdef int bury(self, uint32_t position) except -1:
        cdef Question* q = self.questions.items[position]
        cdef BaseComparison comparison = self.comparison_of(q)
        reads, q.reads = q.reads, NULL
        self.questions.bytes -= sizeof(Question) + len(self.payloads[position])
        if q.program != NULL:
            self.questions.bytes -= q.program.size
        if q.answer != NULL:
            self.questions.bytes -= sizeof(Answer) + answer_size(q.answer)
        comparison.forget(reads)
        PyMem_RawFree(reads)
        self.payloads[position] = None
        for values in (self.kept, self.faults, self.errors, self.chains, self.views):
            values.pop(position, None)
        # A position in the list of waiting questions must not be used for another question.
        if q.waits:
            self.unwait(position)
        question_list_remove(&self.questions, position)
        return 0

    cdef void unwait(self, uint32_t position) noexcept:
        """Removes a question from the list of waiting questions."""
        cdef QuestionList* s = &self.questions
        cdef uint32_t i
        for i in range(s.waiting_count):
            if s.waiting[i] == position:
                s.waiting_count -= 1
                s.waiting[i] = s.waiting[s.waiting_count]
                return

    def set_priority(self, id: int, int64_t priority) -> None:
        """Changes the priority of a question. Raises KeyError for an unknown id."""
        self.question(id).priority = priority

    # ------------------------------------------------------------------------------------------
    # bases and jobs

    @property
    def waiting(self) -> int:
        """Returns the number of questions that wait to run."""
        return self.questions.waiting_count

    @property
    def memory(self) -> int:
        """Returns the memory of questions, reads, answers and indexes in bytes."""
        return (
            self.questions.bytes + self.own.memory + self.next.memory
            + (self.own.reads + self.next.reads) * sizeof(uint32_t)
        )

    def begin(self, uint64_t sequence) -> None:
        """Starts the comparison with the next base, which has the number ``sequence``."""
        self.questions.sequence = sequence

    def job(self, budget: float | None) -> Job:
        """Returns a job with all waiting questions, in the order in which they run.

        ``budget``: seconds after which workers stop taking questions; None: no limit.
        """
        cdef Job job = Job.__new__(Job)
        cdef QuestionList* s = &self.questions
        cdef Question* q
        cdef uint32_t i, chains = 0
        cdef size_t at, count = 0
        job.outcomes = <Outcome*>PyMem_RawCalloc(s.waiting_count + 1, sizeof(Outcome))
        job.questions = <const Question**>PyMem_RawCalloc(
            s.waiting_count + 1, sizeof(Question*)
        )
        if job.outcomes == NULL or job.questions == NULL:
            raise MemoryError
        if budget is not None:
            job.limit = clock() + max(int(budget * 1e9), 0)
        with nogil:
            for i in range(s.waiting_count):
                q = s.items[s.waiting[i]]
                if q.block_choice == AS_CHAIN or q.block_choice == NOWHERE:
                    s.waiting[chains] = s.waiting[i]
                    chains += 1
                else:
                    job.questions[count] = q
                    count += 1
            qsort(job.questions, count, sizeof(Question*), by_turn)
            for at in range(count):
                job.outcomes[at].question = job.questions[at].position
        job.count = count
        for i in range(chains):
            job.chains.append((s.waiting[i], s.items[s.waiting[i]].id))
        s.waiting_count = 0
        self.busy = True
        return job

    def chain_question(self, uint32_t position) -> object:
        """Returns a question that runs as a chain; None if the question is invalid."""
        if self.question_at(position).block_choice == NOWHERE:
            return None
        return pickle.loads(self.payloads[position])[0]

    # ------------------------------------------------------------------------------------------
    # publishing

    def publish(self, Job job not None, base: object) -> list[Change]:
        """Stores the answers of a job and returns the changes. Questions that did not run keep
        waiting.

        Holds the GIL only while it creates changes: the thread may have a low priority, and the
        slice builder would wait for it.
        """
        cdef Outcome* out
        cdef size_t i, made = 0
        cdef Change change
        found = []
        with nogil:
            for i in range(job.count):
                self.take_over(&job.outcomes[i])
        for i in range(job.count):
            out = &job.outcomes[i]
            if out.state == PUBLISHED or self.questions.items[out.question].id == 0:
                continue  # the answer is as before, or the question was removed during the job
            made += 1
            if made % GIL_ITEMS == 0:
                with nogil:
                    pass          # another thread may have the GIL
            change = self.publish_one(out, base)
            if change is not None:
                found.append(change)
        return found

    cdef bint register(self, Question* q, Outcome* out) noexcept nogil:
        """Stores the reads of a run. Returns False if memory is exhausted: the question runs again.
        """
        if q.block_choice == NEXT_BLOCK:
            if out.reads != NULL:
                return self.next.register(q.position, out)
            if q.reads != NULL:
                self.next.keep_reads(q.reads)
        else:
            if out.reads != NULL:
                return self.own.register(q.position, out)
            if q.reads != NULL:
                self.own.keep_reads(q.reads)
        return True

    cdef void take_over(self, Outcome* out) noexcept nogil:
        """Stores the reads and the answer of a run in the question."""
        cdef QuestionList* s = &self.questions
        cdef Question* q = s.items[out.question]
        if q.id == 0 or (out.state != ANSWERED and out.state != REFUSED_RUN):
            return
        if not self.register(q, out):
            out.state = NO_MEMORY
            return
        out.is_first = q.answer == NULL and not q.has_error
        if out.answer != NULL:
            out.marks = differences(q.answer, out.answer)
            if q.answer != NULL:
                s.bytes -= sizeof(Answer) + answer_size(q.answer)
                if atomic_decrement(&q.answer.references) == 0:
                    PyMem_RawFree(q.answer)
            q.answer = out.answer
            out.answer = NULL
            s.bytes += sizeof(Answer) + answer_size(q.answer)
        if out.state == REFUSED_RUN or out.is_first or out.marks or q.has_error or q.is_reported:
            return
        q.waits = False
        q.sequence = s.sequence
        self.unchanged = self.unchanged + 1
        out.state = PUBLISHED

    cdef Change publish_one(self, Outcome* out, object base):
        cdef uint32_t position = out.question
        cdef Question* q = self.questions.items[position]
        cdef uint32_t marks = out.marks
        error = None
        if out.state == STOPPED_RUN and out.is_late:
            read_base(out)
            if not self.register(q, out):
                return self.postpone(position)
            out.is_first = q.answer == NULL and not q.has_error
            error = out_of_time(None)
        elif out.state == NOT_RUN or out.state == STOPPED_RUN or out.state == NO_MEMORY:
            return self.postpone(position)
        elif out.state == REFUSED_RUN:
            error = exception_of(out.refusal, self.faults.get(position, {}))
            with_position(error, out.refusal, 0, 0)
            error = refused_call(error, pickle.loads(self.payloads[position])[0])
        before = self.errors.pop(position, None)
        q.has_error = error is not None
        if error is not None:
            self.errors[position] = error
        if (before is None) != (error is None) or (
            before is not None and not same_error(before, error)
        ):
            marks |= ERROR
        return self.report(q, position, base, NEW if out.is_first else marks)

    cdef Change report(self, Question* q, uint32_t position, object base, uint32_t marks):
        """Marks the answer as current. Returns a Change if the answer changed or was stale."""
        cdef bint was_reported = q.is_reported
        q.waits = q.is_reported = False
        q.sequence = self.questions.sequence
        if marks == 0:
            self.unchanged += 1
            if not was_reported:
                return None
        return change_of(
            q.id, q.priority, base, False, marks, q.answer, self.chains.get(position),
            self.errors.get(position), self.views.get(position),
        )

    def postpone(self, uint32_t position) -> None:
        """Lets a question that did not run wait again."""
        self.question_at(position)
        if not question_list_wait_again(&self.questions, position):
            raise MemoryError

    def publish_chain(self, uint32_t position, base: object, Results results) -> Change | None:
        """Stores the answer of a simulated chain. ``results``: None for an invalid question.

        A chain counts as reading the whole base, so it runs again on every base.
        """
        cdef Question* q = self.question_at(position)
        cdef Results former = self.chains.get(position)
        cdef uint32_t marks = NEW
        cdef Outcome out
        if q.id == 0:
            return None           # the question was removed during the job
        if results is None:
            results = refused_results(self.errors[position])
        memset(&out, 0, sizeof(Outcome))
        if q.block_choice != NOWHERE:
            read_base(&out)
            registered = self.own.register(position, &out)
            outcome_free(&out)
            if not registered:
                self.postpone(position)
                return None
        if former is not None:
            marks = marks_of_results(former, results)
        self.chains[position] = results
        return self.report(q, position, base, marks)

    def end(self, base: object) -> list[Change]:
        """Ends a job. Returns changes for questions that became stale."""
        cdef QuestionList* s = &self.questions
        cdef Question* q
        cdef uint32_t i
        self.busy = False
        for position in self.graves:
            self.bury(position)
        self.graves.clear()
        found = []
        for i in range(s.waiting_count):
            q = s.items[s.waiting[i]]
            if q.sequence != 0 and q.sequence < s.sequence and not q.is_reported:
                q.is_reported = True
                found.append(self.standing_of(q.id, base))
        return found

    def standing_of(self, id: int, bases: object) -> Change:
        """Returns the current answer to a question. ``bases`` maps a sequence to its `Base`."""
        cdef Question* q = self.question(id)
        cdef uint64_t sequence = q.sequence
        cdef bint stale = q.waits and sequence != 0 and sequence != self.questions.sequence
        if not q.waits:
            sequence = self.questions.sequence
        position = self.positions[id]
        return change_of(
            q.id, q.priority, bases(sequence), stale, 0, q.answer, self.chains.get(position),
            self.errors.get(position) if sequence else None, self.views.get(position),
        )

    # ------------------------------------------------------------------------------------------
    # pickling

    def saved(self) -> dict[str, object]:
        """Returns everything except the bases: questions, answers and reads."""
        cdef Question* q
        questions = []
        for id, position in self.positions.items():
            q = self.questions.items[<uint32_t>position]
            reads = None if q.reads == NULL else self.comparison_of(q).reads_of(q.reads)
            answer = None
            if q.answer != NULL:
                answer = PyBytes_FromStringAndSize(
                    <const char*>q.answer, <Py_ssize_t>(sizeof(Answer) + answer_size(q.answer))
                )
            questions.append((
                id, self.payloads[position], q.priority, q.waits, q.is_reported, q.sequence,
                reads, answer, self.errors.get(position), self.chains.get(position),
            ))
        return {
            "layout": layout(),
            "last_id": self.last_id,
            "sequence": self.questions.sequence,
            "unchanged": self.unchanged,
            "questions": questions,
            "own": self.own.saved(),
            "next": self.next.saved(),
        }

    def restore(self, saved: dict) -> None:
        """Fills an empty engine with what `saved` returned."""
        cdef Question* q
        cdef Answer* answer
        cdef Outcome out
        cdef uint32_t position
        cdef bint failed = False
        if saved["layout"] != layout():
            raise ValueError("this watch was pickled by another version of fastevm")
        self.questions.sequence = saved["sequence"]
        self.unchanged = saved["unchanged"]
        for id, payload, priority, waits, is_reported, sequence, reads, packed, error, chain in (
            saved["questions"]
        ):
            question, view, own = pickle.loads(payload)
            self.last_id = id - 1
            self.add(question, payload, priority, own, view)
            position = self.positions[id]
            q = self.questions.items[position]
            q.is_reported, q.sequence = is_reported, sequence
            if not waits:
                q.waits = False
                self.unwait(position)
            if error is not None:
                self.errors[position] = error
                q.has_error = True
            if chain is not None:
                self.chains[position] = chain
            if packed is not None:
                answer = <Answer*>PyMem_RawMalloc(PyBytes_GET_SIZE(packed))
                if answer == NULL:
                    raise MemoryError
                memcpy(answer, PyBytes_AS_STRING(packed), PyBytes_GET_SIZE(packed))
                answer.references = 1
                q.answer = answer
                self.questions.bytes += PyBytes_GET_SIZE(packed)
            if reads is not None:
                memset(&out, 0, sizeof(Outcome))
                read_saved(&out, reads)
                failed = not self.comparison_of(q).register(position, &out)
                outcome_free(&out)
                if failed:
                    raise MemoryError
        self.last_id = saved["last_id"]
        self.own.restore(saved["own"])
        self.next.restore(saved["next"])

    def sequences(self) -> set[int]:
        """Returns the sequence numbers of the bases of all answers whose questions wait to run."""
        cdef QuestionList* s = &self.questions
        cdef uint32_t i
        return {s.items[s.waiting[i]].sequence for i in range(s.waiting_count)}


cdef Results refused_results(object error):
    """Returns Results for an invalid question: one refused bundle."""
    cdef Results results = Results.__new__(Results)
    cdef BundleRecord record
    memset(&record, 0, sizeof(BundleRecord))
    results.first, results.count = 0, 1
    results.faults[0] = error
    if not buffer_append(&results.bundles, &record, sizeof(BundleRecord)):
        raise MemoryError
    return results


cdef uint32_t marks_of_results(Results before, Results after):
    """Returns how the answers of two simulated chains differ, as bits of Difference."""
    cdef BundleResult old = result_of(before)
    cdef BundleResult new = result_of(after)
    cdef uint32_t marks = marks_of_outcomes(old.calls, new.calls)
    if old.success != new.success:
        marks |= STATUS
    if old.balance_changes != new.balance_changes:
        marks |= BALANCES
    if (old.error is None) != (new.error is None) or (
        old.error is not None and not same_error(old.error, new.error)
    ):
        marks |= ERROR
    return marks


cdef bint same_error(object a, object b):
    return type(a) is type(b) and str(a) == str(b)


def layout() -> tuple[int, ...]:
    """Returns the sizes of the records that a pickled watch contains as bytes."""
    return (
        sizeof(Answer), sizeof(BundleRecord), sizeof(CallRecord), sizeof(LogCopy), sizeof(Read),
        sizeof(BlockContext),
    )


cdef int read_saved(Outcome* out, tuple reads) except -1:
    """Fills in an outcome with the reads that `BaseComparison.reads_of` returned."""
    cdef bytes records = reads[0]
    out.fingerprint[0], out.fingerprint[1] = 0, 0    # every process has its own seed
    out.oldest_hash, out.newest_hash = reads[1], reads[2]
    out.reads = <Read*>PyMem_RawMalloc(PyBytes_GET_SIZE(records) + 1)
    if out.reads == NULL:
        raise MemoryError
    memcpy(out.reads, PyBytes_AS_STRING(records), PyBytes_GET_SIZE(records))
    out.read_count = <uint32_t>(PyBytes_GET_SIZE(records) // sizeof(Read))
    return 0


cdef int read_base(Outcome* out) except -1:
    """Fills in an outcome that reads the whole base: the question runs again on every base."""
    outcome_free(out)
    out.reads = <Read*>PyMem_RawCalloc(1, sizeof(Read))
    if out.reads == NULL:
        raise MemoryError
    out.reads[0].kind = READ_BASE
    out.read_count = 1
    return 0
