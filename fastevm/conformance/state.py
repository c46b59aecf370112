"""Runs state tests: a transaction on a given state must give the expected root in each fork."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache, partial
from typing import Any

from msgspec import Struct

from fastevm.conformance.difference import state_difference
from fastevm.conformance.fields import accounts_of, address_of, bytes_of, number_of
from fastevm.conformance.pre_states import anew, layer_of, unreadable, whole
from fastevm.conformance.runner import Apart, Case, Mismatch
from fastevm.conformance.snapshots import rules_meant
from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.block.fees import blob_base_fee
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import LATER_FIELDS, Log
from fastevm.core.primitives import rlp
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.spec.activation import Activations, activations_named
from fastevm.core.spec.blobs import BlobParameters, read_blob_schedule
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction, TransactionDecodeError
from fastevm.evm.machine import EVM, ExecutionResult

ANCESTORS = 256
NETWORKS = 128  # cached networks
MACHINES = 32  # cached machines, one per set of rules
ENVIRONMENT = (
    "currentNumber",
    "currentTimestamp",
    "currentGasLimit",
    "currentDifficulty",
    "currentRandom",
    "currentBaseFee",
    "currentExcessBlobGas",
    "slotNumber",
)
NOBODY = (None, "", "0x")  # values of ``to`` that mean contract creation

Execute = Callable[[EVM, Transaction], ExecutionResult]

signer = lru_cache(maxsize=1024)(public_key_address)


def cases(name: str, content: Mapping[str, Any]) -> Iterator[Case]:
    """Yields a case for each entry of ``post`` of each test of the file."""
    for title, fields in content.items():
        test = StateTest(fields)
        for name_there, entries in fields["post"].items():
            fork = rules_meant(name_there, fields)
            for position, entry in enumerate(entries):
                yield f"{title}[{fork}-{position}]", fork, partial(test.run, fork, entry)


class Played(Struct, frozen=True):
    """The outcome of a transaction: result or reason of rejection, and the state."""

    state: Layer
    result: ExecutionResult | None
    rejection: str | None


class StateTest:
    """A test. The parts that its entries share are decoded only once."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields
        self.config: Mapping[str, Any] = fields.get("config") or {}
        self.chain_id = number_of(self.config.get("chainid", "0x1"))

    @cached_property
    def pre(self) -> Layer:
        """The state before the transaction.

        Its tries are built, so that each entry only updates them.
        """
        layer = layer_of(self.accounts)
        if layer.remote_state is None:
            layer.state_root()
        return layer

    @cached_property
    def accounts(self) -> dict[bytes, dict[str, Any]]:
        """The accounts before the transaction."""
        return accounts_of(self.fields["pre"])

    @cached_property
    def env(self) -> dict[str, int]:
        """The numbers that the environment contains."""
        env = self.fields["env"]
        return {name: number_of(env[name]) for name in ENVIRONMENT if env.get(name) is not None}

    @cached_property
    def coinbase(self) -> bytes:
        return address_of(self.fields["env"]["currentCoinbase"])

    @cached_property
    def sender(self) -> bytes:
        fields = self.fields["transaction"]
        sender = fields.get("sender")
        return address_of(sender) if sender else signer(bytes_of(fields["secretKey"]))

    def run(self, fork: str, entry: Mapping[str, Any]) -> Mismatch | Apart | None:
        """Runs an entry. Returns None if root, logs and rejection are as expected."""
        return unreadable(self.accounts) or verdict(entry, self.play(fork, entry))

    def play(self, fork: str, entry: Mapping[str, Any], execute: Execute = EVM.execute) -> Played:
        """Returns the outcome of an entry's transaction. ``execute`` runs it on a machine."""
        evm = self.machine(self.schedule_of(fork))
        result = rejection = None
        try:
            result = execute(evm, self.transaction(entry))
        except (InvalidTransaction, TransactionDecodeError) as error:
            rejection = str(error)
        if rejection is not None and self.leaves_coinbase(entry):
            return Played(evm.state, result, rejection)
        return Played(touched(evm.state, evm.schedule, self.coinbase), result, rejection)

    def leaves_coinbase(self, entry: Mapping[str, Any]) -> bool:
        """Returns whether the expected state was generated without paying a zero reward."""
        if "state" not in entry or self.coinbase in self.accounts:
            return False
        return self.coinbase not in accounts_of(entry["state"])

    @cached_property
    def blobs(self) -> tuple[tuple[str, BlobParameters], ...]:
        """The blob parameters of the test's config, by fork."""
        return tuple(read_blob_schedule(self.config.get("blobSchedule")).items())

    def schedule_of(self, fork: str) -> ForkSchedule:
        """Returns the rules of a fork, or of a transition at the environment's number and time."""
        number, timestamp = self.env.get("currentNumber", 0), self.env.get("currentTimestamp", 0)
        return network(fork, self.blobs).at(number, timestamp)

    def machine(self, schedule: ForkSchedule) -> EVM:
        """Returns a machine with the test's environment and the state before the transaction."""
        evm = machine_of(schedule)
        evm.state = anew(self.pre)
        evm.set_block(**self.environment(schedule))
        return evm

    def environment(self, schedule: ForkSchedule) -> dict[str, Any]:
        """Returns the block environment, without fields that the fork does not have."""
        env, rules = self.env, schedule.parameters
        number = env.get("currentNumber", 0)
        excess = env.get("currentExcessBlobGas", 0)
        randomness = rules["difficulty_is_randomness"]
        return {
            "chain_id": self.chain_id,
            "number": number,
            "timestamp": env.get("currentTimestamp", 0),
            "gas_limit": env["currentGasLimit"],
            "coinbase": self.coinbase,
            "base_fee": env.get("currentBaseFee", 0) if rules["has_base_fee"] else 0,
            "blob_base_fee": blob_base_fee(excess, schedule) if rules["has_blobs"] else 0,
            "difficulty": 0 if randomness else env.get("currentDifficulty", 0),
            "prev_randao": env.get("currentRandom", 0) if randomness else 0,
            **{row.name: env.get(row.json, 0) for row in LATER_FIELDS if row.counts},
            "block_hashes": ancestors_of(number),
        }

    def transaction(self, entry: Mapping[str, Any]) -> Transaction:
        """Returns the transaction of an entry, decoded from the signed bytes if the entry has them.

        Raises ValueError if the signed bytes do not match the fields of the test.
        """
        chosen = self.chosen(entry["indexes"])
        if "txbytes" not in entry:
            return Transaction.build(**chosen)
        signed = Transaction.decode(bytes_of(entry["txbytes"]))
        built = Transaction.build(**chosen)
        protected = signed.chain_id if signed.type == 0 else None
        if built.signing_hash(chain_id=protected) != signed.signing_hash():
            raise ValueError("the fields of the test and its txbytes differ")
        return signed

    def chosen(self, indexes: Mapping[str, int]) -> dict[str, Any]:
        """Returns the transaction fields that the indexes select from the test's lists."""
        fields = self.fields["transaction"]
        chosen: dict[str, Any] = {
            "sender": self.sender,
            "to": None if fields.get("to") in NOBODY else address_of(fields["to"]),
            "nonce": number_of(fields["nonce"]),
            "data": bytes_of(fields["data"][indexes["data"]]),
            "gas_limit": number_of(fields["gasLimit"][indexes["gas"]]),
            "value": number_of(fields["value"][indexes["value"]]),
        }
        if "maxFeePerGas" in fields:
            chosen["max_fee_per_gas"] = number_of(fields["maxFeePerGas"])
            chosen["max_priority_fee_per_gas"] = number_of(fields["maxPriorityFeePerGas"])
        else:
            chosen["gas_price"] = number_of(fields["gasPrice"])
        lists = fields.get("accessLists")
        access = lists[indexes["data"]] if lists else fields.get("accessList")
        if access is not None:
            chosen["access_list"] = [
                (address_of(item["address"]), [number_of(key) for key in item["storageKeys"]])
                for item in access
            ]
        if "maxFeePerBlobGas" in fields:
            chosen["max_fee_per_blob_gas"] = number_of(fields["maxFeePerBlobGas"])
            chosen["blob_versioned_hashes"] = [
                bytes_of(item) for item in fields["blobVersionedHashes"]
            ]
        if "authorizationList" in fields:
            chosen["authorization_list"] = [_authorization(i) for i in fields["authorizationList"]]
        if chosen.keys() & {"max_fee_per_gas", "access_list"}:
            chosen["chain_id"] = self.chain_id
        return chosen


