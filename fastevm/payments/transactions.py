"""Transactions of the merchant: reserved, signed, recorded, sent, followed to their end.

An order's transition and the reservation of its transaction are one database transaction. Signing
comes after it, since a signer may be slow; what it signed is stored before it is sent. A crash at
any moment leaves something that any process can sign, or send again unchanged.
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
from fastevm.payments.chain import FEE_CALLS, Head, Quote, head_of, quote_of
from fastevm.payments.erc6492 import calls_in, in_one_call
from fastevm.payments.errors import (
    NodeRefusal,
    NodeUnreachable,
    PaymentError,
    UnknownOrder,
    UnreadableRow,
)
from fastevm.payments.events import entries, read_log
from fastevm.payments.node import NodeClient
from fastevm.payments.orders import (
    Draft,
    Order,
    Progress,
    Purpose,
    Submission,
    reserved_place,
)
from fastevm.payments.policy import Policy
from fastevm.payments.preflight import failure_of
from fastevm.payments.reasons import Reason
from fastevm.payments.settlement import pays
from fastevm.payments.signer import Signer, fields_of
from fastevm.payments.states import State, Trigger
from fastevm.payments.store import Store
from fastevm.payments.vault import Vault
from fastevm.rpc_client.messages import Call

log: Final = logging.getLogger(__name__)

FILL_GAS: Final = 21_000
SIGN_LIMIT: Final = 20.0  # seconds that a signer may take
SIGN_PAUSE: Final = 1.0  # seconds until a signer that failed is asked again
NO_BLOCK: Final = 0  # the number of a block hash that stands for "not canonical yet"
LEASE_MARGIN: Final = 10.0  # seconds beyond a signer's own, until another process may sign
MOST_AHEAD: Final = 64  # transactions of one account that a pool is given; the others wait
KNOWN_WORDS: Final = ("already known", "already imported")
PAST_WORDS: Final = ("nonce too low",)
FUNDS_WORDS: Final = ("insufficient funds",)
# In which states an order's transaction is sent again when it has gone: also where a reorganisation
# may just have begun to take a success back.
WANTED: Final = {
    Purpose.CAPTURE: (State.CAPTURING, State.CAPTURED, State.PAID),
    Purpose.CANCEL: (State.CANCELLING, State.CANCELLED),
    Purpose.HOLD: (State.AUTHORIZING, State.HELD, State.CAPTURED, State.PAID, State.RELEASED),
}


class Situation(NamedTuple):
    """What the node said of the account and the chain, all in one answer."""

    head: Head | None
    nonce: int
    funds: int
    quote: Quote
    outcomes: dict[int, tuple[Any, Any]]


class Prepared(NamedTuple):
    """A transaction without its nonce, and the least nonce that the node allows."""

    least_nonce: int
    fields: dict[str, Any]
    head: int


class Transactions:
    """Sends and follows what one signer submits."""

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
        self._count: int | None = None  # the account's nonce, as last seen
        self._pending = 0  # the same with what the pool had then
        self.lease: float = getattr(signer, "sign_seconds", SIGN_LIMIT + LEASE_MARGIN)
        # used nonces without a receipt, and the head when that was first seen
        self._missing: dict[int, int] = {}

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
        """Reserve a call of the order's token, or of the contract ``to``; sign it, and send it.

        Without ``gas`` it is estimated: a call that would revert raises :class:`NodeRefusal` and
        leaves nothing behind. :class:`IllegalTransition` when somebody else was faster. A node or a
        signer that does not answer is no error: the next :meth:`follow` goes on.
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
        return await self.carry_on(reserved)

    async def submit_many(
        self, calls: Mapping[str, tuple[str, bytes]], gas: int
    ) -> dict[str, PaymentError]:
        """Reserve one transaction that makes these calls (target, data) of orders; send it.

        A call that reverts is undone alone. What `submit` would raise for an order stands in the
        answer by its id, and the others go without it.
        """
        to, data = in_one_call(list(calls.values()), may_fail=True)
        made = await self.prepare(to, data, gas)

        def draft(nonce: int, taken: Sequence[str]) -> Draft:
            _, data = in_one_call([calls[one] for one in taken], may_fail=True)
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
            await self.carry_on(reserved)
        return refused

    async def prepare(self, to: str, data: bytes, gas: int | None = None) -> Prepared:
        """A transaction for a call of ``to``, at the fees of now."""
        call = {"from": self.signer.address, "to": to, "data": "0x" + data.hex()}
        asked: list[Call] = [("eth_getTransactionCount", [self.signer.address, "pending"])]
        asked += FEE_CALLS
        if gas is None:
            asked.append(("eth_estimateGas", [call, "pending"]))
        count, *told = await self.node.batch(asked)
        fees = told[: len(FEE_CALLS)]
        for answer in (count, told[-1]) if gas is None else (count,):
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
            "gas": self.policy.gas_limit(int(told[-1], 16) if gas is None else gas),
            "maxFeePerGas": quote.cap,
            "maxPriorityFeePerGas": quote.tip,
        }
        return Prepared(self._pending, fields, 0 if head is None else head.number)

    def drafted(self, order_id: str, made: Prepared) -> Callable[[int], Draft]:
        """What seals such a transaction once its nonce is known."""
        return partial(self._draft, order_id, made.fields, made.head)

    def _draft(self, order_id: str, fields: dict[str, Any], head: int, nonce: int) -> Draft:
        place = reserved_place(order_id, self.signer.address, nonce)
        members = json.dumps({**fields, "nonce": nonce}).encode()
        return Draft(
            sealed=self.vault.seal(members, place),
            gas=fields["gas"],
            max_fee=fields["maxFeePerGas"],
            priority_fee=fields["maxPriorityFeePerGas"],
            head=head,
            lease=self.lease,
        )

    async def carry_on(self, reserved: Submission) -> Submission:
        """Sign what is reserved, store the bytes, and send them; it may come back unsigned."""
        try:
            async with asyncio.timeout(SIGN_LIMIT):
                raw = await self.signer.sign_transaction(self._members(reserved))
        except Exception as error:  # whatever a signer raises: it did not sign
            names = ", ".join(reserved.subjects)
            log.warning("order %s: not signed: %s", names, type(error).__name__)
            await to_thread(self._not_signed, reserved, type(error).__name__)
            return reserved
        transaction_hash = "0x" + keccak(raw).hex()
        place = replace(reserved, transaction_hash=transaction_hash).place
        sealed = self.vault.seal(raw, place)
        recorded = await to_thread(self.store.signed, reserved.number, transaction_hash, sealed)
        if recorded is None:
            return reserved  # somebody else has signed it, or it was replaced
        if self._count is None or recorded.account_nonce < self._horizon(self._count):
            await self._send(recorded)
        return recorded

    def _horizon(self, count: int) -> int:
        """The first account nonce that no pool is given yet."""
        return max(count, self._pending) + MOST_AHEAD

    def _not_signed(self, reserved: Submission, detail: str) -> None:
        until = time.time() + SIGN_PAUSE
        self.store.postpone(reserved.number, Reason.SIGNER_UNAVAILABLE, detail, until)
        self._explain(reserved, Reason.SIGNER_UNAVAILABLE, "whoever holds the key did not sign")

    def _explain(self, one: Submission, reason: Reason | None, detail: str = "") -> None:
        """Say in the order why it waits; a movement says it when it ends."""
        if one.movement or one.purpose is Purpose.FILL:
            return
        states = self.store.states(one.orders)
        for order_id in one.subjects:
            # an order whose call failed inside has gone its own way
            if not one.orders or (order_id in states and states[order_id].in_flight):
                self.store.explain(order_id, reason, detail)

    def _members(self, one: Submission) -> dict[str, Any]:
        """The members of a transaction, signed or not."""
        opened = self.vault.open(one.sealed, one.place)
        if one.transaction_hash:
            return fields_of(opened)
        members: dict[str, Any] = json.loads(opened)
        return members

    async def _send(self, submission: Submission) -> None:
        """Hand it to the node; whatever the node says, it stays recorded and is followed."""
        raw = self.vault.open(submission.sealed, submission.place)
        try:
            await self.node.call("eth_sendRawTransaction", "0x" + raw.hex())
        except NodeUnreachable:
            log.warning("transaction %s was not sent yet", submission.transaction_hash)
            return
        except NodeRefusal as refusal:
            if any(words in refusal.message for words in PAST_WORDS):
                return  # it is canonical, or another one is: the next look tells
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
        """Say why the node does not take it; it stays recorded and is tried again."""
        short = any(words in refusal.message for words in FUNDS_WORDS)
        reason = Reason.GAS_FUNDS if short else Reason.UNKNOWN
        log.warning("transaction %s is refused: %s", submission.transaction_hash, reason.value)
        detail = f"refused with code {refusal.code}"
        if short:
            cost = submission.gas * submission.max_fee
            detail = f"the sender cannot pay {cost} wei for gas"
        self.store.note(submission.number, Progress.REFUSED, reason, detail)
        self._explain(submission, reason, detail)

    # --- following --------------------------------------------------------------------------------

    async def follow(self, seen: "Situation | None" = None, *, behind: bool = False) -> None:
        """Look at every transaction whose outcome is open, and do what each one needs.

        Those whose account nonce is not used in the canonical chain are open whatever was seen of
        them before: a reorganisation may have taken them back. ``seen`` is what a look has just
        told. A node that is ``behind`` is not believed that a nonce is lost.
        """
        if seen is not None and not behind:
            self._count = seen.nonce
        groups = await to_thread(self.open_groups)
        if seen is None or any(one.number not in seen.outcomes for one in _all(groups)):
            seen = await self.situation(groups)
        if self._count is None or seen.nonce < self._count:
            # the first look, or a reorganisation: older nonces are open again
            self._count = seen.nonce
            groups = await to_thread(self.open_groups)
            seen = await self.situation(groups)
        wanted = await to_thread(self._wanted, groups)
        sent = [any(one.progress is Progress.SENT for one in group) for group in groups]
        last = max((at for at, one in enumerate(sent) if one), default=-1)
        for at, group in enumerate(groups):
            blocks = at < last
            await self._follow_group(group, seen, wanted, behind=behind, blocks=blocks)

    def asked(self, groups: Sequence[Sequence[Submission]]) -> list[Call]:
        """What :meth:`read` wants to know."""
        sender = self.signer.address
        outcomes: list[Call] = [
            (method, [one.transaction_hash])
            for one in _all(groups)
            if one.transaction_hash
            for method in ("eth_getTransactionReceipt", "eth_getTransactionByHash")
        ]
        return [
            ("eth_getTransactionCount", [sender, "latest"]),
            ("eth_getBalance", [sender, "latest"]),
            *FEE_CALLS,
            *outcomes,
        ]

    def read(self, groups: Sequence[Sequence[Submission]], answers: Sequence[Any]) -> Situation:
        """The answers to :meth:`asked`."""
        count, funds = answers[:2]
        fees, outcomes = answers[2 : 2 + len(FEE_CALLS)], answers[2 + len(FEE_CALLS) :]
        for answer in (count, funds, *outcomes):
            if isinstance(answer, PaymentError):
                raise answer
        signed = [one for one in _all(groups) if one.transaction_hash]
        pairs = zip(outcomes[::2], outcomes[1::2], strict=True)
        known = {one.number: pair for one, pair in zip(signed, pairs, strict=True)}
        unsigned = {one.number: (None, None) for one in _all(groups) if not one.transaction_hash}
        head = None if isinstance(fees[1], NodeRefusal) else head_of(fees[1])
        quote = quote_of(fees, self.policy)
        return Situation(head, int(count, 16), int(funds, 16), quote, known | unsigned)

    async def situation(self, groups: Sequence[Sequence[Submission]]) -> Situation:
        """Ask for account, fees and outcomes."""
        return self.read(groups, await self.node.batch(self.asked(groups)))

    def open_groups(self) -> list[list[Submission]]:
        """Transactions by account nonce: unused nonces, unfinished ones, those of open orders.

        Those far ahead of the account wait: a pool keeps few of them, and none can be included.
        """
        found = self.store.open_submissions(self.chain_id, self.signer.address, self._count)
        groups = [list(group) for _, group in groupby(found, lambda one: one.account_nonce)]
        least = groups[0][0].account_nonce if groups else 0
        most = self._horizon(least if self._count is None else self._count)
        return [one for one in groups if one[0].account_nonce < most]

    async def _follow_group(
        self,
        group: Sequence[Submission],
        seen: Situation,
        wanted: Collection[int],
        *,
        behind: bool,
        blocks: bool,
    ) -> None:
        """Transactions of one account nonce, oldest first: at most one of them is ever included.

        ``blocks``: transactions that the node has taken wait behind this nonce.
        """
        included = next((one for one in group if seen.outcomes[one.number][0]), None)
        if included is not None:
            await self._note_included(group, included, seen.outcomes[included.number][0])
            return
        newest = group[-1]
        if newest.account_nonce < seen.nonce:
            if not behind and self._is_lost(newest.account_nonce, seen):
                for one in group:
                    await self._note(one, Progress.LOST)
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

    def _is_lost(self, nonce: int, seen: Situation) -> bool:
        """Whether a used nonce has no receipt at a later head either.

        One node may count a transaction whose receipt another one does not know yet.
        """
        if seen.head is None:
            return False
        return seen.head.number > self._missing.setdefault(nonce, seen.head.number)

    async def _push(self, newest: Submission, seen: Situation) -> None:
        """Send again what the node does not know; make dearer what waits for too long."""
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
        """The account could not pay: try again once it can, never with higher fees.

        When fees fell it is signed anew with lower ones: no pool has it. When others wait behind
        it, which the account can pay, its nonce is given to nobody, and its order is free again.
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

    def _wanted(self, groups: Sequence[Sequence[Submission]]) -> set[int]:
        """The newest ones whose order or movement still waits for them.

        A FILL is always wanted: it only keeps the nonces without a gap.
        """
        newest = [group[-1] for group in groups]
        names = {name for one in newest if not one.movement for name in one.subjects}
        states = self.store.states(names)
        moves = {one.movement for one in newest if one.movement}
        live = {key for key in moves if (found := self.store.movement(key)) and found.state.counts}
        return {
            one.number
            for one in newest
            if one.purpose is Purpose.FILL
            or one.movement in live
            or (
                not one.movement
                and any(states.get(name) in WANTED[one.purpose] for name in one.subjects)
            )
        }

    async def _note(
        self,
        one: Submission,
        progress: Progress,
        reason: Reason | None = None,
        detail: str = "",
        cost: int | None = None,
    ) -> None:
        if one.progress is not progress or cost not in (None, one.cost):
            await to_thread(self.store.note, one.number, progress, reason, detail, cost)

    async def _note_included(
        self, group: Sequence[Submission], included: Submission, receipt: dict[str, Any]
    ) -> None:
        for one in group:
            if one is not included:
                await self._note(one, Progress.REPLACED)
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

    async def _failures(
        self, included: Submission, receipt: dict[str, Any]
    ) -> dict[str, tuple[Reason, str]]:
        """Whose payments a transaction of several orders did not make, and why.

        The receipt's events decide. The reason is what the same call says on the state of its
        block, as for a transaction that reverts.
        """
        if included.purpose is Purpose.FILL:
            return {}
        missing = await to_thread(self._unpaid, included, receipt)
        if not missing:
            return {}
        members = fields_of(self.vault.open(included.sealed, included.place))
        calls = dict(zip(included.orders, calls_in(bytes(members["data"])), strict=True))
        asked: list[Call] = []
        for order_id in missing:
            to, data = calls[order_id]
            call = {"from": included.sender, "to": to, "data": "0x" + data.hex()}
            asked.append(("eth_call", [call, receipt["blockNumber"]]))
        answers = await self.node.batch(asked)
        # a call has at most all but one 64th of what is left
        short = int(receipt["gasUsed"], 16) * 64 >= included.gas * 63
        other = Reason.UNKNOWN, "failed inside, but would succeed at the end of its block"
        if short:
            other = Reason.OUT_OF_GAS, f"almost all of {included.gas} gas was used"
        return {
            order_id: failure_of(told) if isinstance(told, NodeRefusal) else other
            for order_id, told in zip(missing, answers, strict=True)
        }

    def _unpaid(self, included: Submission, receipt: dict[str, Any]) -> list[str]:
        """The orders of a transaction whose payments are not in its receipt."""
        logs = [read for one in receipt["logs"] if (read := read_log(one)) is not None]
        missing = []
        for order_id in included.orders:
            try:
                order = self.store.order(order_id)
            except (UnknownOrder, UnreadableRow):
                continue  # it was put aside: nothing waits for it
            found = entries(logs, order.authorization.domain.token)
            if not any(pays(entry, order) for entry in found):
                missing.append(order_id)
        return missing

    async def _failure(self, submission: Submission, receipt: dict[str, Any]) -> tuple[Reason, str]:
        """Why a canonical transaction failed: the same call again, on the state of its block."""
        if int(receipt["gasUsed"], 16) >= submission.gas:
            return Reason.OUT_OF_GAS, f"all of {submission.gas} gas was used"
        fields = fields_of(self.vault.open(submission.sealed, submission.place))
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
        """Send the same call again, or nothing at all (FILL), with higher fees.

        With the same fees it would be the same transaction: that one is sent again.
        """
        now = seen.quote.cap, seen.quote.tip
        fees = self.policy.bumped((old.max_fee, old.priority_fee), now)
        if old.progress in (Progress.RESERVED, Progress.REFUSED) and old.bump == 0:
            fees = now  # no pool has what it replaces
        if fees == (old.max_fee, old.priority_fee) and purpose is old.purpose:
            await self._send(old)
        elif fees is not None:
            await self._reserve(old, purpose, fees, seen)

    async def _reserve(
        self, old: Submission, purpose: Purpose, fees: tuple[int, int], seen: Situation
    ) -> None:
        fields = _drafted(self._members(old))
        # some wei more each time: no two transactions of one account nonce are the same
        cap = fees[0] + old.bump + 1
        fields |= {"maxFeePerGas": cap, "maxPriorityFeePerGas": fees[1]}
        if purpose is Purpose.FILL:
            fields |= {"to": self.signer.address, "data": "0x", "value": 0, "gas": FILL_GAS}
        head = 0 if seen.head is None else seen.head.number
        draft = partial(self._draft, old.order_id, fields, head)
        new = await to_thread(self.store.replace, old, purpose, draft)
        if new is not None:
            await self.carry_on(new)


def cost_of(receipt: dict[str, Any]) -> int:
    """What a transaction cost in wei: gas, and on OP chains the data's and the operator's fee."""

    def number(name: str) -> int:
        return int(receipt.get(name) or "0x0", 16)

    gas = number("gasUsed")
    operator = gas * number("operatorFeeScalar") // 10**6 + number("operatorFeeConstant")
    return gas * number("effectiveGasPrice") + number("l1Fee") + operator


def _drafted(members: dict[str, Any]) -> dict[str, Any]:
    """The members that are drafted, bytes as hex."""
    to, data = members["to"], members["data"]
    return {
        "type": 2,
        **{name: members[name] for name in ("chainId", "value", "gas")},
        "to": to_checksum_address(to),
        "data": data if isinstance(data, str) else "0x" + bytes(data).hex(),
    }


def _all(groups: Sequence[Sequence[Submission]]) -> list[Submission]:
    return [one for group in groups for one in group]
