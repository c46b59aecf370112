"""The preflight: checks at ``pending``, in one batch, whether a capture would succeed now.

A verdict names the reason why a capture would fail, before the capture costs gas. It reserves
nothing: the payer may move the funds a slice later.
"""

import time
from asyncio import to_thread
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from fastevm.core.primitives.replace import replace
from fastevm.payments.authorization import Kind
from fastevm.payments.call_routes import Direct, Route
from fastevm.payments.calls import (
    ERC1271_MAGIC,
    allowance_data,
    balance_data,
    memo_transfer_data,
    permit_nonce_data,
    separator_data,
    state_data,
    wallet_data,
)
from fastevm.payments.chain import FEE_CALLS, Quote, quote_of
from fastevm.payments.erc6492 import MULTICALL, unwrap, without_wrapper
from fastevm.payments.errors import NodeRefusal, NodeUnreachable
from fastevm.payments.escrow import collecting_call, escrow_of
from fastevm.payments.node import Answer, NodeClient
from fastevm.payments.orders import Order
from fastevm.payments.policy import Policy
from fastevm.payments.reasons import Reason, decode_revert
from fastevm.payments.signatures import Signature, fault_of
from fastevm.payments.tokens import money_at
from fastevm.rpc_client.messages import Call

PENDING: Final = "pending"
AFTER_OTHERS: Final = "balance_after_others"
FUNDS_WORDS: Final = "insufficient funds"
# Names of the checks, in the order in which a failed check becomes the report's `reason`: first the
# checks of the token, then the sender's gas, last the checks of what may change before the capture.
BLOCKING: Final = (
    "domain", "policy", "window_now", "nonce", "signature", "balance", "gas", "window_at_capture",
    AFTER_OTHERS,
)  # fmt: skip

SIGNATURE_REASONS: Final = frozenset(
    (
        Reason.SIGNATURE_LENGTH,
        Reason.SIGNATURE_S,
        Reason.SIGNATURE_V,
        Reason.SIGNATURE_SIGNER,
    )
)
# If a capture reverts for one of these reasons, the token's policy (pause, blocked accounts) has
# not blocked it.
BEHIND_POLICY: Final = SIGNATURE_REASONS | {
    Reason.NOT_YET_VALID,
    Reason.EXPIRED,
    Reason.NONCE_CONSUMED,
    Reason.PERMIT_EARLY,
    Reason.BALANCE,
}
# The verdict that a revert reason belongs to. Reasons that are not in this table belong to
# "signature" if they are in SIGNATURE_REASONS, otherwise to "policy".
_VERDICTS: Final = {
    Reason.NONCE_CONSUMED: "nonce",
    Reason.NOT_YET_VALID: "window_now",
    Reason.EXPIRED: "window_now",
    Reason.BALANCE: "balance",
}


class Verdict(Struct, frozen=True):
    """The result of a check. ``ok`` is None if the check was not possible.

    ``reason`` says why the check failed.
    """

    name: str
    ok: bool | None
    reason: Reason | None = None
    detail: str = ""


