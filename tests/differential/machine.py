"""Runs a case on fastevm. Returns the outcome in the format of the peers."""

from functools import lru_cache
from itertools import compress
from typing import Any

from fastevm.core.execution.block.fees import blob_base_fee
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction
from fastevm.evm.machine import EVM

from .cases import KEYS, PEOPLE, Case, Fields

ANCESTORS = 256
BYTES = ("sender", "to", "data")
UNCHANGED = (
    "type", "nonce", "gas_limit", "gas_price", "max_fee_per_gas", "max_priority_fee_per_gas",
    "value", "max_fee_per_blob_gas",
)  # fmt: skip

Outcome = dict[str, Any]


def unhexed(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def state_of(pre: dict[str, Fields]) -> Layer:
    """Returns the state of a case as a layer."""
    return Layer.of(
        {
            unhexed(address): {
                "balance": account["balance"],
                "nonce": account["nonce"],
                "code": unhexed(account["code"]),
                "storage": {int(key, 16): value for key, value in account["storage"].items()},
            }
            for address, account in pre.items()
        }
    )


def transaction_of(fields: Fields) -> Transaction:
    """Returns an unsigned transaction with the fields of a case."""
    built: dict[str, Any] = {name: fields[name] for name in UNCHANGED if name in fields}
    for name in BYTES:
        built[name] = unhexed(fields[name]) if fields[name] else None
    if "access_list" in fields:
        built["access_list"] = [(unhexed(a), keys) for a, keys in fields["access_list"]]
    if "blob_versioned_hashes" in fields:
        built["blob_versioned_hashes"] = [unhexed(h) for h in fields["blob_versioned_hashes"]]
    if "authorization_list" in fields:
        built["authorization_list"] = [
            (chain, unhexed(address), *rest)
            for chain, address, *rest in fields["authorization_list"]
        ]
    if fields["type"]:
        built["chain_id"] = 1
    return Transaction.build(**built)


@lru_cache(maxsize=32)
def evm_of(fork: str) -> EVM:
    """Returns a machine.

    All cases of a fork share it, so that state left over by a case shows up.
    """
    return EVM(fork)


@lru_cache(maxsize=16)
def ancestors_of(number: int) -> tuple[bytes, ...]:
    """Returns made-up hashes of the previous blocks, parent first.

    The hash of block ``n`` is keccak256 of the decimal number.
    """
    return tuple(
        keccak256(str(n).encode()) for n in range(number - 1, max(0, number - ANCESTORS) - 1, -1)
    )


def block_of(case: Case, schedule: ForkSchedule) -> Fields:
    """Returns the case's block as arguments for `EVM.set_block`."""
    block = dict(case.block)
    excess = block.pop("excess_blob_gas")
    has_blobs = schedule.parameters["has_blobs"]
    block["coinbase"] = unhexed(block["coinbase"])
    block["blob_base_fee"] = blob_base_fee(excess, schedule) if has_blobs else 0
    block["block_hashes"] = ancestors_of(block["number"])
    return block


def prepare(case: Case, evm: EVM) -> EVM:
    """Sets the machine to the case's block and state."""
    evm.set_block(**block_of(case, evm.schedule))
    evm.state = state_of(case.pre)
    return evm


def run_transaction(evm: EVM, fields: Fields) -> Outcome:
    """Runs a transaction. Returns status, gas used, output and logs."""
    try:
        result = evm.execute(transaction_of(fields))
    except InvalidTransaction as refusal:
        return {"status": "rejected", "reason": str(refusal)}
    status = "success" if result.success else "halt"
    if not result.success and result.error.startswith("execution reverted"):
        status = "revert"
    return {
        "status": status,
        "reason": result.error or "",
        "gas_used": result.gas_used,
        "output": hex_bytes(result.output),
        "logs": [
            [
                hex_bytes(log.address),
                [hex_bytes(topic) for topic in log.topics],
                hex_bytes(log.data),
            ]
            for log in result.logs
        ],
    }


def dump(state: Layer) -> dict[str, Any]:
    """Returns all accounts: address -> [nonce, balance, code, {slot: value}]."""
    dumped = {}
    for address in sorted(state.addresses()):
        account = state.account(address)
        assert account is not None
        storage = {hex(key): value for key, value in sorted(state.storage_items(address).items())}
        dumped[hex_bytes(address)] = [
            account.nonce, account.balance, hex_bytes(state.code(address)), storage,
        ]  # fmt: skip
    return dumped


def run(case: Case) -> Outcome:
    """Runs a case. Returns the outcomes of its transactions, and the final state with its root."""
    evm = prepare(case, evm_of(case.fork))
    outcomes = [run_transaction(evm, fields) for fields in case.transactions]
    return {
        "transactions": outcomes,
        "state": dump(evm.state),
        "root": hex_bytes(evm.state.state_root()),
    }


def without_refused(case: Case, outcome: Outcome) -> tuple[Case, Outcome]:
    """Removes transactions that fastevm rejects, for peers that do not check validity.

    Returns the shorter case and its outcome.
    """
    accepted = [done["status"] != "rejected" for done in outcome["transactions"]]
    transactions = list(compress(case.transactions, accepted))
    done = list(compress(outcome["transactions"], accepted))
    return replace(case, transactions=transactions), {**outcome, "transactions": done}


def with_signatures(case: Case) -> Case:
    """Returns the case with signed transactions, for peers that recover the sender themselves."""
    signed = []
    for fields in case.transactions:
        key = KEYS[PEOPLE.index(unhexed(fields["sender"]))]
        raw = transaction_of({**fields, "sender": None}).sign(key).raw
        signed.append({**fields, "raw": hex_bytes(raw)})
    return replace(case, transactions=signed)


def as_free_message(case: Case) -> Case | None:
    """Returns a case with the first call only and without fees, or None if there is no call.

    It is for pyrevm, which supports no fees. The case has no storage, because pyrevm treats given
    slots as warm. The sender's nonce is at least 1: pyrevm does not increment it, so with nonce 0 a
    sender without balance would be an empty account there.
    """
    calls = [fields for fields in case.transactions if fields["to"] and fields["type"] < 3]
    if not calls:
        return None
    pre = {address: {**account, "storage": {}} for address, account in case.pre.items()}
    sender = calls[0]["sender"]
    poor = {"balance": 0, "nonce": 0, "code": "0x", "storage": {}}
    account = pre.get(sender, poor)
    pre[sender] = {**account, "nonce": account["nonce"] or 1}
    call = {name: calls[0][name] for name in ("sender", "to", "data", "gas_limit", "value")}
    call |= {"type": 0, "gas_price": 0, "nonce": pre[sender]["nonce"]}
    return Case(case.fork, {**case.block, "base_fee": 0}, pre, [call])
