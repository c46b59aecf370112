"""Defines the content of the upstream node: tokens, pools, holders and contracts of the case file.

All of it is in the genesis block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from fastevm.bench.node.compared import CHAIN_ID
from fastevm.bench.node.content import signed
from fastevm.bench.options import DEFAULT_CASES
from fastevm.bench.programs.assembler import assemble, push
from fastevm.bench.programs.cases import named
from fastevm.bench.programs.loops import BALANCE_OF, balance_slot, transfer, word
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.keccak import keccak256
from fastevm.node.dev_accounts import dev_accounts
from fastevm.node.from_genesis import dev_genesis

TOKENS: Final = 100
PROXIED: Final = 4  # every fourth token is a proxy
HOLDERS: Final = 500
WIDELY_HELD: Final = 10  # tokens that every holder has
ACTIVE: Final = 20  # holders that have every token
POOLS: Final = 5
FUNDS: Final = 10**24
ETHER: Final = 10**18
GAS_LIMIT: Final = 1_000_000_000  # gas limit of a block
GENESIS_TIME: Final = 1_750_000_000
SWAP_AMOUNT: Final = 10**18
SWAPS_EACH: Final = 10  # one in ten transactions of the busy block is a swap
TRANSFER_GAS: Final = 200_000
SWAP_GAS: Final = 2_000_000
READ_GAS: Final = 30_000_000
# EIP-1967: the slot with the implementation address of a proxy.
IMPLEMENTATION_SLOT: Final = int.from_bytes(keccak256(b"eip1967.proxy.implementation"), "big") - 1
RESERVES_SLOT: Final = 2
PROXY: Final = assemble(
    f"""
    CALLDATASIZE 0 0 CALLDATACOPY
    0 0 CALLDATASIZE 0 0x{IMPLEMENTATION_SLOT:064x} SLOAD GAS DELEGATECALL
    RETURNDATASIZE 0 0 RETURNDATACOPY
    @good JUMPI
    RETURNDATASIZE 0 REVERT
    good:
    RETURNDATASIZE 0 RETURN
    """
)
# Calldata: the holder, then the tokens, one word each. Returns a balance for each token.
MULTICALL: Final = assemble(
    f"""
    0x{BALANCE_OF.hex()} 224 SHL 0 MSTORE
    0 CALLDATALOAD 4 MSTORE
    32                                                  ; place in the calldata
    again:
    DUP1 CALLDATASIZE GT ISZERO @done JUMPI
    32 DUP2 32 ADD 36 0 DUP5 CALLDATALOAD GAS STATICCALL POP
    32 ADD
    @again JUMP
    done:
    32 DUP1 CALLDATASIZE SUB SWAP1 32 ADD RETURN
    """
)
# Calldata: the amount, then the pools, one word each. The second token of a pool is the first token
# of the next pool. The router holds the first token, and the caller receives the last one.
ROUTER: Final = assemble(
    """
    0 CALLDATALOAD 256 MSTORE                           ; amount
    32 288 MSTORE                                       ; place of the pool in the calldata
    0x0dfe1681 224 SHL 0 MSTORE                         ; token0()
    32 0 4 0 32 CALLDATALOAD GAS STATICCALL ISZERO @bad JUMPI
    0 MLOAD                                             ; token
    0xa9059cbb 224 SHL 0 MSTORE                         ; transfer(pool, amount)
    32 CALLDATALOAD 4 MSTORE 256 MLOAD 36 MSTORE
    0 0 68 0 0 DUP6 GAS CALL ISZERO @bad JUMPI
    again:
    0x0902f1ac 224 SHL 0 MSTORE                         ; getReserves()
    96 0 4 0 288 MLOAD CALLDATALOAD GAS STATICCALL ISZERO @bad JUMPI
    997 256 MLOAD MUL                                   ; fee
    1000 0 MLOAD MUL DUP2 ADD                           ; below fee
    SWAP1 32 MLOAD MUL DIV 256 MSTORE
    0x6d9a640a 224 SHL 0 MSTORE                         ; swap(0, amount, to)
    0 4 MSTORE 256 MLOAD 36 MSTORE CALLER 68 MSTORE
    CALLDATASIZE 32 288 MLOAD ADD LT ISZERO @send JUMPI
    32 288 MLOAD ADD CALLDATALOAD 68 MSTORE
    send:
    0 0 100 0 0 288 MLOAD CALLDATALOAD GAS CALL ISZERO @bad JUMPI
    32 288 MLOAD ADD DUP1 288 MSTORE                    ; place
    CALLDATASIZE SWAP1 LT @again JUMPI
    32 256 RETURN
    bad:
    0 0 REVERT
    """
)


@dataclass(frozen=True, slots=True)
class Holder:
    """A token holder, with a key that no other code uses."""

    key: bytes
    address: bytes


@cache
def holders() -> tuple[Holder, ...]:
    """Returns the token holders, who send the transactions of the busy block."""
    keys = [keccak256(b"holder" + number.to_bytes(4, "big")) for number in range(HOLDERS)]
    found = []
    for key in keys:
        sender = signed(key, 0, to=bytes(20)).sender
        assert sender is not None
        found.append(Holder(key, sender))
    return tuple(found)


def address_of(kind: str, number: int = 0) -> bytes:
    """Returns the address of one of our contracts."""
    return keccak256(f"{kind} {number}".encode())[12:]


TOKEN_ADDRESSES: Final = tuple(address_of("token", number) for number in range(TOKENS))
POOL_ADDRESSES: Final = tuple(address_of("pool", number) for number in range(POOLS))
IMPLEMENTATION: Final = address_of("implementation")
MULTICALL_ADDRESS: Final = address_of("multicall")
ROUTER_ADDRESS: Final = address_of("router")


def code_of(case: str, address: str) -> bytes:
    """Returns compiled code of the case file."""
    account = named(DEFAULT_CASES)[case]["pre"][f"0x{int(address, 16):040x}"]
    return bytes.fromhex(account["code"][2:])


def token_storage(number: int) -> dict[int, int]:
    """Returns the storage of a token: balances, and for a proxy its implementation address."""
    owners = [holder.address for holder in holders()[: HOLDERS if number < WIDELY_HELD else ACTIVE]]
    slots = {balance_slot(owner): FUNDS + at for at, owner in enumerate(owners)}
    for pool in range(POOLS):
        if number in (pool, pool + 1):
            slots[balance_slot(POOL_ADDRESSES[pool])] = FUNDS
    if number == 0:
        slots[balance_slot(ROUTER_ADDRESS)] = FUNDS
    if number % PROXIED == 0:
        slots[IMPLEMENTATION_SLOT] = int.from_bytes(IMPLEMENTATION, "big")
    return slots


def pool_storage(number: int) -> dict[int, int]:
    """Returns the storage of a pool: two tokens and their packed reserves (Uniswap V2)."""
    first, second = TOKEN_ADDRESSES[number : number + 2]
    reserves = 1 << 224 | FUNDS << 112 | FUNDS
    return {
        0: int.from_bytes(first, "big"),
        1: int.from_bytes(second, "big"),
        RESERVES_SLOT: reserves,
    }


def lone_cases() -> dict[str, tuple[bytes, dict[str, Any]]]:
    """Returns name -> address on the upstream, and account, of each case with a single contract."""
    found = {}
    for name, case in named(DEFAULT_CASES).items():
        accounts = [
            (at, item) for at, item in case["pre"].items() if len(item.get("code", "0x")) > 2
        ]
        if len(accounts) == 1 and accounts[0][0] == case["to"]:
            found[name] = (address_of(name), accounts[0][1])
    return found


def accounts() -> dict[bytes, tuple[int, bytes, dict[int, int]]]:
    """Returns address -> balance in wei, code and storage, without the development accounts."""
    token = code_of("erc20/balanceOf", "0x7001")
    found: dict[bytes, tuple[int, bytes, dict[int, int]]] = {}
    for number, at in enumerate(TOKEN_ADDRESSES):
        code = token if number % PROXIED else PROXY
        found[at] = (0, code, token_storage(number))
    for number, at in enumerate(POOL_ADDRESSES):
        found[at] = (0, code_of("swap/univ2like", "0x7003"), pool_storage(number))
    found[IMPLEMENTATION] = (0, token, {})
    found[MULTICALL_ADDRESS] = (0, MULTICALL, {})
    found[ROUTER_ADDRESS] = (0, ROUTER, {})
    for at, account in lone_cases().values():
        slots = {int(k, 16): int(v, 16) for k, v in account.get("storage", {}).items()}
        found[at] = (
            int(account.get("balance", "0"), 16),
            bytes.fromhex(account["code"][2:]),
            slots,
        )
    for holder in holders():
        found[holder.address] = (1000 * ETHER, b"", {})
    return found


@cache
def empty_genesis() -> dict[str, Any]:
    """Returns a genesis file without the market, for anvil and our node."""
    document = dev_genesis(dev_accounts(10), chain_id=CHAIN_ID)
    nothing = {"balance": "0x0"}  # anvil requires the field
    alloc = {address: nothing | account for address, account in document["alloc"].items()}
    return document | {
        "alloc": alloc, "gasLimit": hex(GAS_LIMIT), "timestamp": hex(GENESIS_TIME)
    }  # fmt: skip


@cache
def genesis() -> dict[str, Any]:
    """Returns the genesis file of an upstream with the market."""
    document = empty_genesis()
    alloc = dict(document["alloc"])
    for address, (balance, code, slots) in accounts().items():
        account: dict[str, Any] = {"balance": hex(balance)}
        if code:
            account |= {"nonce": "0x1", "code": "0x" + code.hex()}
        if slots:
            account["storage"] = {
                "0x" + word(k).hex(): "0x" + word(v).hex() for k, v in slots.items()
            }
        alloc["0x" + address.hex()] = account
    return document | {"alloc": alloc}


def token_slot_of(holder: int) -> int:
    """Returns the slot of a holder's balance in a token."""
    return balance_slot(holders()[holder].address)