class Report(Struct, frozen=True):
    """All verdicts on an order, and number and timestamp of the block they are based on.

    ``gas`` is the estimate for the capture in its own transaction, None if the node gave no
    estimate.
    """

    order_id: str
    block_number: int
    timestamp: int
    verdicts: tuple[Verdict, ...]
    gas: int | None = None

    @property
    def ok(self) -> bool:
        """Whether no check fails."""
        return all(verdict.ok is not False for verdict in self.verdicts)

    @property
    def capturable(self) -> bool:
        """Whether a capture would succeed now. Ignores the payer's other orders."""
        return all(
            verdict.ok is not False for verdict in self.verdicts if verdict.name != AFTER_OTHERS
        )

    @property
    def reason(self) -> Reason | None:
        """The first reason in ``BLOCKING`` that prevents a capture; None if there is none.

        BALANCE_LATER comes last: it says only that the payer's other orders may take the money.
        """
        failing = {verdict.name: verdict.reason for verdict in self.verdicts if verdict.ok is False}
        return next((failing[name] for name in BLOCKING if name in failing), None)

    @property
    def summary(self) -> str:
        """The failing verdicts as text."""
        failing = [
            f"{verdict.name}: {verdict.detail}" for verdict in self.verdicts if verdict.ok is False
        ]
        return "; ".join(failing) or "ready"

    def refused(self, reason: Reason, detail: str) -> "Report":
        """Returns a copy in which the verdict for ``reason`` fails."""
        name = _VERDICTS.get(reason, "signature" if reason in SIGNATURE_REASONS else "policy")
        failed = Verdict(name, False, reason, detail)
        changed = tuple(failed if verdict.name == name else verdict for verdict in self.verdicts)
        return replace(self, verdicts=changed)

    def verdict(self, name: str) -> Verdict:
        """Returns the verdict of this name."""
        return next(verdict for verdict in self.verdicts if verdict.name == name)


class Batch:
    """A set of named calls, sent in one JSON-RPC batch. Calls with equal names are sent once."""

    def __init__(self) -> None:
        self._calls: dict[Any, Call] = {}
        self._answers: dict[Any, Answer] = {}

    def ask(self, name: Any, method: str, *params: Any) -> None:
        """Adds a call."""
        self._calls[name] = (method, params)

    async def send(self, node: NodeClient) -> None:
        """Sends the calls."""
        answers = await node.batch(list(self._calls.values()))
        self._answers = dict(zip(self._calls, answers, strict=True))

    def answer(self, name: Any) -> Answer:
        """Returns a result or a NodeRefusal."""
        return self._answers[name]

    def number(self, name: Any) -> int | None:
        """Returns a quantity or word as a number; None if the call failed or returned nothing."""
        answer = self._answers[name]
        if not isinstance(answer, str) or len(answer) <= 2:
            return None
        return int(answer, 16)

    def output(self, name: Any) -> bytes | None:
        """Returns the output of a call; None if it failed."""
        answer = self._answers[name]
        return bytes.fromhex(answer[2:]) if isinstance(answer, str) else None


