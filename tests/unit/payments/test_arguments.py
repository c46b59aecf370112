"""Tests that every public class and function rejects arguments of wrong types."""

import asyncio
import inspect
import time
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import pytest

import fastevm.payments
import fastevm.payments.x402
from fastevm.errors import FastevmError
from fastevm.payments import (
    Domain,
    InvalidTerms,
    KeySigner,
    Merchant,
    NodeClient,
    NodeUnreachable,
    Policy,
    Terms,
    Token,
    Vault,
    open_store,
    sign,
)
from fastevm.payments.arguments import check_members, check_of, checked
from fastevm.payments.authorization import Authorization, TypedMessage
from fastevm.payments.holds import Holds
from fastevm.payments.orders import Order
from fastevm.payments.x402 import (
    ChainSettler,
    Facilitator,
    LoopThread,
    MemoryGrants,
    Payer,
    Payment,
    Paywall,
    Reply,
    Request,
    Requirements,
    Sale,
)
from fastevm.payments.x402.grants import Grant
from fastevm.payments.x402.messages import Resource

ACCOUNT = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
TOKEN = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
KEY = b"\x05" * 32
ODD: tuple[Any, ...] = (
    None, -1, 1.5, float("nan"), True, "", "x", "\0", b"", b"x", [], [None], (), {}, {"x": None},
    2**256, object(),
)  # fmt: skip


class Alone(NodeClient):
    """A client whose node never answers."""

    async def batch(self, calls: Any) -> Any:
        raise NodeUnreachable("no answer")


class Values:
    """Valid values for each required parameter, by name or by type."""

    def __init__(self) -> None:
        self.node = Alone("http://127.0.0.1:1")
        self.store = open_store("sqlite:///:memory:")
        self.domain = Domain("USDC", "2", 84_532, TOKEN)
        self.token = Token(self.domain, "USDC", 6, True)
        self.vault, self.signer = Vault([KEY]), KeySigner(KEY)
        now = int(time.time())
        self.terms = Terms(
            payer=ACCOUNT, recipient=self.signer.address, value=5, valid_after=0,
            valid_before=now + 900,
        )  # fmt: skip
        self.authorization = Authorization(self.domain, self.terms)
        self.order = Order(id="order-1", authorization=self.authorization)
        self.offer = Requirements(
            scheme="exact", chain_id=84_532, asset=TOKEN, pay_to=ACCOUNT, amount=5,
            extra={"name": "USDC", "version": "2"},
        )  # fmt: skip
        self.payer = Payer(KEY, {TOKEN: 5})
        self.payment = Payment(
            version=1, scheme="exact", chain_id=84_532, payload=self.payer.payload(self.offer)
        )
        self.merchant = Merchant(self.node, self.store, self.vault, self.domain, self.signer)
        self.settler = ChainSettler(self.node, self.store, self.vault, self.signer, [self.token])
        self.facilitator = Facilitator([self.settler])
        self.sale = Sale([self.offer])
        self.wall = Paywall(self.facilitator, {"GET /x": self.sale})
        self.request = Request("GET", "/y", "http://shop.example/y", {})
        self.grant = Grant(
            key="k", request="r", payload="p", secret="s", claim="c", holder="h", since=1.0,
            expires=2.0,
        )  # fmt: skip
        self.loop, self.runner = LoopThread(), asyncio.Runner()
        self.by_name: dict[str, Any] = {
            "node": "http://127.0.0.1:1", "token": TOKEN, "path": "grants.db",
            "name": "captures_total", "url": "http://127.0.0.1:1",
            "private_key": KEY, "keys": [KEY],
            "payer": ACCOUNT, "recipient": self.signer.address, "account": ACCOUNT,
            "authorizer": ACCOUNT, "spender": ACCOUNT, "to": ACCOUNT, "asset": TOKEN,
            "pay_to": ACCOUNT, "operator": ACCOUNT, "receiver": ACCOUNT, "payments": [],
            "routes": {"GET /x": self.sale}, "offers": [self.offer], "scheme": "exact",
            "settlers": [self.settler], "tokens": [self.token], "most": {TOKEN: 5},
            "payload": self.payer.payload(self.offer), "members": {}, "signature": b"\1" * 65,
            "nonce": bytes(32), "valid_before": 2**40, "raw": b"\1" * 65, "fields": {},
            "service": self, "client": self, "order_id": "order-1", "key": "sweep-1",
            "address": ACCOUNT, "units": 5, "amount": 5, "version": 2,
            "subject": ACCOUNT, "decimals": 6, "status": 200, "run": self.run, "check": self.check,
            "app": self.run, "paywall": self.wall, "engine": self.facilitator, "route":
            self.merchant.route, "transactions": self.merchant.transactions, "method": "eth_x",
            "listener": print, "environ": {}, "start_response": print, "scope": {"type": "x"},
            "receive": self.run, "send": self.run, "work": None, "session": None,
        }  # fmt: skip
        self.by_type: dict[Any, Any] = {
            str: "x", int: 5, float: 1.0, bytes: b"x", bool: True,
            **{type(item): item for item in (
                self.node, self.vault, self.signer, self.domain, self.token, self.terms,
                self.authorization, self.order, self.offer, self.payment, self.merchant,
                self.settler, self.facilitator, self.sale, self.wall, self.request, self.grant,
                self.loop, Policy(), self.merchant.holds, sign(self.authorization, KEY),
                Resource(url="http://shop.example"), Reply(200),
            )},
            NodeClient: self.node, fastevm.payments.Store: self.store,
            fastevm.payments.Signer: self.signer, TypedMessage: self.authorization,
        }  # fmt: skip

    async def run(self, *_: Any) -> Any:
        """Acts as an application or a handler."""
        return Reply(200)

    async def check(self, *_: Any) -> list[Any]:
        """Acts as a function that checks orders."""
        return []

    async def public_key(self) -> bytes:
        raise OSError

    async def sign_digest(self, digest: bytes) -> bytes:
        raise OSError

    def of(self, name: str, hint: Any) -> Any:
        """Returns a valid value of a parameter."""
        if isinstance(hint, type) and issubclass(hint, Enum):
            return next(iter(hint))
        if name in self.by_name and check_of(hint).accepts(self.by_name[name]):
            return self.by_name[name]
        if hint in self.by_type:
            return self.by_type[hint]
        if typing.get_origin(hint) in (typing.Union, __import__("types").UnionType):
            return self.of(name, typing.get_args(hint)[0])
        return {} if "Mapping" in str(hint) or "dict" in str(hint) else []


