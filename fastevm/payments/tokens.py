"""Tokens as read from the contract: EIP-712 domain, decimals and supported signatures.

A supported token has EIP-3009, or transfers with memos and usually permits, as B20 tokens do.
Never type in a token's domain: USDC is named ``USD Coin`` on some chains and ``USDC`` on others.
`Token.of` reads the domain and compares it with ``DOMAIN_SEPARATOR()``. The table of known tokens
has addresses and the expected domains.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError
from msgspec import Struct

from fastevm.payments.amounts import LONGEST_SHOWN
from fastevm.payments.amounts import amount as amount_of
from fastevm.payments.arguments import check_members, checked
from fastevm.payments.authorization import Domain, Kind, address
from fastevm.payments.calls import (
    call_data,
    memo_transfer_data,
    permit_nonce_data,
    separator_data,
    state_data,
)
from fastevm.payments.errors import InvalidTerms, NodeRefusal, PaymentError
from fastevm.payments.node import Answer, NodeClient
from fastevm.payments.reasons import revert_text
from fastevm.rpc_client.messages import Call

LATEST: Final = "latest"
MOST_DECIMALS: Final = 36
USUAL_VERSIONS: Final = ("2", "1")  # tried for tokens without ``version()``
NOBODY: Final = "0x000000000000000000000000000000000000dEaD"
SELECTOR_BYTES: Final = 4
BYTES_OVERLOAD: Final = (
    "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)"
)


class WrongToken(PaymentError):
    """The contract is not the expected token, or takes no kind of payment known to this package."""


class KnownToken(NamedTuple):
    """A published token address, and the expected domain of the contract."""

    chain_id: int
    symbol: str
    address: str
    name: str
    version: str = "2"
    decimals: int = 6


KNOWN: Final[tuple[KnownToken, ...]] = (
    KnownToken(1, "USDC", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "USD Coin"),
    KnownToken(1, "EURC", "0x1aBaEA1f7C830bD89Acc67eC4af516284b1bC33c", "Euro Coin"),
    KnownToken(10, "USDC", "0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85", "USD Coin"),
    KnownToken(130, "USDC", "0x078D782b760474a361dDA0AF3839290b0EF57AD6", "USDC"),
    KnownToken(137, "USDC", "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", "USD Coin"),
    KnownToken(143, "USDC", "0x754704Bc059F8C67012fEd69BC8A327a5aafb603", "USDC"),
    KnownToken(146, "USDC", "0x29219dd400f2Bf60E5a23d13Be72B486D4038894", "USDC"),
    KnownToken(480, "USDC", "0x79A02482A880bCE3F13e09Da970dC34db4CD24d1", "USDC"),
    KnownToken(999, "USDC", "0xb88339CB7199b77E23DB6E890353E22632Ba630f", "USDC"),
    KnownToken(1328, "USDC", "0x4fCF1784B31630811181f670Aea7A7bEF803eaED", "USDC"),
    KnownToken(1329, "USDC", "0xe15fC38F6D8c56aF07bbCBe3BAf5708A2Bf42392", "USDC"),
    KnownToken(8453, "USDC", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "USD Coin"),
    KnownToken(8453, "EURC", "0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42", "EURC"),
    KnownToken(42161, "USDC", "0xaf88d065e77c8cC2239327C5EDb3A432268e5831", "USD Coin"),
    KnownToken(42220, "USDC", "0xcebA9300f2b948710d2653dD7B07f33A8B32118C", "USDC"),
    KnownToken(43113, "USDC", "0x5425890298aed601595a70AB815c96711a31Bc65", "USD Coin"),
    KnownToken(43114, "USDC", "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E", "USD Coin"),
    KnownToken(43114, "EURC", "0xC891EB4cbdEFf6e073e859e987815Ed1505c2ACD", "Euro Coin"),
    KnownToken(80002, "USDC", "0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582", "USDC"),
    KnownToken(84532, "USDC", "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "USDC"),
    KnownToken(84532, "EURC", "0x808456652fdb597867f38412077A9182bf77359F", "EURC"),
    KnownToken(421614, "USDC", "0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d", "USD Coin"),
    KnownToken(11142220, "USDC", "0x01C5C0122039549AD1493B8220cABEdD739BC44E", "USDC"),
    KnownToken(11155111, "USDC", "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238", "USDC"),
    KnownToken(11155420, "USDC", "0x5fd84259d66Cd46123540766Be93DFE6D43130D7", "USDC"),
)


def known(chain_id: int, token: str) -> KnownToken | None:
    """Finds a known token by symbol or address; None if unknown."""
    wanted = token.lower()
    for row in KNOWN:
        if row.chain_id == chain_id and wanted in (row.symbol.lower(), row.address.lower()):
            return row
    return None


_UNITS: Final = re.compile(r"(?<![\w.,])(\d{1,78}|\d{1,3}(?:,\d{3})+) units\b")


class Money(NamedTuple):
    """Converts amounts of a token between units and text. Without a symbol, shows ``units``."""

    symbol: str
    decimals: int

    def units(self, amount: str | Decimal | int) -> int:
        """Converts a decimal amount such as ``"12.50"`` to token units. Raises InvalidTerms."""
        return amount_of(amount, self.decimals)

    def decimal(self, units: int) -> str:
        """Formats units as a decimal amount: ``12.50``."""
        whole, part = divmod(units, 10**self.decimals)
        decimals = f"{part:0{self.decimals}d}".rstrip("0").ljust(2, "0") if self.decimals else ""
        return f"{whole}{'.' if decimals else ''}{decimals}"

    def text(self, units: int) -> str:
        """Formats units with thousands separators and the symbol: ``1,234.50 USDC``."""
        whole, point, decimals = self.decimal(units).partition(".")
        return f"{int(whole):,}{point}{decimals} {self.symbol or 'units'}"

    def spelled(self, message: str) -> str:
        """Formats the amounts of a message: replaces ``2500000 units`` with ``2.50 USDC``."""
        return _UNITS.sub(lambda found: self.text(int(found[1].replace(",", ""))), message)


def money_at(chain_id: int, token: str) -> Money:
    """Returns the `Money` of a known token. For any other token, amounts stay in units."""
    row = known(chain_id, token)
    return Money("", 0) if row is None else Money(row.symbol, row.decimals)


EIP_3009: Final = (Kind.RECEIVE, Kind.TRANSFER)


@checked
class Token(Struct, frozen=True):
    """A token as read from its contract.

    If ``long_signatures`` is true, the token accepts signatures as bytes (ERC-7598), which contract
    wallets and the escrow need. ``kinds`` are the ways in which payers can authorize payments.
    """

    domain: Domain
    symbol: str
    decimals: int
    long_signatures: bool
    kinds: tuple[Kind, ...] = EIP_3009

    def __post_init__(self) -> None:
        check_members(self)

    @classmethod
    async def of(cls, node: NodeClient, token: str) -> "Token":
        """Reads a token by address, or by its symbol in the table of known tokens.

        Raises :class:`WrongToken` if the contract has neither EIP-3009 nor transfers with memos, or
        if its domain is unknown or differs from the table. Raises InvalidTerms for a symbol that
        the table lacks for the node's chain. Raises NodeUnreachable or NodeRefusal.
        """
        chain_id = int(await node.call("eth_chainId"), 16)
        expected = known(chain_id, token)
        if expected is None and not token.startswith("0x"):
            symbols = ", ".join(row.symbol for row in KNOWN if row.chain_id == chain_id) or "none"
            raise InvalidTerms(
                f"token: {token[:LONGEST_SHOWN]!a} has no known address on chain {chain_id}"
                f" (known: {symbols}): pass its address"
            )
        token_address = address(expected.address if expected else token, "token")
        found = await _read(node, chain_id, token_address)
        if expected is not None:
            _compare(found, expected)
        return found

    @property
    def money(self) -> Money:
        """Converts amounts of this token between units and text."""
        return Money(self.symbol, self.decimals)

    def units(self, amount: str | Decimal | int) -> int:
        """Converts a decimal amount such as ``"12.50"`` to token units. Raises InvalidTerms."""
        return self.money.units(amount)

    def text(self, units: int) -> str:
        """Formats units as a decimal amount with the symbol."""
        return self.money.text(units)


async def _read(node: NodeClient, chain_id: int, token: str) -> Token:
    signatures = ("name()", "version()", "decimals()", "symbol()")
    asked: list[Call] = [("eth_getCode", [token, LATEST])]
    asked += [_call(token, call_data(signature)) for signature in signatures]
    asked += [
        _call(token, separator_data()),
        _call(token, state_data(NOBODY, bytes(32))),
        _call(token, call_data(BYTES_OVERLOAD, NOBODY, NOBODY, 0, 0, 0, bytes(32), b"\1")),
        _call(token, permit_nonce_data(NOBODY)),
        _call(token, memo_transfer_data(NOBODY, 0, bytes(32)), sender=NOBODY),
    ]
    code, name, version, decimals, symbol, separator, state, overload, *memos = await node.batch(
        asked
    )
    if code == "0x":
        raise WrongToken(f"there is no contract at {token} on chain {chain_id}")
    kinds = EIP_3009 if len(_output(state)) == 32 else _memo_kinds(*memos)
    if len(_output(separator)) != 32 or not kinds:
        raise WrongToken(
            f"{token} on chain {chain_id} has neither EIP-3009 nor transfers with memos"
        )
    title, digits = _text(name), int.from_bytes(_output(decimals), "big")
    if title is None or digits > MOST_DECIMALS:
        raise WrongToken(f"{token} on chain {chain_id} has no name() or no valid decimals()")
    own_version = _text(version)
    domain = _domain(
        title, (own_version,) if own_version else USUAL_VERSIONS, chain_id, token, separator
    )
    # The overload is transferWithAuthorization with the signature as bytes. A token that has it
    # reverts with a text about the window; any other token reverts without a text.
    taken = isinstance(overload, NodeRefusal) and revert_text(_revert(overload)) is not None
    return Token(domain, _text(symbol) or title, digits, taken, kinds)


def _memo_kinds(nonce: Answer, transfer: Answer) -> tuple[Kind, ...]:
    """Returns the payment kinds of a token without EIP-3009, from two answers of the contract.

    ``nonce`` is the answer to ``nonces``, ``transfer`` the answer to a transfer. A token with memos
    returns a word for a transfer of 0 units, or refuses it (paused, policies) with an error that
    has arguments. For an unknown function, a token returns no output, and its revert data has at
    most a selector (4 bytes).
    """
    refusal = _revert(transfer) if isinstance(transfer, NodeRefusal) else b""
    has_memos = len(_output(transfer)) == 32 or len(refusal) > SELECTOR_BYTES
    if not has_memos:
        return ()
    return (Kind.PERMIT, Kind.MEMO) if len(_output(nonce)) == 32 else (Kind.MEMO,)


def _domain(
    name: str, versions: Sequence[str], chain_id: int, token: str, separator: Answer
) -> Domain:
    for version in versions:
        domain = Domain(name, version, chain_id, token)
        if domain.separator == _output(separator):
            return domain
    raise WrongToken(
        f"{token} on chain {chain_id}: its DOMAIN_SEPARATOR() is not that of {name!r}, version "
        + " or ".join(repr(version) for version in versions)
    )


def _compare(found: Token, expected: KnownToken) -> None:
    domain = found.domain
    actual = (domain.name, domain.version, found.decimals)
    wanted = (expected.name, expected.version, expected.decimals)
    if actual != wanted:
        raise WrongToken(
            f"{expected.symbol} on chain {expected.chain_id}: expected name, version and decimals "
            f"{wanted}, found {actual}"
        )


def _call(to: str, data: bytes, *, sender: str | None = None) -> tuple[str, Sequence[Any]]:
    origin = {} if sender is None else {"from": sender}
    return "eth_call", [{**origin, "to": to, "data": "0x" + data.hex()}, LATEST]


def _output(answer: Answer) -> bytes:
    return bytes.fromhex(answer[2:]) if isinstance(answer, str) else b""


def _revert(refusal: NodeRefusal) -> bytes:
    data = refusal.data
    return bytes.fromhex(data[2:]) if isinstance(data, str) and data.startswith("0x") else b""


def _text(answer: Answer) -> str | None:
    try:
        (text,) = decode(["string"], _output(answer))
    except (DecodingError, UnicodeDecodeError, OverflowError):
        return None
    return str(text)