class Preflight:
    """Checks orders against one node. ``signature_of`` decrypts an order's signature."""

    def __init__(
        self,
        node: NodeClient,
        sender: str,
        signature_of: Callable[[Order], Signature | None],
        *,
        policy: Policy,
        margin: Callable[[], Awaitable[int]],
        outstanding: Callable[[], int] = lambda: 0,
        clock: Callable[[], float] = time.time,
        route: Route | None = None,
    ) -> None:
        self.node = node
        self.sender, self.route = sender, route or Direct(sender)
        self.signature_of = signature_of
        self.policy, self.margin = policy, margin
        self.capture_in = 0  # seconds after the pending block; margin of the last check
        self.outstanding = outstanding
        self.quote: Quote | None = None
        self.promised = 0  # maximum cost of the sender's pending transactions, wei
        self._clock = clock
        self._chain_time: int | None = None

    async def check(self, orders: Sequence[Order], others: Sequence[Order] = ()) -> list[Report]:
        """Returns one report for each of ``orders``.

        ``others`` are further stored authorizations of the same payers. The amounts that they may
        transfer count against the balance. Raises NodeUnreachable.
        """
        if not orders:
            return []
        signatures = {order.id: self.signature_of(order) for order in orders}
        self.capture_in = await self.margin()
        batch = Batch()
        batch.ask("chain", "eth_chainId")
        batch.ask("block", "eth_getBlockByNumber", PENDING, False)
        batch.ask("funds", "eth_getBalance", self.sender, "latest")
        for at, (method, params) in enumerate(FEE_CALLS):
            batch.ask(("fees", at), method, *params)
        for order in {order.id: order for order in (*others, *orders)}.values():
            self._ask_shared(batch, order)
        for order in orders:
            self._ask_capture(batch, order, signatures[order.id])
        await batch.send(self.node)
        block = self._block(batch)
        self.quote = quote_of(
            [batch.answer(("fees", at)) for at in range(len(FEE_CALLS))], self.policy
        )
        self.promised = await to_thread(self.outstanding)
        self._chain_time = int(block["timestamp"], 16)
        book = {order.id: order for order in (*others, *orders)}
        claims = _claims(batch, list(book.values()))
        return [
            _OrderChecks(self, batch, order, signatures[order.id], claims).report()
            for order in orders
        ]

    def questions(self, orders: Sequence[Order]) -> list[tuple[dict[str, str], list[str]]]:
        """Returns calls for the node to watch, each with the ids of its orders.

        The answer of a call changes if a verdict on balance, nonce, signature or policy changes.
        Changes of gas prices and windows change no answer: they need periodic checks.
        """
        balances: dict[tuple[str, str], list[str]] = defaultdict(list)
        found: list[tuple[dict[str, str], list[str]]] = []
        for order in orders:
            token, terms = order.authorization.domain.token, order.authorization.terms
            balances[token, terms.payer].append(order.id)
            signature = self.signature_of(order)
            if signature is not None:
                to, data = self.route.through(*collecting_call(order, signature))
                call = {"from": self.sender, "to": to, "data": "0x" + data.hex()}
                found.append((call, [order.id]))
        for (token, payer), ids in balances.items():
            found.append(({"to": token, "data": "0x" + balance_data(payer).hex()}, ids))
        return found

    @staticmethod
    def _block(batch: Batch) -> dict[str, Any]:
        """Returns the pending block, or the latest if the node has no pending block."""
        for name in ("block", ("fees", 1)):
            block = batch.answer(name)
            if isinstance(block, dict):
                return block
        if isinstance(block, NodeRefusal):
            raise block
        raise NodeUnreachable("the node returned neither a pending nor a latest block")

    def _ask_shared(self, batch: Batch, order: Order) -> None:
        """Adds the calls about the order's token, payer and nonce.

        Orders with the same token or payer share some of these calls.
        """
        domain, terms = order.authorization.domain, order.authorization.terms
        token, payer = domain.token, terms.payer
        batch.ask(("separator", token), *_call(token, separator_data()))
        batch.ask(("balance", token, payer), *_call(token, balance_data(payer)))
        batch.ask(("code", payer), "eth_getCode", payer, PENDING)
        permit = order.authorization.permit
        if permit is not None:
            batch.ask(("consumed", order.id), *_call(token, permit_nonce_data(payer)))
            batch.ask(("allowance", order.id), *_call(token, allowance_data(payer, permit.spender)))
        elif order.authorization.kind is not Kind.MEMO:
            batch.ask(("consumed", order.id), *_call(token, state_data(payer, terms.nonce)))

    def _ask_transfer(self, batch: Batch, order: Order) -> None:
        """Asks whether the payer's own transfer would succeed."""
        terms = order.authorization.terms
        data = memo_transfer_data(terms.recipient, terms.value, terms.nonce)
        token = order.authorization.domain.token
        request = {"from": terms.payer, "to": token, "data": "0x" + data.hex()}
        batch.ask(("capture", order.id), "eth_call", request, PENDING)

    def _ask_capture(self, batch: Batch, order: Order, signature: Signature | None) -> None:
        target = _needed(order, signature)[0]
        batch.ask(("target", target), "eth_getCode", target, PENDING)
        if order.authorization.kind is Kind.MEMO:
            self._ask_transfer(batch, order)
        if signature is None:
            return
        authorization = order.authorization
        to, data = self.route.through(*collecting_call(order, signature))
        request = {"from": self.sender, "to": to, "data": "0x" + data.hex()}
        inside = self._inside_window(order)
        # if the window is closed, simulates at a time inside the window, to test the policy too;
        # the first override, {}, changes no state
        overrides: list[Any] = [] if inside is None else [{}, {"time": hex(inside)}]
        batch.ask(("capture", order.id), "eth_call", request, PENDING, *overrides)
        batch.ask(("gas", order.id), "eth_estimateGas", request, PENDING)
        if authorization.permit is not None:
            return  # tokens recover the key of a permit, even if the payer has code
        payer = authorization.terms.payer
        question = _call(payer, wallet_data(authorization.digest, without_wrapper(signature)))
        batch.ask(("wallet", order.id), *question)

    def _inside_window(self, order: Order) -> int | None:
        """Returns a time inside the window if the chain's time is outside, otherwise None."""
        terms = order.authorization.terms
        now = int(self._clock()) if self._chain_time is None else self._chain_time
        inside = min(max(now, terms.valid_after + 1), terms.valid_before - 1)
        return None if inside == now or inside >= 2**64 else inside


