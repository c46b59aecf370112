"""Minimises cases (delta debugging): finds the smallest case that still shows a difference."""

from collections.abc import Callable, Iterator
from functools import partial

from fastevm.core.primitives.replace import replace

from .cases import Case, Fields

JUMPDEST = 0x5B
Shows = Callable[[Case], bool]


def minimise(case: Case, shows: Shows) -> Case:
    """Removes and shortens parts of the case while `shows` holds."""
    size = None
    while size != len(case.dumps()):
        size = len(case.dumps())
        for smaller in (fewer_transactions, fewer_accounts, simpler_fields, shorter_codes):
            case = smaller(case, shows)
    return case


def try_all(case: Case, candidates: Callable[[Case], Iterator[Case]], shows: Shows) -> Case:
    """Tries the candidates in order.

    Takes the first that still shows the difference, and starts again.
    """
    found = True
    while found:
        found = False
        for candidate in candidates(case):
            if shows(candidate):
                case, found = candidate, True
                break
    return case


def fewer_transactions(case: Case, shows: Shows) -> Case:
    def candidates(case: Case) -> Iterator[Case]:
        for at in range(len(case.transactions)):
            if len(case.transactions) > 1:
                rest = case.transactions[:at] + case.transactions[at + 1 :]
                yield replace(case, transactions=rest)

    return try_all(case, candidates, shows)


def fewer_accounts(case: Case, shows: Shows) -> Case:
    def candidates(case: Case) -> Iterator[Case]:
        for address in case.pre:
            yield replace(case, pre={a: f for a, f in case.pre.items() if a != address})

    return try_all(case, candidates, shows)


def with_account(case: Case, address: str, **fields: object) -> Case:
    return replace(case, pre={**case.pre, address: {**case.pre[address], **fields}})


def with_transaction(case: Case, at: int, fields: Fields) -> Case:
    transactions = [*case.transactions]
    transactions[at] = fields
    return replace(case, transactions=transactions)


def simpler_fields(case: Case, shows: Shows) -> Case:
    """Reduces storage, numbers, call data, access list and authorizations."""

    def candidates(case: Case) -> Iterator[Case]:
        for address, account in case.pre.items():
            for slot in account["storage"]:
                rest = {key: v for key, v in account["storage"].items() if key != slot}
                yield with_account(case, address, storage=rest)
            for name in ("balance", "nonce"):
                for value in (0, 1):
                    if account[name] > value:
                        yield with_account(case, address, **{name: value})
        for at, fields in enumerate(case.transactions):
            for name in ("value", "gas_price"):
                if fields.get(name):
                    yield with_transaction(case, at, {**fields, name: 0})
            if fields["data"] != "0x" and fields["to"]:
                yield with_transaction(case, at, {**fields, "data": "0x"})
            for name in ("access_list", "authorization_list"):
                for place in range(len(fields.get(name, ()))):
                    rest = fields[name][:place] + fields[name][place + 1 :]
                    yield with_transaction(case, at, {**fields, name: rest})

    return try_all(case, candidates, shows)


def shorter_codes(case: Case, shows: Shows) -> Case:
    """Shortens every code and init code. The last pass removes single bytes."""
    for address, account in case.pre.items():
        put = partial(with_code, case, address)
        case = put(shorter(account["code"], put, shows))
    for at, fields in enumerate(case.transactions):
        if fields["to"] is None:
            put = partial(with_data, case, at)
            case = put(shorter(fields["data"], put, shows))
    return case


def with_code(case: Case, address: str, code: bytes) -> Case:
    return with_account(case, address, code="0x" + code.hex())


def with_data(case: Case, at: int, data: bytes) -> Case:
    return with_transaction(case, at, {**case.transactions[at], "data": "0x" + data.hex()})


def shorter(text: str, put: Callable[[bytes], Case], holds: Shows) -> bytes:
    """Removes pieces of the code, first large then small, while the case shows the difference.

    Where a piece cannot be removed, JUMPDESTs may replace it, so that jump targets stay valid.
    """

    def shows(code: bytes) -> bool:
        return holds(put(code))

    code = bytes.fromhex(text[2:])
    step = len(code)
    while step:
        at = 0
        while at < len(code):
            blank = bytes([JUMPDEST]) * len(code[at : at + step])
            cut = code[:at] + code[at + step :]
            filled = code[:at] + blank + code[at + step :]
            if shows(cut):
                code = cut
            else:
                if filled != code and shows(filled):
                    code = filled
                at += step
        step //= 2
    return code
