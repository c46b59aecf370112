"""EIP-7892: Blob Parameter Only Hardforks.

A chain can change the number of blobs per block with only an entry in its configuration.
"""

import pytest

from fastevm.chain.chain import Chain
from fastevm.chain.config import ChainConfig
from fastevm.chain.genesis import genesis_block
from fastevm.core.spec.forks import fork_named, resolve
from fastevm.errors import InvalidBlock

from .support import BLOB_GAS, SENDER, blob_payments, build, grow, run

BLOBS = {"target": 7, "max": 11, "baseFeeUpdateFraction": 6_000_000}


def chain_with(blobs):
    """Returns a chain under Osaka that uses ``blobs`` as its blob parameters after 24 seconds."""
    times = {"shanghaiTime": 0, "cancunTime": 0, "pragueTime": 0, "osakaTime": 0, "bpo1Time": 24}
    schedule = {"osaka": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716}}
    genesis = {
        "config": {
            "chainId": 1,
            "terminalTotalDifficulty": 0,
            **times,
            "blobSchedule": schedule | ({"bpo1": blobs} if blobs else {}),
        },
        "gasLimit": hex(30_000_000),
        "alloc": {
            SENDER.hex(): {"balance": hex(10**20)},
            "00000961ef480eb55e80d19ad83579a64c007002": {"code": "0x00"},
            "0000bbddc7ce488642fb579f8b00f3a590007251": {"code": "0x00"},
        },
    }
    return Chain(ChainConfig.from_genesis(genesis), *genesis_block(genesis))


def test_blocks_hold_what_the_configuration_says():
    chain = chain_with(BLOBS)
    with pytest.raises(InvalidBlock, match="too many blobs"):
        build(chain, transactions=blob_payments(10, 0))
    assert grow(chain, transactions=blob_payments(9, 0)).header.blob_gas_used == 9 * BLOB_GAS
    with pytest.raises(InvalidBlock, match="too many blobs"):
        build(chain, transactions=blob_payments(12, 2))
    assert grow(chain, transactions=blob_payments(11, 2)).header.blob_gas_used == 11 * BLOB_GAS


def test_a_blob_fork_without_parameters_is_refused():
    with pytest.raises(ValueError, match="blobSchedule"):
        chain_with({"target": 7, "max": 6, "baseFeeUpdateFraction": 1})


def test_nothing_else_changes():
    osaka, changed = resolve(fork_named("Osaka")), resolve(fork_named("BPO1"))
    assert changed.opcodes == osaka.opcodes
    assert changed.precompiles == osaka.precompiles
    different = {name for name, v in changed.parameters.items() if v != osaka.parameters[name]}
    assert different == {"blob_target", "blob_max", "blob_base_fee_fraction"}
    source = "0 SLOAD 1 ADD 0 SSTORE 2 CLZ"
    assert run("Osaka", source).gas_used == run("BPO1", source).gas_used
