"""The merchant's transactions: reserve, sign, record, send, and follow to the end.

One database transaction applies an order's transition and reserves its transaction. Signing comes
later, because a signer may be slow; signed bytes are stored before they are sent. So after a crash
at any moment, any process can sign what is reserved or resend what is signed.
"""

import asyncio
import json
import logging
import time
from asyncio import to_thread
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple

from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from fastevm.core.primitives.replace import replace
from fastevm.payments.chain import (
    FEE_CALLS,
    Head,
    InclusionTimes,
    Quote,
    check_chain_id,
    head_of,
    quote_of,
)
from fastevm.payments.erc6492 import calls_in, in_one_call
from fastevm.payments.errors import (
    NodeRefusal,
    NodeUnreachable,
    PaymentError,
    UnknownOrder,
    UnreadableRow,
    VaultError,
)
from fastevm.payments.events import entries, read_log
from fastevm.payments.hidden import hiding
from fastevm.payments.movements import Movement
from fastevm.payments.node import NodeClient
from fastevm.payments.orders import (
    Draft,
    Order,
    Progress,
    Purpose,
    Submission,
    reserved_context,
)
from fastevm.payments.policy import Policy
from fastevm.payments.preflight import failure_of
from fastevm.payments.reasons import Reason
from fastevm.payments.settlement import is_covered, pays
from fastevm.payments.signer import Signer, fields_of
from fastevm.payments.states import State, Trigger
from fastevm.payments.store import Store
from fastevm.payments.store_key import check_key
from fastevm.payments.vault import Vault
from fastevm.rpc_client.messages import Call

log: Final = logging.getLogger(__name__)

FILL_GAS: Final = 21_000
SIGN_LIMIT: Final = 20.0  # seconds, timeout of a signer
SIGN_PAUSE: Final = 1.0  # seconds until a failed signer is called again
NO_BLOCK: Final = 0  # block hash of a pre-confirmed receipt
LEASE_MARGIN: Final = 10.0  # seconds after SIGN_LIMIT until another process may sign
MOST_AHEAD: Final = 64  # pending transactions per account sent to the pool
LOST_SECONDS: Final = 600.0  # seconds without a receipt until LOST, if the node has no old state
MOST_TIMED: Final = 1_024  # submissions whose inclusion is timed at the same time
KNOWN_WORDS: Final = ("already known", "already imported")
PAST_WORDS: Final = ("nonce too low",)
FUNDS_WORDS: Final = ("insufficient funds",)
# States in which an order's transaction is sent again if the node lost it. Includes states after a
# success, because a reorganisation may just have removed it.
WANTED: Final = {
    Purpose.CAPTURE: (State.CAPTURING, State.CAPTURED, State.PAID),
    Purpose.CANCEL: (State.CANCELLING, State.CANCELLED),
    Purpose.HOLD: (State.AUTHORIZING, State.HELD, State.CAPTURED, State.PAID, State.RELEASED),
}


class Situation(NamedTuple):
    """The account and the chain, as read from the node in one batch.

    ``nonce`` is the account nonce at the newest block. ``funds`` are in wei. ``outcomes`` has
    (receipt, transaction) by submission number; each is None if the node does not have it.
    """

    head: Head | None
    nonce: int
    funds: int
    quote: Quote
    outcomes: dict[int, tuple[Any, Any]]


@hiding("fields")  # the call may contain a signature
class Prepared(NamedTuple):
    """A transaction without nonce, and the lowest nonce that the node allows."""

    least_nonce: int
    fields: dict[str, Any]
    head: int
    time: int  # timestamp of the pending block, 0 if unknown


