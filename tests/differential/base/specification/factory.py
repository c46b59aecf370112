"""Implements the factory of B20 tokens."""

from __future__ import annotations

from typing import Any

from eth_hash.auto import keccak

from . import policies
from .abi import (
    OVERRUN,
    DecodeError,
    decode,
    encode,
    error,
    selector,
    take_offset,
    topic,
    word,
)
from .journal import MARKER, Frame, Revert
from .token import (
    CAP,
    DECIMALS,
    DEFAULT_ADMIN,
    MAX_CAP,
    MULTIPLIER,
    NAME,
    NOBODY,
    STABLECOIN_ROOT,
    SYMBOL,
    Token,
    Undispatched,
    key,
)

FACTORY = bytes.fromhex("b20f000000000000000000000000000000000000")
PREFIX = b"\xb2" + bytes(9)
ASSET, STABLECOIN = 0, 1
FEATURES = (keccak(b"base.b20_asset"), keccak(b"base.b20_stablecoin"))
DERIVATION_GAS = 42
CREATE = "createB20(uint8,bytes32,bytes,bytes[])"
PARAMETERS = (
    ("uint8", "string", "string", "address", "uint8"),
    ("uint8", "string", "string", "address", "string"),
)
# The names of the parameter structs (base/base,
# crates/common/precompiles/src/b20_factory/abi/v1.rs). alloy's errors contain a struct's name
# (SOL_NAME) instead of the types of its members.
STRUCTS = ("B20AssetCreateParams", "B20StablecoinCreateParams")


class Factory:
    def __init__(self, frame: Frame) -> None:
        self.f = frame

    def functions(self) -> dict[str, Any]:
        return {
            CREATE: self.create,
            "getB20Address(uint8,address,bytes32)": self.address_for,
            "isB20(address)": lambda a: word(a[:10] == PREFIX),
            "isB20Initialized(address)": self.is_initialized,
        }

    def address(self, variant: int, creator: bytes, salt: bytes) -> bytes:
        self.f.charge(DERIVATION_GAS)
        return PREFIX + bytes([variant]) + keccak(key(creator) + salt)[:9]

    def address_for(self, variant: int, creator: bytes, salt: bytes) -> bytes:
        return key(self.address(variant, creator, salt))

    def is_initialized(self, address: bytes) -> bytes:
        return word(address[:10] == PREFIX and self.f.account(address) == MARKER)

    def create(self, variant: int, salt: bytes, params: bytes, calls: list[bytes]) -> bytes:
        address = self.address(variant, self.f.caller, salt)
        policies.require_feature(self.f, FEATURES[variant])
        version, name, symbol, admin, last = self.parameters(variant, params)
        if version != 1:
            raise error("UnsupportedVersion(uint8,uint8)", version, variant)
        if variant == ASSET and not 6 <= last <= 18:
            raise error("InvalidDecimals(uint8)", last)
        if self.f.account(address):
            raise error("TokenAlreadyExists(address)", address)
        self.f.plant(address)
        # While the factory initialises the token, msg.sender is the factory.
        creator, self.f.caller = self.f.caller, FACTORY
        token = Token(self.f, address, privileged=True)
        self.initialise(token, variant, name, symbol, last)
        self.note(address, variant, name, symbol, last)
        if admin != NOBODY:
            token.give(DEFAULT_ADMIN, admin)
        for index, call in enumerate(calls):
            self.initial_call(token, index, call)
        self.f.caller = creator
        return key(address)

    def parameters(self, variant: int, params: bytes) -> list[Any]:
        try:
            start = take_offset(params, 0)
            if start > len(params):
                raise DecodeError(OVERRUN)
            return decode(PARAMETERS[variant], params[start:], name=STRUCTS[variant])
        except DecodeError as fault:
            name = selector(CREATE)
            raise Revert(name if self.f.fork >= 2 else name + str(fault).encode()) from None

    def initialise(self, token: Token, variant: int, name: bytes, symbol: bytes, last: Any) -> None:
        if variant == STABLECOIN:
            if not last:
                raise error("MissingRequiredField(string)", b"currency")
            if not all(65 <= letter <= 90 for letter in last):
                raise error("InvalidCurrency(string)", last)
        token.write_text(NAME, name)
        token.write_text(SYMBOL, symbol)
        token.store(CAP, MAX_CAP)
        if variant == ASSET:
            token.store(DECIMALS, last)
            token.store(MULTIPLIER, 0)
        else:
            token.write_text(STABLECOIN_ROOT, last)

    def note(self, address: bytes, variant: int, name: bytes, symbol: bytes, last: Any) -> None:
        details = b""
        if variant == STABLECOIN:
            details = word(32) + encode(("uint8", "string"), (1, last))
        kinds = ("string", "string", "uint8", "bytes")
        decimals = last if variant == ASSET else 6
        self.f.log(
            FACTORY,
            (
                topic("B20Created(address,uint8,string,string,uint8,bytes)"),
                key(address),
                word(variant),
            ),
            encode(kinds, (name, symbol, decimals, details)),
        )

    def initial_call(self, token: Token, index: int, call: bytes) -> None:
        try:
            token.dispatch(call)
        except Undispatched:
            raise error("InitCallFailed(uint256)", index) from None
        except Revert as refused:
            if refused.output:
                raise
            raise error("InitCallFailed(uint256)", index) from None
