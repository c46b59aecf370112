"""Makes valid arguments for a parameter, by its name and annotation."""

from __future__ import annotations

import random
from typing import Any, Final

import fastevm
from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.types import Block, Header, Withdrawal
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.state.layer import Layer

KEYS: Final = tuple(bytes([at]) * 32 for at in range(1, 5))
SENDERS: Final = {
    public_key_address(key): {"balance": 10**20, "nonce": 0, "code": b""} for key in KEYS
}
CONTRACT: Final = b"\xc0" * 20
ADDRESSES: Final = (CONTRACT, *(bytes([at]) * 20 for at in (1, 2, 3)), *SENDERS, bytes(19) + b"\1")
# Only code that ends by itself, because the gas may be a hostile, very large number.
CODES: Final = tuple(
    bytes.fromhex(code)
    for code in (
        "", "00", "fe", "ef0100" + "c1" * 20, "5f5ffd", "5f545f5560015f55", "600160005260205ff3",
        "5f5f5f5f5f5f5af1", "5f5f5ff0ff", "60205fa0", "5f5f5f5f60085afa00", "6010600060003e",
        "7f" + "ff" * 32 + "6000f3", "5a5a5a", "30315f5f5f5f5f3061fffff1",
        # Transient storage, a loop of 100 rounds, init code for one byte of code, a log with four
        # topics.
        "60015f5d5f5c5f5260205ff3", "60645b600190038060025700", "5f5f5360015ff3",
        "5f5f5f5f60ff60ffa4", "5f35405f5260205ff3", "48495f5260205ff3", "5f5f5f5f5f305af1",
        "6001600160ff1b5f3e", "5f355f355f3560203560403561ffff5af1503d5f5f3e3d5ff3",
    )
)  # fmt: skip
FORKS: Final = (
    "frontier", "byzantium", "berlin", "london", "shanghai", "cancun", "prague", "osaka",
    "amsterdam", "LATEST",
)  # fmt: skip
TRACES: Final = (
    "calls", "flat", "steps", "prestate", "diff", "access_list", "gas", "coverage", "selectors",
    ("calls", "diff"), {"steps": {"enableMemory": True}}, {"prestate": {"diffMode": True}},
)  # fmt: skip
UNCHECKED: Final = (
    (), "balance", "base_fee", "block_gas_limit", "gas_cap", "code_size", "nonce", "sender_code",
    ("balance", "nonce", "sender_code"),
)  # fmt: skip
ABI: Final = [
    {"type": "constructor", "inputs": []},
    {"type": "error", "name": "Bad", "inputs": [{"name": "a", "type": "uint256"}]},
    {"type": "event", "name": "Sent", "inputs": [{"name": "a", "type": "bytes", "indexed": True}]},
] + [
    {
        "type": "function", "name": name, "stateMutability": how,
        "inputs": [{"name": "a", "type": kind}], "outputs": [{"name": "", "type": kind}],
    }
    for name, how, kind in (
        ("read", "view", "uint256"), ("write", "nonpayable", "bytes"),
        ("pay", "payable", "address"), ("many", "view", "uint256[]"),
        ("many", "view", "(string,bytes32)[2]"),
    )
]  # fmt: skip
ADDRESS_NAMES: Final = frozenset(
    ("address", "to", "sender", "caller", "deployer", "coinbase", "origin", "deposit_contract")
)
SMALL: Final = (0, 0, 1, 2, 3, 7, 100, 2**64 - 1)
GAS: Final = (0, 700, 21_000, 60_000, 200_000, 1_000_000, 30_000_000)


def artifact(pick: random.Random) -> dict[str, Any]:
    """Returns an artifact as a compiler writes it."""
    return {"abi": ABI, "bytecode": "0x" + pick.choice(CODES).hex(), "contractName": "C"}


def state(pick: random.Random) -> dict[bytes, dict[str, Any]]:
    """Returns a few accounts with code, balance and storage."""
    return SENDERS | {
        address: {
            "balance": 10**20, "nonce": pick.choice((0, 1)), "code": pick.choice(CODES),
            "storage": {at: at + 1 for at in range(pick.randrange(4))},
        }
        for address in pick.sample(ADDRESSES, 3)
    }  # fmt: skip