@pytest.fixture(scope="module")
def values() -> Iterator[Values]:
    made = Values()
    yield made
    made.loop.close()
    made.runner.close()
    made.store.close()


def is_checked(made: Any) -> bool:
    """Returns whether a public name is a function, or a class that users construct."""
    if not isinstance(made, type):
        return inspect.isfunction(made)
    result = issubclass(made, BaseException | Enum | tuple) or made.__name__ in RESULTS
    return not result and not getattr(made, "_is_protocol", False)


# Values that the package returns. Their constructors convert nothing and check nothing.
RESULTS = {
    "AuditEntry", "Change", "ChainLog", "Delivery", "Endpoint", "Entry", "Grant", "Movement",
    "Notice", "Order", "Reply", "Report", "Request", "Settled", "Submission", "Transition",
    "Verdict", "Verified",
}  # fmt: skip
PUBLIC = {
    f"{module.__name__.removeprefix('fastevm.')}.{name}": getattr(module, name)
    for module in (fastevm.payments, fastevm.payments.x402)
    for name in module.__all__
    if is_checked(getattr(module, name))
}
# Methods that need an aiohttp session, a coroutine or a running server, which this test lacks.
LEFT_OUT = {
    ("AwsKey", "sign_digest"),
    ("GoogleKey", "sign_digest"),
    ("Payer", "get"),
    ("Payer", "request"),
    ("LoopThread", "run"),
}


def test_the_public_names_are_found() -> None:
    for name in ("payments.Merchant", "payments.open_store", "payments.x402.Paywall"):
        assert name in PUBLIC
    assert len(PUBLIC) > 40


def parameters_of(function: Any) -> list[tuple[inspect.Parameter, Any]]:
    """Returns the named parameters of a function, each with its annotation."""
    hints = typing.get_type_hints(function)
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        (item, hints.get(item.name, Any))
        for item in inspect.signature(function).parameters.values()
        if item.name not in ("self", "cls") and item.kind not in variable
    ]


def needed_of(function: Any) -> list[tuple[str, Any, bool]]:
    """Returns name and annotation of each parameter of a function, and whether it is required."""
    return [(item.name, hint, item.default is item.empty) for item, hint in parameters_of(function)]


def fields_of(made: type) -> list[tuple[str, Any, bool]]:
    """Returns name and annotation of each constructor parameter, and whether it is required."""
    hints = typing.get_type_hints(made)
    if issubclass(made, msgspec.Struct):
        return [
            (field.name, hints[field.name], field.required)
            for field in msgspec.structs.fields(made)
        ]
    if hasattr(made, "__dataclass_fields__"):
        signature = inspect.signature(made).parameters
        return [(name, hints[name], item.default is item.empty) for name, item in signature.items()]
    return [
        (item.name, hint, item.default is item.empty) for item, hint in parameters_of(made.__init__)
    ]