class Transactions:
    """Sends and follows the transactions of one signer."""

    def __init__(
        self,
        node: NodeClient,
        store: Store,
        vault: Vault,
        signer: Signer,
        policy: Policy,
        *,
        chain_id: int,
    ) -> None:
        self.node, self.store, self.vault, self.chain_id = node, store, vault, chain_id
        self.signer, self.policy = signer, policy
        self._has_key = False  # whether the vault is known to have the store's key
        self._count: int | None = None  # the account's canonical nonce, as last seen
        self._pending = 0  # the account's nonce including the pool
        self.lease: float = getattr(signer, "sign_seconds", SIGN_LIMIT + LEASE_MARGIN)
        # used nonces without a receipt: head and monotonic time at which each was first seen
        self._missing: dict[int, tuple[int, float]] = {}
        self.inclusion = InclusionTimes()
        # timestamp of the pending block at the submission, by submission number
        self._submitted_at: dict[int, int] = {}

    # --- sending ----------------------------------------------------------------------------------

    async def submit(
        self,
        order: Order,
        trigger: Trigger,
        purpose: Purpose,
        data: bytes,
        gas: int | None = None,
        to: str | None = None,
    ) -> Submission:
        """Reserves, signs and sends a call of the order's token, or of the contract ``to``.

        Without ``gas``, the node estimates the gas. If the call would then revert, raises
        :class:`NodeRefusal` and changes nothing. Raises :class:`IllegalTransition` if another
        process was first. If signing or sending fails, the next :meth:`follow` tries again.
        """
        made = await self.prepare(to or order.authorization.domain.token, data, gas)
        reserved = await to_thread(
            self.store.submit,
            order.id,
            trigger,
            purpose,
            sender=self.signer.address,
            least_nonce=made.least_nonce,
            draft=self.drafted(order.id, made),
            most_today=self.policy.most_per_day if purpose is Purpose.CAPTURE else None,
        )
        self._submitted(reserved, made)
        return await self.carry_on(reserved)

    async def submit_many(
        self, calls: Mapping[str, tuple[str, bytes]], gas: int
    ) -> dict[str, PaymentError]:
        """Reserves, signs and sends one transaction with these calls (target, data) by order id.

        A call that reverts does not affect the other calls. The transaction leaves out orders for
        which `submit` would raise an error. Returns these errors by order id.
        """
        to, data = in_one_call(list(calls.values()), may_fail=True)
        made = await self.prepare(to, data, gas)

        def draft(nonce: int, taken: Sequence[str]) -> Draft:
            _, data = in_one_call([calls[order_id] for order_id in taken], may_fail=True)
            return self._draft("", {**made.fields, "data": "0x" + data.hex()}, made.head, nonce)

        reserved, refused = await to_thread(
            self.store.submit_many,
            tuple(calls),
            Trigger.SUBMIT_CAPTURE,
            Purpose.CAPTURE,
            chain_id=self.chain_id,
            sender=self.signer.address,
            least_nonce=made.least_nonce,
            draft=draft,
            most_today=self.policy.most_per_day,
        )
        if reserved is not None:
            self._submitted(reserved, made)
            await self.carry_on(reserved)
        return refused

    def _submitted(self, reserved: Submission, made: Prepared) -> None:
        if made.time and len(self._submitted_at) < MOST_TIMED:
            self._submitted_at[reserved.number] = made.time

    async def prepare(self, to: str, data: bytes, gas: int | None = None) -> Prepared:
        """Builds a transaction that calls ``to``, with the current fees.

        Raises :class:`WrongChain` if the node is on another chain than the token, and
        :class:`VaultError` if the vault lacks the store's key.
        """
        await self.check_key()
        call = {"from": self.signer.address, "to": to, "data": "0x" + data.hex()}
        asked: list[Call] = [
            ("eth_chainId", []),
            ("eth_getTransactionCount", [self.signer.address, "pending"]),
        ]
        asked += FEE_CALLS
        if gas is None:
            asked.append(("eth_estimateGas", [call, "pending"]))
        chain_id, count, *answers = await self.node.batch(asked)
        check_chain_id(chain_id, self.chain_id)
        fees = answers[: len(FEE_CALLS)]
        for answer in (count, answers[-1]) if gas is None else (count,):
            if isinstance(answer, NodeRefusal):
                raise answer
        quote = quote_of(fees, self.policy)
        head = None if isinstance(fees[1], NodeRefusal) else head_of(fees[1])
        self._pending = int(count, 16)
        fields = {
            "type": 2,
            "chainId": self.chain_id,
            "to": to,
            "data": call["data"],
            "value": 0,
            "gas": self.policy.gas_limit(int(answers[-1], 16) if gas is None else gas),
            "maxFeePerGas": quote.cap,
            "maxPriorityFeePerGas": quote.tip,
        }
        return Prepared(self._pending, fields, 0 if head is None else head.number, time_of(fees[0]))

    async def check_key(self) -> None:
        """Raises VaultError if the vault lacks the store's key. Checks until it succeeds once."""
        if not self._has_key:
            await to_thread(check_key, self.store, self.vault)
            self._has_key = True

    def drafted(self, order_id: str, made: Prepared) -> Callable[[int], Draft]:
        """Returns a function that encrypts the transaction once its nonce is known."""
        return partial(self._draft, order_id, made.fields, made.head)

    def _draft(self, order_id: str, fields: dict[str, Any], head: int, nonce: int) -> Draft:
        context = reserved_context(order_id, self.signer.address, nonce)
        members = json.dumps({**fields, "nonce": nonce}).encode()
        return Draft(
            sealed=self.vault.seal(members, context),
            gas=fields["gas"],
            max_fee=fields["maxFeePerGas"],
            priority_fee=fields["maxPriorityFeePerGas"],
            head=head,
            lease=self.lease,
        )

    async def carry_on(self, reserved: Submission) -> Submission:
        """Signs a reserved transaction, stores the signed bytes, and sends them.

        If signing fails, the transaction stays reserved. If its nonce is too far ahead of the
        account, the transaction is sent later.
        """
        try:
            async with asyncio.timeout(SIGN_LIMIT):
                raw = await self.signer.sign_transaction(self._members(reserved))
        except Exception as error:  # any exception means that the signer did not sign
            names = ", ".join(reserved.subjects)
            log.warning("order %s: not signed: %s", names, type(error).__name__)
            await to_thread(self._not_signed, reserved, type(error).__name__)
            return reserved
        transaction_hash = "0x" + keccak(raw).hex()
        context = replace(reserved, transaction_hash=transaction_hash).seal_context
        sealed = self.vault.seal(raw, context)
        recorded = await to_thread(self.store.signed, reserved.number, transaction_hash, sealed)
        if recorded is None:
            return reserved  # another process has signed or replaced the transaction
        if self._count is None or recorded.account_nonce < self._horizon(self._count):
            await self._send(recorded)
        return recorded

    def _horizon(self, count: int) -> int:
        """Returns the first account nonce that is not sent to the pool yet."""
        return max(count, self._pending) + MOST_AHEAD

    def _not_signed(self, reserved: Submission, detail: str) -> None:
        until = time.time() + SIGN_PAUSE
        self.store.postpone(reserved.number, Reason.SIGNER_UNAVAILABLE, detail, until)
        self._explain(reserved, Reason.SIGNER_UNAVAILABLE, "the signer did not sign")

    def _explain(self, submission: Submission, reason: Reason | None, detail: str = "") -> None:
        """Records why the transaction's orders are waiting. Movements record only failures."""
        if submission.movement or submission.purpose is Purpose.FILL:
            return
        states = self.store.states(submission.orders)
        for order_id in submission.subjects:
            # an order whose call in a batch failed is not waiting for it any more
            if not submission.orders or (order_id in states and states[order_id].in_flight):
                self.store.explain(order_id, reason, detail)

    def _members(self, submission: Submission) -> dict[str, Any]:
        """Returns the fields of a transaction, signed or not."""
        opened = self.vault.open(submission.sealed, submission.seal_context)
        if submission.transaction_hash:
            return fields_of(opened)
        members: dict[str, Any] = json.loads(opened)
        return members

    async def _send(self, submission: Submission) -> None:
        """Sends a transaction. A refused transaction stays recorded, and `follow` checks it."""
        raw = self.vault.open(submission.sealed, submission.seal_context)
        try:
            await self.node.call("eth_sendRawTransaction", "0x" + raw.hex())
        except NodeUnreachable:
            log.warning("transaction %s was not sent yet", submission.transaction_hash)
            return
        except NodeRefusal as refusal:
            if any(words in refusal.message for words in PAST_WORDS):
                return  # the transaction or a replacement is canonical: the next pass reads that
            if not any(words in refusal.message for words in KNOWN_WORDS):
                await to_thread(self._refused, submission, refusal)
                return
        log.info(
            "order %s: %s is sent as transaction %s",
            ", ".join(submission.subjects), submission.purpose.value, submission.transaction_hash,
        )  # fmt: skip
        await to_thread(self._sent, submission)

    def _sent(self, submission: Submission) -> None:
        self.store.note(submission.number, Progress.SENT)
        if submission.progress is Progress.REFUSED or submission.bump:
            self._explain(submission, None)

    def _refused(self, submission: Submission, refusal: NodeRefusal) -> None:
        """Records why the node refuses a transaction, which stays recorded and is sent again."""
        short = any(words in refusal.message for words in FUNDS_WORDS)
        reason = Reason.GAS_FUNDS if short else Reason.UNKNOWN
        log.warning(
            "the node refused transaction %s: %s", submission.transaction_hash, reason.value
        )
        detail = f"the node answered with error code {refusal.code}"
        if short:
            cost = submission.gas * submission.max_fee
            detail = f"the sender cannot pay {cost} wei for gas"
        self.store.note(submission.number, Progress.REFUSED, reason, detail)
        self._explain(submission, reason, detail)

    # --- following --------------------------------------------------------------------------------

    async def follow(
        self,
        seen: "Situation | None" = None,
        *,
        behind: bool = False,
        deep: int | None = None,
    ) -> None:
        """Checks every open transaction and signs, sends, replaces or closes it.

        While its account nonce is unused on the canonical chain, a transaction is open even if it
        succeeded before, because a reorganisation may have removed it. ``seen`` is the situation,
        if the caller has read it. If the node is ``behind``, no transaction is marked as lost.
        ``deep`` is the number of the newest block at the merchant's depth. Raises VaultError if the
        vault lacks the store's key.
        """
        await self.check_key()
        if seen is not None and not behind:
            self._count = seen.nonce
        groups = await to_thread(self.open_groups)
        if seen is None or any(
            submission.number not in seen.outcomes for submission in _all(groups)
        ):
            seen = await self.situation(groups)
        if self._count is None or seen.nonce < self._count:
            # the first pass, or a reorganisation: older nonces are open again
            self._count = seen.nonce
            groups = await to_thread(self.open_groups)
            seen = await self.situation(groups)
        wanted, unsure = await to_thread(self._wanted, groups, deep)
        sent = [
            any(submission.progress is Progress.SENT for submission in group) for group in groups
        ]
        last = max((at for at, waits in enumerate(sent) if waits), default=-1)
        for at, group in enumerate(groups):
            blocks = at < last
            if group[-1].number in unsure and _is_open(group, seen):
                known = any(seen.outcomes[submission.number][1] for submission in group)
                if behind or unsure[group[-1].number] or not (blocks or known):
                    continue
            try:
                await self._follow_group(group, seen, wanted, behind=behind, blocks=blocks)
            except VaultError as error:  # encrypted with a lost key: skips only this nonce
                log.error("transaction %s: %s", group[-1].transaction_hash or "unsigned", error)

    def asked(self, groups: Sequence[Sequence[Submission]]) -> list[Call]:
        """Returns the calls for :meth:`read`, which needs their answers."""
        sender = self.signer.address
        outcomes: list[Call] = [
            (method, [submission.transaction_hash])
            for submission in _all(groups)
            if submission.transaction_hash
            for method in ("eth_getTransactionReceipt", "eth_getTransactionByHash")
        ]
        return [
            ("eth_getTransactionCount", [sender, "latest"]),
            ("eth_getBalance", [sender, "latest"]),
            *FEE_CALLS,
            *outcomes,
        ]

    def read(self, groups: Sequence[Sequence[Submission]], answers: Sequence[Any]) -> Situation:
        """Parses the answers to :meth:`asked`."""
        count, funds = answers[:2]
        fees, outcomes = answers[2 : 2 + len(FEE_CALLS)], answers[2 + len(FEE_CALLS) :]
        for answer in (count, funds, *outcomes):
            if isinstance(answer, PaymentError):
                raise answer
        signed = [submission for submission in _all(groups) if submission.transaction_hash]
        pairs = zip(outcomes[::2], outcomes[1::2], strict=True)
        known = {submission.number: pair for submission, pair in zip(signed, pairs, strict=True)}
        unsigned = {
            submission.number: (None, None)
            for submission in _all(groups)
            if not submission.transaction_hash
        }
        head = None if isinstance(fees[1], NodeRefusal) else head_of(fees[1])
        quote = quote_of(fees, self.policy)
        return Situation(head, int(count, 16), int(funds, 16), quote, known | unsigned)

    async def situation(self, groups: Sequence[Sequence[Submission]]) -> Situation:
        """Reads account, fees and the status of transactions."""
        return self.read(groups, await self.node.batch(self.asked(groups)))

    def open_groups(self) -> list[list[Submission]]:
        """Returns the open transactions, grouped by account nonce.

        Leaves out nonces far ahead of the account: a pool keeps few of them and cannot include
        them.
        """
        found = self.store.open_submissions(self.chain_id, self.signer.address, self._count)
        groups = [
            list(group) for _, group in groupby(found, lambda submission: submission.account_nonce)
        ]
        least = groups[0][0].account_nonce if groups else 0
        most = self._horizon(least if self._count is None else self._count)
        return [group for group in groups if group[0].account_nonce < most]

    async def _follow_group(
        self,
        group: Sequence[Submission],
        seen: Situation,
        wanted: Collection[int],
        *,
        behind: bool,
        blocks: bool,
    ) -> None:
        """Follows the transactions of one account nonce. At most one of them is ever included.

        ``group`` has these transactions, oldest first. If ``blocks`` is true, the node has accepted
        transactions with later nonces, which wait for this nonce.
        """
        included = next(
            (submission for submission in group if seen.outcomes[submission.number][0]), None
        )
        if included is not None:
            receipt = seen.outcomes[included.number][0]
            await self._note_included(group, included, receipt)
            await self._measure(group, receipt, seen.head)
            return
        newest = group[-1]
        if newest.account_nonce < seen.nonce:
            if not behind and await self._is_lost(group, seen):
                for submission in group:
                    await self._note(submission, Progress.LOST)
            return
        self._missing.pop(newest.account_nonce, None)
        if newest.number not in wanted:
            await self._replace(newest, seen, Purpose.FILL)
        elif newest.progress is Progress.RESERVED:
            if await to_thread(self.store.claim, newest.number, self.lease):
                await self.carry_on(newest)
        elif newest.progress is Progress.REFUSED and newest.reason is Reason.GAS_FUNDS:
            await self._afford(newest, seen, blocks=blocks)
        else:
            await self._push(newest, seen)

    async def _is_lost(self, group: Sequence[Submission], seen: Situation) -> bool:
        """Whether a transaction outside of the group has used the group's account nonce.

        A missing receipt does not prove this, because nodes index receipts and transactions later
        than the block that contains them. Returns True if the block in which the nonce was used
        contains none of the group's transactions. If the node lacks that block or its state,
        returns True after ``LOST_SECONDS`` without a receipt.
        """
        nonce = group[-1].account_nonce
        if seen.head is None or any(
            map(_block_of, (seen.outcomes[item.number][1] for item in group))
        ):
            return False
        number, since = self._missing.setdefault(nonce, (seen.head.number, time.monotonic()))
        if seen.head.number <= number:
            return False
        try:
            contents = await self._block_that_used(nonce, group[0].head, seen.head.number)
        except (NodeRefusal, KeyError, TypeError, ValueError):  # pruned state, unknown block
            return time.monotonic() - since > LOST_SECONDS
        return not any(submission.transaction_hash in contents for submission in group)

    async def _block_that_used(self, nonce: int, first: int, last: int) -> Sequence[str]:
        """Returns the transaction hashes of the block that used an account nonce.

        The nonce is used at the end of block number ``last``. The search begins at block number
        ``first`` and continues below if the nonce is used there already. Raises NodeRefusal, or
        KeyError, TypeError or ValueError if the node does not know a block.
        """

        async def is_used(block: str | dict[str, str]) -> bool:
            count = await self.node.call("eth_getTransactionCount", self.signer.address, block)
            return int(count, 16) > nonce

        low = min(first, last)
        while low > 0 and await is_used(hex(low)):
            last, low = low, max(0, low - 2 * (last - low) - 1)
        while last - low > 1:
            middle = (low + last) // 2
            if await is_used(hex(middle)):
                last = middle
            else:
                low = middle
        block = await self.node.call("eth_getBlockByNumber", hex(last), False)
        # another node may have answered, or a reorganisation may have replaced the block
        used = await is_used({"blockHash": block["hash"]})
        if not used or await is_used({"blockHash": block["parentHash"]}):
            raise ValueError("the block is another one")
        hashes: Sequence[str] = block["transactions"]
        return hashes

    async def _push(self, newest: Submission, seen: Situation) -> None:
        """Sends a transaction again if the node does not know it.

        Replaces it with higher fees if it has waited too long.
        """
        known = seen.outcomes[newest.number][1] is not None
        late = self._is_late(newest, seen) and (known or newest.progress is Progress.REFUSED)
        may = newest.purpose is Purpose.FILL or newest.bump < self.policy.most_bumps
        if late and may:
            await self._replace(newest, seen, newest.purpose)
            return
        if not known:
            await self._send(newest)

    def _is_late(self, newest: Submission, seen: Situation) -> bool:
        waited = time.time() - newest.created_at
        if self.policy.bump_after is not None:
            return waited > self.policy.bump_after
        blocks = 0 if seen.head is None else seen.head.number - newest.head
        return waited > self.policy.bump_least and blocks >= self.policy.bump_blocks

    async def _afford(self, newest: Submission, seen: Situation, *, blocks: bool) -> None:
        """Retries a transaction that the account could not pay. Never raises its fees.

        If the current fees are lower and the account can pay them, the transaction is signed again
        with the lower fees, since no pool has the transaction. If transactions that the node has
        accepted wait for the nonce, a FILL uses the nonce. The later transactions can then be
        included, and the order is released.
        """
        quote = seen.quote
        now = quote.cap, quote.tip
        fills = blocks and newest.purpose is not Purpose.FILL
        least = self.policy.base_fee_factor * quote.base_fee + self.policy.least_tip
        if seen.funds >= newest.gas * newest.max_fee:
            await self._send(newest)
        elif newest.max_fee > quote.cap and seen.funds >= newest.gas * quote.cap:
            await self._reserve(newest, newest.purpose, now, seen)
        elif fills and seen.funds >= FILL_GAS * least:
            await self._reserve(newest, Purpose.FILL, (least, self.policy.least_tip), seen)

    def _wanted(
        self, groups: Sequence[Sequence[Submission]], deep: int | None
    ) -> tuple[set[int], dict[int, bool]]:
        """Returns which of the groups' newest transactions are needed, and which refunds must wait.

        The first result has the numbers of transactions that an order or movement still needs. A
        FILL is always needed: it closes a gap in the nonces.

        The second result has the refunds whose payment a reorganisation has moved or removed, by
        transaction number. The value says whether the payment is on the chain again. If it is, the
        refund waits until the payment is at the merchant's depth. If it is not, a FILL uses the
        refund's nonce if the node knows the refund or other transactions wait for the nonce.
        """
        newest = [group[-1] for group in groups]
        names = {
            name for submission in newest if not submission.movement for name in submission.subjects
        }
        states = self.store.states(names)
        wanted: set[int] = set()
        unsure: dict[int, bool] = {}
        for submission in newest:
            if submission.purpose is Purpose.FILL:
                wanted.add(submission.number)
            elif submission.movement:
                movement = self.store.movement(submission.movement)
                if movement is None or not self._is_current(movement, submission):
                    continue
                if is_covered(self.store, movement, deep):
                    wanted.add(submission.number)
                else:
                    unsure[submission.number] = is_covered(self.store, movement, None)
            elif any(
                states.get(name) in WANTED[submission.purpose] for name in submission.subjects
            ):
                wanted.add(submission.number)
        return wanted, unsure

    def _is_current(self, movement: Movement, submission: Submission) -> bool:
        """Whether a movement still needs a transaction.

        After a failure, the movement gets another transaction with a later account nonce. If a
        reorganisation removes the failure, both could succeed, but only one may be sent: the one
        that the ledger shows as included, otherwise the later one.
        """
        if not movement.state.counts:
            return False
        sent = self.store.submissions(movement=movement.key)
        nonces = {item.transaction_hash: item.account_nonce for item in sent}
        nonce = max(nonces.values(), default=submission.account_nonce)
        if movement.settlement is not None:
            nonce = nonces.get(movement.settlement.transaction_hash, nonce)
        return submission.account_nonce == nonce

    async def _note(
        self,
        submission: Submission,
        progress: Progress,
        reason: Reason | None = None,
        detail: str = "",
        cost: int | None = None,
    ) -> None:
        if submission.progress is not progress or cost not in (None, submission.cost):
            await to_thread(self.store.note, submission.number, progress, reason, detail, cost)

    async def _note_included(
        self, group: Sequence[Submission], included: Submission, receipt: dict[str, Any]
    ) -> None:
        for submission in group:
            if submission is not included:
                filled = included.purpose is Purpose.FILL and submission.purpose is Purpose.REFUND
                reason = Reason.NOT_PAID if filled and submission.reason is None else None
                await self._note(submission, Progress.REPLACED, reason)
        if int(receipt["blockHash"] or "0x0", 16) == NO_BLOCK:
            await self._note(included, Progress.PRE_CONFIRMED)
        elif int(receipt["status"], 16) == 1 and included.orders:
            failures = await self._failures(included, receipt)
            note = partial(self.store.note, cost=cost_of(receipt), failures=failures)
            await to_thread(note, included.number, Progress.SUCCEEDED)
        elif int(receipt["status"], 16) == 1:
            await self._note(included, Progress.SUCCEEDED, cost=cost_of(receipt))
        elif included.progress is not Progress.REVERTED:
            reason, detail = await self._failure(included, receipt)
            await self._note(included, Progress.REVERTED, reason, detail, cost_of(receipt))

    async def _measure(
        self, group: Sequence[Submission], receipt: dict[str, Any], head: Head | None
    ) -> None:
        """Observes the inclusion time of a transaction that this process submitted."""
        if int(receipt["blockHash"] or "0x0", 16) == NO_BLOCK:
            return
        submitted = self._submitted_at.pop(group[0].number, None)
        if submitted is None:
            return
        if head is not None and head.number == int(receipt["blockNumber"], 16):
            included = head.timestamp
        else:
            try:
                block = await self.node.call("eth_getBlockByNumber", receipt["blockNumber"], False)
            except PaymentError:
                return
            included = time_of(block)
        if included:
            self.inclusion.add(included - submitted)

    async def _failures(
        self, included: Submission, receipt: dict[str, Any]
    ) -> dict[str, tuple[Reason, str]]:
        """Returns why payments of a batch capture were not made, by order id.

        The events in the receipt show which payments were made. To find a reason, repeats the call
        on the state of the block, as for a reverted transaction.
        """
        if included.purpose is Purpose.FILL:
            return {}
        missing = await to_thread(self._unpaid, included, receipt)
        if not missing:
            return {}
        members = fields_of(self.vault.open(included.sealed, included.seal_context))
        calls = dict(zip(included.orders, calls_in(bytes(members["data"])), strict=True))
        asked: list[Call] = []
        for order_id in missing:
            to, data = calls[order_id]
            call = {"from": included.sender, "to": to, "data": "0x" + data.hex()}
            asked.append(("eth_call", [call, receipt["blockNumber"]]))
        answers = await self.node.batch(asked)
        # a call gets at most 63/64 of the remaining gas (EIP-150)
        short = int(receipt["gasUsed"], 16) * 64 >= included.gas * 63
        other = Reason.UNKNOWN, "the call failed, but would succeed at the end of its block"
        if short:
            other = Reason.OUT_OF_GAS, f"almost all of {included.gas} gas was used"
        return {
            order_id: failure_of(answer) if isinstance(answer, NodeRefusal) else other
            for order_id, answer in zip(missing, answers, strict=True)
        }

    def _unpaid(self, included: Submission, receipt: dict[str, Any]) -> list[str]:
        """Returns the ids of a batch capture's orders that the receipt shows no payment for."""
        logs = [read for raw in receipt["logs"] if (read := read_log(raw)) is not None]
        missing = []
        for order_id in included.orders:
            try:
                order = self.store.order(order_id)
            except (UnknownOrder, UnreadableRow):
                continue  # deleted or unreadable: nothing to update
            found = entries(logs, order.authorization.domain.token)
            if not any(pays(entry, order) for entry in found):
                missing.append(order_id)
        return missing

    async def _failure(self, submission: Submission, receipt: dict[str, Any]) -> tuple[Reason, str]:
        """Returns why a transaction reverted, by repeating its call on the state of its block."""
        if int(receipt["gasUsed"], 16) >= submission.gas:
            return Reason.OUT_OF_GAS, f"all of {submission.gas} gas was used"
        fields = fields_of(self.vault.open(submission.sealed, submission.seal_context))
        call = {
            "from": submission.sender,
            "to": "0x" + bytes(fields["to"]).hex(),
            "data": "0x" + bytes(fields["data"]).hex(),
        }
        try:
            await self.node.call("eth_call", call, receipt["blockNumber"])
        except NodeRefusal as refusal:
            return failure_of(refusal)
        return Reason.UNKNOWN, "reverted, but would succeed at the end of its block"

    async def _replace(self, old: Submission, seen: Situation, purpose: Purpose) -> None:
        """Replaces a transaction by the same call, or by an empty one (FILL), with higher fees.

        If fees and purpose would not change, sends the old transaction again.
        """
        now = seen.quote.cap, seen.quote.tip
        fees = self.policy.bumped((old.max_fee, old.priority_fee), now)
        if old.progress in (Progress.RESERVED, Progress.REFUSED) and old.bump == 0:
            fees = now  # the replaced transaction is in no pool
        if fees == (old.max_fee, old.priority_fee) and purpose is old.purpose:
            await self._send(old)
        elif fees is not None:
            await self._reserve(old, purpose, fees, seen)

    async def _reserve(
        self, old: Submission, purpose: Purpose, fees: tuple[int, int], seen: Situation
    ) -> None:
        fields = _drafted(self._members(old))
        # a few wei more each time, so that no two transactions with this nonce are equal
        cap = fees[0] + old.bump + 1
        fields |= {"maxFeePerGas": cap, "maxPriorityFeePerGas": fees[1]}
        if purpose is Purpose.FILL:
            fields |= {"to": self.signer.address, "data": "0x", "value": 0, "gas": FILL_GAS}
        head = 0 if seen.head is None else seen.head.number
        draft = partial(self._draft, old.order_id, fields, head)
        new = await to_thread(self.store.replace, old, purpose, draft)
        if new is not None:
            await self.carry_on(new)


