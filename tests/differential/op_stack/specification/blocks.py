"""Executes a block. The case and its outcome are JSON-like values.

Numbers are integers, bytes are hex with 0x, slots are hex numbers. A case has these members:

- `chain_id`, and `fork` and `parent_fork`, the forks of the block and of its parent
- `constants`: base fee denominator from Canyon on, and elasticity
- `parent`: the parent header
- `block`: the header fields that do not follow from execution
- `ancestors`: hashes of the blocks before the parent, oldest first
- `pre`: the accounts before the block
- `transactions`: raw transactions to try in order
- `takes_users`: optional, accepts users' transactions in the first block of a fork

A transaction that is invalid at its position is left out of the block, and the outcome names the
reason. Since Jovian, the first block of a fork has only deposits (jovian/derivation).
"""

from typing import Any

from .constants import MESSAGE_PASSER
from .encoding import from_hex, keccak256, ordered_root, to_hex, word
from .forks import Fork
from .headers import FeeRule, Header, base_fee_after, completed
from .machine import Environment, Machine
from .receipts import bloom_of
from .transition import Block, Done, InvalidBlock, logs_of

Fields = dict[str, Any]
NUMBERS = ("number", "gas_limit", "gas_used", "timestamp", "base_fee")
LATER_NUMBERS = ("blob_gas_used", "excess_blob_gas")


def run_case(case: Fields) -> Fields:
    """Returns transaction outcomes, the header with its hash, and the post-state."""
    fork, parent_fork = Fork.named(case["fork"]), Fork.named(case["parent_fork"])
    constants = FeeRule(case["constants"]["denominator"], case["constants"]["elasticity"])
    before = state_of(case, fork)
    parent = header_of(case["parent"], before, parent_fork)
    base_fee = base_fee_after(parent, parent_fork, fork, constants)
    machine = machine_of(case, fork, parent, base_fee)
    is_first = fork != parent_fork
    only_deposits = is_first and fork >= Fork.JOVIAN and not case.get("takes_users")
    block = Block(machine, fork, is_first, takes_users=not only_deposits)
    block.begin()
    outcomes, included = [], []
    for text in case["transactions"]:
        try:
            done = block.execute(from_hex(text))
        except InvalidBlock as reason:
            outcomes.append({"valid": False, "reason": str(reason)})
        else:
            outcomes.append(reported(done, fork, from_hex(text)))
            included.append(from_hex(text))
    header = sealed(case, fork, parent, block, included)
    return {
        "transactions": outcomes,
        "parent": to_hex(parent.encode()),
        "header": to_hex(header.encode()),
        "hash": to_hex(header.hash()),
        "base_fee": base_fee,
        "gas_used": header.gas_used,
        "blob_gas_used": header.blob_gas_used,
        "receipts_root": to_hex(header.receipts_root),
        "state_root": to_hex(header.state_root),
        "withdrawals_root": optional_hex(header.withdrawals_root),
        "post": dumped(machine),
    }


def state_of(case: Fields, fork: Fork) -> Machine:
    """Returns a machine with the state before the block.

    It computes missing roots of the parent.
    """
    nothing = Environment(0, 0, 0, 0, 0, bytes(20), bytes(32), (), bytes(32))
    machine = Machine(fork, nothing)
    fill(machine, case["pre"])
    return machine


def fill(machine: Machine, pre: Fields) -> None:
    for text, account in pre.items():
        address = from_hex(text)
        machine.put(address, account["nonce"], account["balance"], from_hex(account["code"]))
        for slot, value in account["storage"].items():
            machine.put_slot(address, word(int(slot, 16)), value)


def header_of(fields: Fields, before: Machine, fork: Fork) -> Header:
    """Returns the parent header. Computes its missing roots from the state before the block."""
    known: Fields = {name: fields[name] for name in NUMBERS}
    known |= {name: fields.get(name) for name in LATER_NUMBERS}
    for name in Header.__annotations__:
        if name not in known:
            text = fields.get(name)
            known[name] = None if text is None else from_hex(text)
    if known["state_root"] is None:
        known["state_root"] = before.state_root()
    if known["withdrawals_root"] is None and fork >= Fork.ISTHMUS:
        known["withdrawals_root"] = before.storage_root(MESSAGE_PASSER)
    return Header(**known)


def machine_of(case: Fields, fork: Fork, parent: Header, base_fee: int) -> Machine:
    block = case["block"]
    environment = Environment(
        chain_id=case["chain_id"],
        number=parent.number + 1,
        timestamp=block["timestamp"],
        gas_limit=block["gas_limit"],
        base_fee=base_fee,
        coinbase=from_hex(block["coinbase"]),
        prev_randao=from_hex(block["prev_randao"]),
        block_hashes=(*map(from_hex, case["ancestors"]), parent.hash()),
        parent_beacon_block_root=from_hex(block["parent_beacon_block_root"]),
    )
    machine = Machine(fork, environment)
    fill(machine, case["pre"])
    return machine


def sealed(case: Fields, fork: Fork, parent: Header, block: Block, included: list[bytes]) -> Header:
    """Returns the header of the executed block.

    If the case has only a part of the state, its `state_root` is used instead of a computed root.
    """
    machine = block.machine
    environment = machine.environment
    given = case.get("state_root")
    header = Header(
        parent_hash=parent.hash(),
        coinbase=environment.coinbase,
        state_root=from_hex(given) if given else machine.state_root(),
        transactions_root=ordered_root(included),
        receipts_root=ordered_root([done.receipt.encode(fork) for done in block.done]),
        bloom=bloom_of(logs_of(block)),
        number=environment.number,
        gas_limit=environment.gas_limit,
        gas_used=block.gas_used,
        timestamp=environment.timestamp,
        extra_data=from_hex(case["block"]["extra_data"]),
        prev_randao=environment.prev_randao,
        base_fee=environment.base_fee,
    )
    passer_root = machine.storage_root(MESSAGE_PASSER)
    beacon = environment.parent_beacon_block_root
    return completed(header, fork, passer_root, block.footprint, beacon)


def reported(done: Done, fork: Fork, raw: bytes) -> Fields:
    return {
        "valid": True,
        "hash": to_hex(keccak256(raw)),
        "sender": to_hex(done.sender),
        "status": done.receipt.status,
        "error": done.error,
        "gas_used": done.gas_used,
        "receipt": to_hex(done.receipt.encode(fork)),
        "logs": [
            [to_hex(log.address), [to_hex(topic) for topic in log.topics], to_hex(log.data)]
            for log in done.receipt.logs
        ],
        "deposit_nonce": done.receipt.deposit_nonce,
        "l1_fee": done.l1_fee,
        "l1_gas_used": done.l1_gas_used,
        "operator_fee": done.operator_fee,
        "footprint": done.footprint,
    }


def dumped(machine: Machine) -> Fields:
    """Returns all accounts, in the format of a case's `pre`."""
    return {
        to_hex(address): {
            "nonce": nonce,
            "balance": balance,
            "code": to_hex(code),
            "storage": {
                hex(int.from_bytes(slot, "big")): value for slot, value in sorted(storage.items())
            },
        }
        for address, (nonce, balance, code, storage) in sorted(machine.accounts().items())
    }


def optional_hex(data: bytes | None) -> str | None:
    return None if data is None else to_hex(data)