def call(values: Values, function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    result = function(**arguments)
    if inspect.iscoroutine(result):
        values.runner.run(result)
    elif isinstance(result, AsyncIterator):
        pass  # its body runs when it is iterated


def refuses_odd_values(
    function: Callable[..., Any], fields: list[tuple[str, Any, bool]], values: Values, where: str
) -> list[str]:
    """Calls a function with odd values for each parameter. Returns a text for each wrong error."""
    usual = {name: values.of(name, hint) for name, hint, needed in fields if needed}
    wrong, baseline = list[str](), ""
    if not fields:
        return wrong
    try:
        call(values, function, usual)
    except FastevmError as error:
        baseline = str(error)
    for name, _, _ in fields:
        for odd in ODD:
            try:
                call(values, function, {**usual, name: odd})
            except InvalidTerms as error:
                if name not in str(error) and str(error) != baseline:
                    wrong.append(f"{where}({name}={odd!r}) does not name it: {error}")
            except FastevmError:
                pass
            except Exception as error:
                wrong.append(f"{where}({name}={odd!r}): {type(error).__name__}: {error}")
    return wrong


@pytest.mark.parametrize("name", PUBLIC)
def test_odd_arguments_are_refused_with_the_name_of_the_parameter(
    name: str, values: Values, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a path may be odd too
    made = PUBLIC[name]
    if not isinstance(made, type):
        fields = [
            (item.name, hint, item.default is item.empty) for item, hint in parameters_of(made)
        ]
        assert refuses_odd_values(made, fields, values, name) == []
        return
    wrong = refuses_odd_values(made, fields_of(made), values, name)
    instance = values.by_type.get(made)
    if instance is None:
        usual = {field: values.of(field, hint) for field, hint, needed in fields_of(made) if needed}
        instance = made(**usual)
    for method, member in inspect.getmembers(made):
        if method.startswith("_") or (made.__name__, method) in LEFT_OUT:
            continue
        function = inspect.unwrap(getattr(member, "__func__", member))
        if not inspect.isfunction(function) or not function.__module__.startswith("fastevm.pay"):
            continue
        where, fields = f"{name}.{method}", needed_of(function)
        wrong += refuses_odd_values(getattr(instance, method), fields, values, where)
    if inspect.iscoroutinefunction(getattr(instance, "close", None)):
        values.runner.run(instance.close())
    assert wrong == [], "\n".join(wrong)


# --- the mechanism --------------------------------------------------------------------------------


def test_a_subclass_a_mock_of_a_protocol_and_whole_floats_are_accepted(values: Values) -> None:
    class Till:
        async def verify(self, *_: Any) -> Any: ...
        async def settle(self, *_: Any) -> Any: ...

    till: Any = Till()
    assert Paywall(till, {"GET /x": values.sale}, grants=MemoryGrants()).engine is till
    assert Policy(poll=1, scan_every=2).poll == 1
    holds: Any = Holds
    with pytest.raises(InvalidTerms, match="node: expected NodeClient, found Till"):
        holds(till, values.store, values.merchant.transactions, values.merchant.route)


def test_the_name_and_the_expected_type_are_in_the_text(values: Values) -> None:
    wrong: Any = "900 s"
    with pytest.raises(InvalidTerms, match=r"^poll: expected a number, found str$"):
        Policy(poll=wrong)
    with pytest.raises(InvalidTerms, match=r"^depth: expected a whole number or text, found float"):
        Policy(depth=1.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidTerms, match=r"^offers: expected .* Requirements, found list"):
        Sale([wrong])


def test_missing_and_unknown_arguments_stay_type_errors(values: Values) -> None:
    @checked
    def double(number: int, *more: int, times: int = 2, **others: int) -> int:
        return number * times

    assert double(3) == 6 and double(number=4, times=1) == 4 and double(1, 2, x=3) == 2
    with pytest.raises(TypeError, match="missing 1 required"):
        double()  # type: ignore[call-arg]
    with pytest.raises(InvalidTerms, match=r"^times: "):
        double(1, times="2")  # type: ignore[arg-type]


def test_members_of_a_struct_are_checked() -> None:
    class Pair(msgspec.Struct):
        left: int
        right: tuple[str, ...] | None = None

        def __post_init__(self) -> None:
            check_members(self)

    assert Pair(1, ("a",)).right == ("a",)
    wrong: Any = True
    with pytest.raises(InvalidTerms, match=r"^left: expected a whole number, found bool"):
        Pair(wrong)
    with pytest.raises(InvalidTerms, match=r"^right: expected several values, each text or None"):
        Pair(1, (wrong,))