def balance_call(token: int, holder: int) -> dict[str, str]:
    """Returns a call object that reads a holder's balance of a token."""
    owner = holders()[holder].address
    return call_object(TOKEN_ADDRESSES[token], BALANCE_OF + owner.rjust(32, b"\0"))


def multicall(holder: int, tokens: int = TOKENS) -> dict[str, str]:
    """Returns a call object that reads one holder's balances of many tokens."""
    words = [holders()[holder].address, *TOKEN_ADDRESSES[:tokens]]
    return call_object(MULTICALL_ADDRESS, b"".join(each.rjust(32, b"\0") for each in words))


def swap_data(amount: int = SWAP_AMOUNT) -> bytes:
    """Returns the calldata of a swap through all pools."""
    return word(amount) + b"".join(pool.rjust(32, b"\0") for pool in POOL_ADDRESSES)


def swap(holder: int = 0, amount: int = SWAP_AMOUNT) -> dict[str, str]:
    """Returns a call object that swaps through all pools."""
    return call_object(ROUTER_ADDRESS, swap_data(amount), holder, SWAP_GAS)


def bundle(number: int) -> list[dict[str, str]]:
    """Returns two calls: a holder transfers a token, then swaps through all pools."""
    holder, other = number % ACTIVE, (number + 1) % ACTIVE
    data = transfer(holders()[other].address, 10**18 + number)
    moved = call_object(TOKEN_ADDRESSES[number % TOKENS], data, holder, TRANSFER_GAS)
    return [moved, swap(holder, SWAP_AMOUNT + number)]