def _usable(batch: Batch, order: Order) -> Verdict:
    """Whether nonce or permit of an order is still usable. ``ok`` is None if this is unknown."""
    authorization = order.authorization
    if authorization.kind is Kind.MEMO:
        return Verdict("nonce", True, detail="the payer sends the money himself")
    consumed = batch.number(("consumed", order.id))
    if authorization.permit is None:
        if consumed is None:
            return Verdict("nonce", None, detail="authorizationState failed")
        if consumed:
            return Verdict("nonce", False, Reason.NONCE_CONSUMED, "used or cancelled")
        return Verdict("nonce", True)
    allowance, nonce = batch.number(("allowance", order.id)), authorization.permit.nonce
    if consumed is None or allowance is None:
        return Verdict("nonce", None, detail="nonces or allowance failed")
    if consumed < nonce:
        detail = f"the payer's next permit has nonce {consumed}, this one {nonce}"
        return Verdict("nonce", False, Reason.PERMIT_EARLY, detail)
    if consumed > nonce and allowance < authorization.terms.value:
        detail = f"permit {nonce} was used, and the allowance is {allowance:,} units"
        return Verdict("nonce", False, Reason.NONCE_CONSUMED, detail)
    if consumed > nonce:
        return Verdict("nonce", True, detail="somebody submitted the permit: its allowance counts")
    return Verdict("nonce", True)


def _needed(order: Order, signature: Signature | None) -> tuple[str, Reason, str]:
    """Returns the contract that a capture calls, and reason and text in case it is missing.

    A call to an account without code succeeds and moves nothing.
    """
    authorization = order.authorization
    if authorization.permit is not None:
        spender = authorization.permit.spender
        return spender, Reason.NO_COLLECTOR, f"permit collector at {spender}: deploy it"
    chain_id = authorization.domain.chain_id
    if order.annex:
        escrow = escrow_of(order)
        return escrow, Reason.NO_ESCROW, f"escrow at {escrow} on chain {chain_id}: holds need it"
    if signature is not None and unwrap(signature.secret_bytes) is not None:
        text = f"Multicall3 at {MULTICALL} on chain {chain_id}: undeployed wallets need it"
        return MULTICALL, Reason.NO_MULTICALL, text
    token = authorization.domain.token
    return token, Reason.NO_TOKEN, f"contract at {token} on chain {chain_id}"


def _call(to: str, data: bytes) -> tuple[str, dict[str, str], str]:
    return "eth_call", {"to": to, "data": "0x" + data.hex()}, PENDING


def _claims(batch: Batch, book: Sequence[Order]) -> dict[tuple[str, str], dict[str, int]]:
    """Returns the token units that each unused authorization may still transfer.

    Maps (token, payer) to the units by order id.
    """
    claims: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for order in book:
        if _usable(batch, order).ok:
            terms = order.authorization.terms
            key = order.authorization.domain.token, terms.payer
            claims[key][order.id] = terms.value
    return claims


