"""The genesis block and its state, from a genesis file in geth's format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastevm.chain.config import ChainConfig
from fastevm.core.execution.block.header_draft import later_fields
from fastevm.core.execution.op_stack.predeploys import message_passer_root
from fastevm.core.execution.types import (
    LATER_FIELDS,
    ZERO_ADDRESS,
    ZERO_HASH,
    Block,
    Header,
)
from fastevm.core.primitives.config_values import read_bytes, read_number
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer

DEFAULT_GAS_LIMIT = 4_712_388
DEFAULT_DIFFICULTY = 0x20000


def genesis_block(
    genesis: Mapping[str, Any],
    config: ChainConfig | None = None,
    *,
    genesis_hash: bytes | None = None,
) -> tuple[Block, Layer]:
    """Returns the genesis block and the state after it.

    ``genesis``: parsed JSON with ``alloc``, header members and ``config`` (unless a
    :class:`ChainConfig` is given). Raises ValueError with the invalid member, or if the block does
    not have ``genesis_hash`` (32 bytes).
    """
    config = ChainConfig.from_genesis(genesis) if config is None else config
    layer = genesis_state(genesis.get("alloc") or {})
    number = _number(genesis, "number", 0)
    timestamp = _number(genesis, "timestamp", 0)
    schedule = config.activations.at(number, timestamp)
    rules = schedule.parameters
    header = Header(
        parent_hash=_bytes(genesis, "parentHash", ZERO_HASH),
        coinbase=_bytes(genesis, "coinbase", ZERO_ADDRESS),
        state_root=layer.state_root(),
        difficulty=_number(
            genesis, "difficulty", 0 if rules["proof_of_stake"] else DEFAULT_DIFFICULTY
        ),
        number=number,
        gas_limit=_number(genesis, "gasLimit", DEFAULT_GAS_LIMIT),
        gas_used=_number(genesis, "gasUsed", 0),
        timestamp=timestamp,
        extra_data=read_bytes(genesis.get("extraData") or "0x", "extraData"),
        mix_hash=_bytes(genesis, "mixHash", ZERO_HASH),
        nonce=_nonce(genesis),
        **_later_fields(genesis, schedule, layer),
    )
    if genesis_hash is not None and header.hash != genesis_hash:
        found = header.hash.hex()
        raise ValueError(f"genesis: expected the block 0x{genesis_hash.hex()}, found 0x{found}")
    withdrawals = () if rules["has_withdrawals"] else None
    return Block(header, withdrawals=withdrawals), layer


def genesis_state(alloc: Mapping[str, Any]) -> Layer:
    """Returns the state of an ``alloc``.

    An ``alloc`` maps an address to ``balance``, ``nonce``, ``code`` and ``storage``.
    """
    return Layer.of(read_accounts(alloc))


def read_accounts(alloc: Mapping[str, Any]) -> dict[bytes, dict[str, Any]]:
    """Returns the accounts of an ``alloc`` by address, in the form that :class:`Layer` takes.

    The accounts have only the members that the ``alloc`` has.
    """
    return {
        read_bytes(address, "alloc", 20): _account(fields, f"alloc.{address}")
        for address, fields in _members(alloc, "alloc").items()
    }


def with_amendments(layer: Layer, accounts: Mapping[str, Any]) -> Layer:
    """Returns ``layer`` with the accounts of an ``alloc`` written over it; null removes an account.

    Members that an account of the ``alloc`` lacks keep their values. Raises ValueError with the
    invalid member.
    """
    removed = [
        read_bytes(name, "accounts", 20) for name, fields in accounts.items() if fields is None
    ]
    changed = read_accounts(
        {name: fields for name, fields in accounts.items() if fields is not None}
    )
    if removed:
        layer = layer.without_accounts(removed)
    return layer.with_accounts(changed)


def _account(given: Any, name: str) -> dict[str, Any]:
    fields = _members(given, name)
    found: dict[str, Any] = {}
    for member, size in (("balance", 32), ("nonce", 8)):
        if fields.get(member) not in (None, ""):
            found[member] = number = read_number(fields[member], f"{name}.{member}")
            if number >= 2 ** (8 * size):
                raise ValueError(f"{name}.{member}: expected at most {size} bytes, found {number}")
    if fields.get("code") not in (None, ""):
        found["code"] = read_bytes(fields["code"], f"{name}.code")
    if fields.get("storage"):
        found["storage"] = {
            _word(slot, f"{name}.storage"): _word(value, f"{name}.storage.{slot}")
            for slot, value in _members(fields["storage"], f"{name}.storage").items()
        }
    return found


def _later_fields(
    genesis: Mapping[str, Any], schedule: ForkSchedule, layer: Layer
) -> dict[str, Any]:
    """Returns the header fields that the forks from Frontier to the genesis block's fork added."""
    rules = schedule.parameters
    fields: dict[str, Any] = {
        row.name: read_number(genesis[row.json], row.json)
        for row in LATER_FIELDS
        if row.kind == "int" and genesis.get(row.json) is not None
    }
    fields.setdefault("base_fee_per_gas", int(rules["initial_base_fee"]))
    beacon_root = _bytes(genesis, "parentBeaconBlockRoot", ZERO_HASH)
    fields["parent_beacon_block_root"] = beacon_root
    if rules["commits_to_withdrawals"]:
        fields["withdrawals_root"] = message_passer_root(layer)
    return later_fields(schedule, fields)


def _members(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name}: expected an object, found {value!r}")
    return value


def _nonce(genesis: Mapping[str, Any]) -> bytes:
    nonce = _number(genesis, "nonce", 0)
    if nonce >= 2**64:
        raise ValueError(f"nonce: expected at most 8 bytes, found {nonce}")
    return nonce.to_bytes(8, "big")


def _number(genesis: Mapping[str, Any], name: str, default: int) -> int:
    value = genesis.get(name)
    return default if value is None else read_number(value, name)


def _bytes(genesis: Mapping[str, Any], name: str, default: bytes) -> bytes:
    value = genesis.get(name)
    return default if value is None else read_bytes(value, name, len(default))


def _word(value: Any, name: str) -> int:
    """Reads a storage slot or its value: hex of up to 32 bytes, with or without leading zeros."""
    digits = value.removeprefix("0x") if isinstance(value, str) else ""
    try:
        word = int(digits, 16)
    except ValueError:
        raise ValueError(f"{name}: expected a hex number, found {value!r}") from None
    if not 0 <= word < 2**256:
        raise ValueError(f"{name}: expected at most 32 bytes, found {value!r}")
    return word