def call_object(to: bytes, data: bytes, holder: int = 0, gas: int = READ_GAS) -> dict[str, str]:
    """Returns a call object from a holder."""
    sender = holders()[holder].address
    return {
        "from": "0x" + sender.hex(), "to": "0x" + to.hex(), "data": "0x" + data.hex(),
        "gas": hex(gas),
    }  # fmt: skip


def busy_block(count: int) -> list[Transaction]:
    """Returns the signed transactions of the busy block, one per holder.

    They are token transfers, and every tenth is a swap.
    """
    found = []
    for number, holder in enumerate(holders()[:count]):
        if number % SWAPS_EACH == 0:
            to, data, gas = ROUTER_ADDRESS, swap_data(SWAP_AMOUNT + number), SWAP_GAS
        else:
            to = TOKEN_ADDRESSES[number % WIDELY_HELD]
            data = transfer(holders()[-1 - number].address, 10**18 + number)
            gas = TRANSFER_GAS
        found.append(signed(holder.key, 0, to=to, data=data, gas_limit=gas))
    return found


def expected_swap(amount: int = SWAP_AMOUNT) -> int:
    """Returns the output of the last pool, by the constant-product formula."""
    for _ in range(POOLS):
        fee = amount * 997
        amount = fee * FUNDS // (FUNDS * 1000 + fee)
    return amount


assert len(push(IMPLEMENTATION_SLOT)) == 33
