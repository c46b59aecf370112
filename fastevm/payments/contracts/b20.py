"""Creates B20 stablecoins, which Base's execution clients implement, on a chain of Base.

to, data = stablecoin("Laptop Dollar", "LUSD", admin)
...  # send the call from any account: this account is the creator
token = address_of(creator, "LUSD")
"""

from typing import Final

from eth_abi.abi import encode
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from fastevm.payments.calls import call_data

FACTORY: Final = "0xB20f000000000000000000000000000000000000"
STABLECOIN: Final = 1  # B20's number for the token variant "stablecoin"
VERSION: Final = 1  # version of the encoding of `params`
PREFIX: Final = bytes([0xB2, *bytes(9), STABLECOIN])
ROLES: Final = ("MINT_ROLE", "PAUSE_ROLE", "UNPAUSE_ROLE", "METADATA_ROLE")
CURRENCY: Final = "USD"


def stablecoin(name: str, symbol: str, admin: str) -> tuple[str, bytes]:
    """Returns target and data of the call that creates a token; ``admin`` mints and pauses it."""
    params = encode(
        ["(uint8,string,string,address,string)"], [(VERSION, name, symbol, admin, CURRENCY)]
    )
    grants = [call_data("grantRole(bytes32,address)", keccak(text=role), admin) for role in ROLES]
    salt = keccak(text=symbol)
    create = "createB20(uint8,bytes32,bytes,bytes[])"
    return FACTORY, call_data(create, STABLECOIN, salt, params, grants)


def address_of(creator: str, symbol: str) -> str:
    """Returns the address of the token that ``creator`` creates with this symbol."""
    digest = keccak(encode(["address", "bytes32"], [creator, keccak(text=symbol)]))
    return str(to_checksum_address(PREFIX + digest[:9]))
