"""Transactions of the merchant: recorded before they are sent, followed until nothing can change.

A transaction is signed and written down in the same database transaction that marks its order, and
only then sent, so that a crash at any moment leaves something that can be sent again unchanged.
"""

import logging
import time
from asyncio import to_thread
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from eth_utils.crypto import keccak

from fastevm.payments.errors import NodeRefusal, NodeUnreachable, PaymentError
from fastevm.payments.node import NodeClient
from fastevm.payments.orders import Draft, Order, Progress, Purpose, Submission, sealed_place
from fastevm.payments.policy import Policy, Signer, fields_of
from fastevm.payments.preflight import failure_of
from fastevm.payments.reasons import Reason
from fastevm.payments.states import State, Trigger
from fastevm.payments.store import Store, every_order
from fastevm.payments.vault import Vault

log: Final = logging.getLogger(__name__)

FILL_GAS: Final = 21_000
NO_BLOCK: Final = 0  # the number of a block hash that stands for "not canonical yet"
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
        """Record a call of the order's token, or of the contract ``to``, and send it.

        Without ``gas`` it is estimated: a call that would revert raises :class:`NodeRefusal` and
        leaves nothing behind. :class:`IllegalTransition` when somebody else was faster. A node that
        does not answer is no error: what is recorded is sent by the next :meth:`follow`.
        """
        target = to or order.authorization.domain.token
        nonce, fields = await self._fields(target, data, gas)
        submission = await to_thread(
            self.store.submit,
            order.id,
            trigger,
            purpose,
            sender=self.signer.address,
            least_nonce=nonce,
            draft=lambda nonce: self._draft(order.id, {**fields, "nonce": nonce}),
        )
        await self._send(submission)
        return submission

    async def _fields(self, to: str, data: bytes, gas: int | None) -> tuple[int, dict[str, Any]]:
        """The account's next nonce as the node knows it, and a transaction without its nonce."""
        call = {"from": self.signer.address, "to": to, "data": "0x" + data.hex()}
        asked: list[Any] = [
            ("eth_getTransactionCount", [self.signer.address, "pending"]),
            ("eth_getBlockByNumber", ["pending", False]),
        ]
        if gas is None:
            asked.append(("eth_estimateGas", [call, "pending"]))
        answers = _results(await self.node.batch(asked))
        limit = int(answers[2], 16) if gas is None else gas
        cap, tip = self.policy.fees(_base_fee(answers[1]))
        fields = {
            "chainId": self.chain_id,
            "to": to,
            "data": call["data"],
            "value": 0,
            "gas": limit + limit * self.policy.gas_margin_percent // 100,
            "maxFeePerGas": cap,
            "maxPriorityFeePerGas": tip,
        }
        return int(answers[0], 16), fields

    def _draft(self, order_id: str, fields: dict[str, Any]) -> Draft:
        raw = self.signer.sign_transaction(fields)
        transaction_hash = "0x" + keccak(raw).hex()
        return Draft(
            transaction_hash=transaction_hash,
            sealed=self.vault.seal(raw, sealed_place(order_id, transaction_hash)),
            gas=fields["gas"],
            max_fee=fields["maxFeePerGas"],
            priority_fee=fields["maxPriorityFeePerGas"],
        )

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
                await self._refused(submission, refusal)
                return
        log.info(
            "order %s: %s is sent as transaction %s",
            submission.order_id, submission.purpose.value, submission.transaction_hash,
        )  # fmt: skip
        await to_thread(self.store.note, submission.transaction_hash, Progress.SENT)

    async def _refused(self, submission: Submission, refusal: NodeRefusal) -> None:
        """Say why the node does not take it; it stays recorded and is tried again."""
        short = any(words in refusal.message for words in FUNDS_WORDS)
        reason = Reason.GAS_FUNDS if short else Reason.UNKNOWN
        log.warning("transaction %s is refused: %s", submission.transaction_hash, reason.value)
        detail = f"refused with code {refusal.code}"
        await to_thread(
            self.store.note, submission.transaction_hash, Progress.REFUSED, reason, detail
        )

    # --- following --------------------------------------------------------------------------------

    async def follow(self) -> None:
        """Look at every transaction whose fate is open, and do what each one needs.

        Those whose account nonce is not used in the canonical chain are open whatever was seen of
        them before: a reorganisation may have taken them back.
        """
        sender = self.signer.address
        told = _results(
            await self.node.batch(
                [
                    ("eth_getTransactionCount", [sender, "latest"]),
                    ("eth_getBlockByNumber", ["pending", False]),
                ]
            )
        )
        count, base_fee = int(told[0], 16), _base_fee(told[1])
        groups = await to_thread(self._open_groups, count)
        everything = [one for group in groups for one in group]
        fates = await self._fates(everything)
        for group in groups:
            await self._follow_group(group, fates, count, base_fee)

    def _open_groups(self, count: int) -> list[list[Submission]]:
        """Transactions by account nonce: unused nonces, unfinished ones, those of open orders."""
        ours = partial(self.store.submissions, chain_id=self.chain_id, sender=self.signer.address)
        found = [*ours(least_nonce=count), *ours(waiting=True)]
        moving = (State.CAPTURING, State.CANCELLING)
        for order in every_order(self.store, moving, chain_id=self.chain_id):
            found += ours(order_id=order.id)
        nonces = {one.account_nonce for one in found}
        return [ours(account_nonce=nonce) for nonce in sorted(nonces)]

    async def _fates(self, submissions: Sequence[Submission]) -> dict[str, tuple[Any, Any]]:
        """Receipt and transaction of each, as the node knows them now."""
        asked = [
            (method, [one.transaction_hash])
            for one in submissions
            for method in ("eth_getTransactionReceipt", "eth_getTransactionByHash")
        ]
        answers = _results(await self.node.batch(asked)) if asked else []
        return {
            one.transaction_hash: (answers[2 * at], answers[2 * at + 1])
            for at, one in enumerate(submissions)
        }

    async def _follow_group(
        self,
        group: Sequence[Submission],
        fates: dict[str, tuple[Any, Any]],
        count: int,
        base_fee: int,
    ) -> None:
        """Transactions of one account nonce, oldest first: at most one of them is ever included."""
        included = next((one for one in group if fates[one.transaction_hash][0]), None)
        if included is not None:
            await self._note_included(group, included, fates[included.transaction_hash][0])
            return
        newest = group[-1]
        if newest.account_nonce < count:
            for one in group:
                await to_thread(self.store.note, one.transaction_hash, Progress.LOST)
            return
        wanted = await to_thread(self._is_wanted, newest)
        if not wanted:
            await self._replace(newest, base_fee, Purpose.FILL)
            return
        known = fates[newest.transaction_hash][1] is not None
        old = time.time() - newest.created_at > self.policy.bump_after
        if old and (known or newest.progress is Progress.REFUSED):
            await self._replace(newest, base_fee, newest.purpose)
        elif not known:
            await self._send(newest)

    def _is_wanted(self, submission: Submission) -> bool:
        """Whether its order still waits for it; a FILL only keeps the nonces without a gap."""
        if submission.purpose is Purpose.FILL:
            return True
        return self.store.order(submission.order_id).state in WANTED[submission.purpose]

    async def _note_included(
        self, group: Sequence[Submission], included: Submission, receipt: dict[str, Any]
    ) -> None:
        for one in group:
            if one is not included:
                await to_thread(self.store.note, one.transaction_hash, Progress.REPLACED)
        note, key = self.store.note, included.transaction_hash
        if int(receipt["blockHash"] or "0x0", 16) == NO_BLOCK:
            await to_thread(note, key, Progress.PRE_CONFIRMED)
        elif int(receipt["status"], 16) == 1:
            await to_thread(note, key, Progress.SUCCEEDED)
        elif included.progress is not Progress.REVERTED:
            reason, detail = await self._failure(included, receipt)
            await to_thread(note, key, Progress.REVERTED, reason, detail)

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

    async def _replace(self, old: Submission, base_fee: int, purpose: Purpose) -> None:
        """Send the same call again, or nothing at all (FILL), with higher fees."""
        fees = self.policy.bumped((old.max_fee, old.priority_fee), base_fee)
        if fees is None or (purpose is not Purpose.FILL and old.bump >= self.policy.most_bumps):
            return
        new = await to_thread(self.store.replace, old, purpose, self._raised(old, purpose, fees))
        if new is not None:
            await self._send(new)

    def _raised(
        self, old: Submission, purpose: Purpose, fees: tuple[int, int]
    ) -> Callable[[int], Draft]:
        def draft(nonce: int) -> Draft:
            fields = fields_of(self.vault.open(old.sealed, old.place))
            fields |= {"maxFeePerGas": fees[0], "maxPriorityFeePerGas": fees[1], "nonce": nonce}
            if purpose is Purpose.FILL:
                fields |= {"to": self.signer.address, "data": "0x", "value": 0, "gas": FILL_GAS}
            return self._draft(old.order_id, fields)

        return draft


def ended(submissions: Iterable[Submission], purpose: Purpose) -> Submission | None:
    """The last transaction of a purpose, if none of them can be included any more.

    None while one waits or has succeeded.
    """
    last = None
    for one in submissions:
        if one.purpose is not purpose:
            continue
        if one.progress.waiting or one.progress is Progress.SUCCEEDED:
            return None
        last = one
    return last


def _base_fee(block: dict[str, Any]) -> int:
    return int(block.get("baseFeePerGas") or "0x0", 16)


def _results(answers: Sequence[Any]) -> Sequence[Any]:
    """The answers, if none is a refusal."""
    for answer in answers:
        if isinstance(answer, PaymentError):
            raise answer
    return answers
