"""A small chain for tests with one funded account. Blocks can be built on any parent."""

from fastevm.chain.chain import Chain
from fastevm.chain.config import ChainConfig
from fastevm.chain.genesis import genesis_block
from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.block.header_draft import draft_header
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.activation import activations_named

KEY = b"\x11" * 32
SENDER = public_key_address(KEY)
RECIPIENT = b"\x22" * 20
ETHER = 10**18
# Chains of these tests have this code at the system contracts below. It returns no requests.
STOP = b"\x00"
REQUEST_CONTRACTS = (
    "00000961ef480eb55e80d19ad83579a64c007002",
    "0000bbddc7ce488642fb579f8b00f3a590007251",
)


BUILDER_CONTRACTS = (
    "0000bff46984e3725691fa540a8c7589300d8282",
    "000064d678505ad48f8ccb093bc65613800e8282",
)


def config(fork="Osaka", chain_id=1):
    return ChainConfig(chain_id=chain_id, activations=activations_named(fork))


def new_chain(fork="Osaka", alloc=None, limits=None, **members):
    """Returns a chain that has only its genesis block. All blocks have the rules of ``fork``."""
    accounts = {SENDER.hex(): {"balance": hex(100 * ETHER)}}
    contracts = REQUEST_CONTRACTS + (BUILDER_CONTRACTS if "Amsterdam" in fork else ())
    accounts |= {address: {"code": "0x" + STOP.hex()} for address in contracts}
    genesis = {"gasLimit": 30_000_000, "alloc": accounts | (alloc or {}), **members}
    chosen = config(fork)
    return Chain(chosen, *genesis_block(genesis, chosen), limits=limits)


def payment(nonce, value=1, to=RECIPIENT, gas_price=2 * 10**9, key=KEY, **fields):
    fields = {"gas_limit": 21_000, "to": to, "value": value, "nonce": nonce} | fields
    return Transaction.build(gas_price=gas_price, **fields).sign(key, chain_id=None)


def build(chain, parent=None, transactions=(), ommers=(), withdrawals=(), **changes):
    """Builds a child of ``parent`` (default: the head). Returns the block and its result."""
    parent = parent or chain.head
    timestamp = changes.pop("timestamp", parent.header.timestamp + 12)
    schedule = chain.schedule_for_child(parent, timestamp)
    header = replace(draft_header(parent.header, schedule, timestamp=timestamp), **changes)
    has_withdrawals = schedule.parameters["has_withdrawals"]
    builder = BlockBuilder(
        chain.layer_of(parent.hash),
        header,
        schedule,
        chain_id=chain.config.chain_id,
        deposit_contract=chain.config.deposit_contract,
        ancestors=chain.ancestors(parent.hash),
        withdrawals=withdrawals if has_withdrawals else None,
        ommers=ommers,
    )
    builder.begin()
    builder.add_all(transactions)
    return builder.seal()


def grow(chain, count=1, **changes):
    """Adds ``count`` blocks to the head. Returns the last block."""
    for _ in range(count):
        chain.add(build(chain, **changes)[0])
    return chain.head