@lru_cache(maxsize=NETWORKS)
def network(name: str, blobs: tuple[tuple[str, BlobParameters], ...]) -> Activations:
    """Returns the activations of a fork or transition."""
    return activations_named(name, blob_schedule=dict(blobs))


@lru_cache(maxsize=MACHINES)
def machine_of(schedule: ForkSchedule) -> EVM:
    """Returns a cached machine with these rules."""
    return EVM(schedule)


@lru_cache(maxsize=64)
def ancestors_of(number: int) -> tuple[bytes, ...]:
    """Returns the hashes for BLOCKHASH(n): keccak256 of n in decimal, since there is no chain."""
    first = max(0, number - ANCESTORS)
    return tuple(keccak256(str(n).encode()) for n in range(number - 1, first - 1, -1))


def verdict(entry: Mapping[str, Any], played: Played) -> Mismatch | None:
    """Compares the expected with the actual outcome."""
    exception, rejection = entry.get("expectException"), played.rejection
    if exception and rejection is None:
        return Mismatch(f"rejected with {exception}", "accepted")
    expected, root = bytes_of(entry["hash"]), whole(played.state).state_root()
    if root != expected:
        why = f" (rejected: {rejection})" if rejection else ""
        if "state" in entry:
            why += state_difference(accounts_of(entry["state"]), played.state)
        return Mismatch(f"state root 0x{expected.hex()}", f"0x{root.hex()}{why}")
    if played.result is not None:
        logs = played.result.logs
        digest = hash_of_logs(logs)
        if digest != bytes_of(entry["logs"]):
            return Mismatch(f"logs hash {entry['logs']}", f"0x{digest.hex()} of {list(logs)}")
    return None


def hash_of_logs(logs: tuple[Log, ...]) -> bytes:
    """Returns keccak256 of the RLP of all [address, topics, data]."""
    return keccak256(rlp.encode([[log.address, list(log.topics), log.data] for log in logs]))


def touched(state: Layer, schedule: ForkSchedule, coinbase: bytes) -> Layer:
    """Pays the coinbase a reward of zero, after a transaction or its rejection.

    The reward creates the account or, since EIP-161, deletes it if it is empty.
    """
    account = state.account(coinbase)
    if not schedule.parameters["clears_empty_accounts"]:
        return state.with_accounts({coinbase: {}}) if account is None else state
    if account is not None and account.balance == account.nonce == 0 and not state.code(coinbase):
        return state.without_accounts([coinbase])
    return state


def _authorization(item: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        number_of(item["chainId"]),
        address_of(item["address"]),
        number_of(item["nonce"]),
        number_of(item.get("yParity", item.get("v"))),
        number_of(item["r"]),
        number_of(item["s"]),
    )