class _OrderChecks:
    """Computes the verdicts on one order from the answers of a batch."""

    def __init__(
        self,
        preflight: Preflight,
        batch: Batch,
        order: Order,
        signature: Signature | None,
        claims: dict[tuple[str, str], dict[str, int]],
    ) -> None:
        self.preflight, self.batch, self.order = preflight, batch, order
        self.signature, self.claims = signature, claims
        self.authorization = order.authorization
        self.by_payer = order.authorization.kind is Kind.MEMO
        self.terms, self.token = order.authorization.terms, order.authorization.domain.token
        block = preflight._block(batch)
        self.number, self.time = int(block["number"], 16), int(block["timestamp"], 16)
        self.outcome = self._simulated()

    def report(self) -> Report:
        """Returns the report. Later verdicts refer to earlier ones."""
        verdicts: tuple[Verdict, ...] = (
            self._domain(),
            self._signature(),
            self._window("window_now", self.time),
            self._window("window_at_capture", self.time + self.preflight.capture_in),
            self._nonce(),
            self._balance(),
            self._balance_after_others(),
            self._policy(),
            self._gas(),
        )
        domain = self.authorization.domain
        money = money_at(domain.chain_id, domain.token)
        verdicts = tuple(
            replace(verdict, detail=money.spelled(verdict.detail)) for verdict in verdicts
        )
        gas = None if self.signature is None else self.batch.number(("gas", self.order.id))
        return Report(self.order.id, self.number, self.time, verdicts, gas)

    def _simulated(self) -> tuple[Reason, str] | None:
        """Returns why the simulated capture failed.

        Returns None if it succeeded or was not simulated.
        """
        if self.signature is None and not self.by_payer:
            return None
        answer = self.batch.answer(("capture", self.order.id))
        return failure_of(answer) if isinstance(answer, NodeRefusal) else None

    def _domain(self) -> Verdict:
        domain = self.authorization.domain
        chain_id = self.batch.number("chain")
        if chain_id != domain.chain_id:
            detail = f"the node's chain id is {chain_id}, signed for {domain.chain_id}"
            return Verdict("domain", False, Reason.WRONG_DOMAIN, detail)
        separator = self.batch.output(("separator", self.token))
        if not separator:
            return Verdict("domain", False, Reason.NO_TOKEN, "the token has no domain separator")
        if separator != domain.separator:
            detail = "name, version, chain id or address differ from the token's"
            return Verdict("domain", False, Reason.WRONG_DOMAIN, detail)
        target, reason, words = _needed(self.order, self.signature)
        if self.batch.output(("target", target)) == b"":
            return Verdict("domain", False, reason, f"no {words}")
        return Verdict("domain", True)

    def _signature(self) -> Verdict:
        if self.by_payer:
            return Verdict("signature", None, detail="nothing to sign")
        if self.signature is None:
            return Verdict("signature", False, Reason.SIGNATURE_LENGTH, "no signature is stored")
        code = self.batch.output(("code", self.terms.payer))
        if code and self.authorization.permit is None:
            answer = self.batch.output(("wallet", self.order.id)) or b""
            if len(answer) >= 32 and answer[:4] == ERC1271_MAGIC:
                return Verdict("signature", True, detail="accepted by the payer's contract")
            detail = "the payer's contract rejects the signature"
            return Verdict("signature", False, Reason.SIGNATURE_SIGNER, detail)
        # the simulation verifies an ERC-6492 signature, so it is not checked here
        deploys = unwrap(self.signature.secret_bytes) is not None
        fault = None if deploys else fault_of(self.authorization, self.signature)
        if fault is not None:
            return Verdict("signature", False, *fault)
        if self.outcome is not None and self.outcome[0] in SIGNATURE_REASONS:
            return Verdict("signature", False, *self.outcome)
        return Verdict("signature", True)

    def _window(self, name: str, when: int) -> Verdict:
        if when <= self.terms.valid_after:
            wait = self.terms.valid_after + 1 - when
            return Verdict(name, False, Reason.NOT_YET_VALID, f"valid in {wait} s")
        if when >= self.terms.valid_before:
            late = when - self.terms.valid_before
            return Verdict(name, False, Reason.EXPIRED, f"expired {late} s ago")
        return Verdict(name, True, detail=f"{self.terms.valid_before - when} s left")

    def _nonce(self) -> Verdict:
        return _usable(self.batch, self.order)

    def _balance(self) -> Verdict:
        balance = self.batch.number(("balance", self.token, self.terms.payer))
        if balance is None:
            return Verdict("balance", None, detail="balanceOf failed")
        if balance < self.terms.value:
            detail = f"has {balance:,} units, needs {self.terms.value:,} units"
            return Verdict("balance", False, Reason.BALANCE, detail)
        return Verdict("balance", True)

    def _balance_after_others(self) -> Verdict:
        name = AFTER_OTHERS
        balance = self.batch.number(("balance", self.token, self.terms.payer))
        if balance is None:
            return Verdict(name, None, detail="balanceOf failed")
        claims = self.claims.get((self.token, self.terms.payer), {})
        others = sum(value for order_id, value in claims.items() if order_id != self.order.id)
        if balance < others + self.terms.value:
            detail = (
                f"has {balance:,} units, other orders may take {others:,} units, needs"
                f" {self.terms.value:,} units"
            )
            return Verdict(name, False, Reason.BALANCE_LATER, detail)
        return Verdict(name, True)

    def _policy(self) -> Verdict:
        if self.signature is None and not self.by_payer:
            return Verdict("policy", None, detail="nothing to simulate")
        if self.outcome is None:
            return Verdict("policy", True, detail="the simulated capture succeeds")
        reason, detail = self.outcome
        if reason in BEHIND_POLICY:
            return Verdict("policy", True, detail=f"not blocked, but the capture fails: {detail}")
        if reason is Reason.NOT_PAYEE:
            caller = self.preflight.route.account
            detail = f"{caller} may not capture it, the recipient is {self.terms.recipient}"
        return Verdict("policy", False, reason, detail)

    def _gas(self) -> Verdict:
        if self.signature is None:
            return Verdict("gas", None, detail="nothing to estimate")
        answer = self.batch.answer(("gas", self.order.id))
        if isinstance(answer, NodeRefusal):
            if FUNDS_WORDS in answer.message:
                return Verdict("gas", False, Reason.GAS_FUNDS, "the sender cannot pay the gas")
            return Verdict("gas", None, detail="the simulated capture fails")
        quote, promised = self.preflight.quote, self.preflight.promised
        assert quote is not None
        # the pool requires funds for the full gas limit at the fee cap
        cost = self.preflight.policy.gas_limit(int(answer, 16)) * quote.cap
        funds = self.batch.number("funds") or 0
        if funds < cost + promised:
            detail = f"the sender has {funds} wei, the transaction needs {cost} wei"
            if promised:
                detail += f", pending transactions may take {promised} wei"
            return Verdict("gas", False, Reason.GAS_FUNDS, detail)
        return Verdict("gas", True, detail=f"{int(answer, 16)} gas")


def failure_of(refusal: NodeRefusal) -> tuple[Reason, str]:
    """Returns why a call failed, from its revert bytes or else from the node's message."""
    data = refusal.data
    if isinstance(data, str) and data.startswith("0x"):
        try:
            return decode_revert(bytes.fromhex(data[2:]))
        except ValueError:
            pass
    if FUNDS_WORDS in refusal.message:
        return Reason.GAS_FUNDS, "the sender cannot pay the gas"
    if "out of gas" in refusal.message:
        return Reason.OUT_OF_GAS, "out of gas"
    return Reason.UNKNOWN, f"the node answered with error code {refusal.code}"