def _is_open(group: Sequence[Submission], seen: Situation) -> bool:
    """Whether an account nonce is unused, and none of its transactions has a receipt."""
    outcomes = [seen.outcomes[submission.number] for submission in group]
    return group[-1].account_nonce >= seen.nonce and not any(receipt for receipt, _ in outcomes)


def _block_of(transaction: Any) -> Any:
    """Returns the block number of an ``eth_getTransactionByHash`` answer; None if it has none."""
    return transaction.get("blockNumber") if isinstance(transaction, dict) else None


def time_of(block: Any) -> int:
    """Returns a block's timestamp, 0 if ``block`` is not a block."""
    try:
        return int(block["timestamp"], 16)
    except (KeyError, TypeError, ValueError):
        return 0


def cost_of(receipt: dict[str, Any]) -> int:
    """Returns the fees of a transaction in wei.

    These are the gas fee and, on OP-stack chains, the L1 data fee and the operator fee.
    """

    def number(name: str) -> int:
        return int(receipt.get(name) or "0x0", 16)

    gas = number("gasUsed")
    operator = gas * number("operatorFeeScalar") // 10**6 + number("operatorFeeConstant")
    return gas * number("effectiveGasPrice") + number("l1Fee") + operator


def _drafted(members: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields to copy into a new draft, with bytes as hex."""
    to, data = members["to"], members["data"]
    return {
        "type": 2,
        **{name: members[name] for name in ("chainId", "value", "gas")},
        "to": to_checksum_address(to),
        "data": data if isinstance(data, str) else "0x" + bytes(data).hex(),
    }


def _all(groups: Sequence[Sequence[Submission]]) -> list[Submission]:
    return [submission for group in groups for submission in group]