def text_or_bytes(pick: random.Random, value: bytes, annotation: str) -> Any:
    """Returns bytes, or the same as hex text if the annotation allows text."""
    if "bytes" not in annotation:
        return "0x" + value.hex()
    return "0x" + value.hex() if "str" in annotation and pick.randrange(3) == 0 else value


def access_list(pick: random.Random, annotation: str) -> list[Any]:
    return [
        (text_or_bytes(pick, pick.choice(ADDRESSES), annotation), list(range(pick.randrange(3))))
        for _ in range(pick.randrange(3))
    ]


def by_name(pick: random.Random, name: str, annotation: str) -> Any:
    """Returns a value if the parameter's name is well known, or None."""
    choices: dict[str, Any] = {
        "trace": lambda: pick.choice(TRACES),
        "unchecked": lambda: pick.choice(UNCHECKED),
        "names": lambda: pick.choice(UNCHECKED),
        "abi": lambda: ABI,
        "artifact": lambda: fastevm.contract(artifact(pick)).artifact,
        "accounts": lambda: state(pick),
        "state": lambda: Layer.of(state(pick)),
        "access_list": lambda: access_list(pick, annotation),
        "storage": lambda: {1: 2, 3: 0},
        "fork": lambda: pick.choice(FORKS),
        "spec_id": lambda: pick.choice(FORKS),
        "schedule": lambda: schedule_for(pick.choice(FORKS[:-1])),
        "threads": lambda: pick.choice((1, 2, 3)),
        "timeout": lambda: pick.choice((None, 0.0, 1.0)),
        "tracing": lambda: pick.randrange(10) == 0,
        "url": lambda: "nowhere",
        "fork_url": lambda: None,
        "private_key": lambda: b"\x11" * 32,
        "block": lambda: (
            None
            if "Env" in annotation
            else Block(Header(gas_limit=30_000_000, base_fee_per_gas=7, number=1))
        ),
        "header": lambda: Header(gas_limit=30_000_000, base_fee_per_gas=7, number=1),
        "parent": lambda: Header(gas_limit=30_000_000, base_fee_per_gas=7),
        "withdrawals": lambda: [Withdrawal(1, 2, CONTRACT, 3)],
        "opcodes": lambda: pick.choice(((), ("SSTORE", "CALL"), ("PUSH1",))),
        "code_size_limit": lambda: pick.choice((None, 0, 1, 24_576, 2**31)),
        "limit_contract_code_size": lambda: pick.choice((None, 0, 1, 2**31)),
        "numerator": lambda: pick.randrange(1000),
        "denominator": lambda: pick.randrange(1, 1000),
    }
    if name == "source":
        return artifact(pick) if "StateSource" not in annotation else "nowhere"
    made = choices.get(name)
    return None if made is None else made()


def plausible(pick: random.Random, name: str, annotation: str) -> Any:
    """Returns a plausible value for a parameter of this name and type."""
    found = by_name(pick, name, annotation)
    if found is not None:
        return found
    if name in ADDRESS_NAMES:
        return text_or_bytes(pick, pick.choice(ADDRESSES), annotation or "bytes")
    if "code" in name and "bytes" in annotation:
        return text_or_bytes(pick, pick.choice(CODES), annotation)
    if "gas" in name and "int" in annotation:
        return pick.choice(GAS)
    if "hashes" in name:
        return [text_or_bytes(pick, b"\1" * 32, "bytes")] * pick.randrange(3)
    return by_type(pick, annotation)


def by_type(pick: random.Random, annotation: str) -> Any:
    """Returns a value of the first simple type in the annotation."""
    if "bool" in annotation:
        return pick.random() < 0.5
    if annotation.startswith(("list[int]", "Sequence[int]", "Iterable[int]")):
        return [pick.choice(SMALL) for _ in range(3)]
    if "bytes" in annotation:
        size = pick.choice((0, 4, 20, 32, 36, 100))
        return text_or_bytes(pick, pick.randbytes(size), annotation)
    if "int" in annotation:
        return pick.choice(SMALL)
    if "str" in annotation:
        return "0x" + pick.choice(ADDRESSES).hex()
    return None
