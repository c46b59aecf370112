"""The constants of the chain of an upstream, by its chain id, else by the fields of its header."""

from __future__ import annotations

from fastevm.chain.config import ChainConfig
from fastevm.chains import UnknownChain, find
from fastevm.node.forked.fork_history import ForkSource
from fastevm.spec.activation import Activations

# The newest header field, and the keys of the forks up to the one that brought it, the newest one
# whose rules such a chain is taken to have.
BLOCK_FORKS = (
    "homesteadBlock", "eip150Block", "eip155Block", "eip158Block", "byzantiumBlock",
    "constantinopleBlock", "petersburgBlock", "istanbulBlock", "berlinBlock",
)  # fmt: skip
BY_FIELD = (
    ("baseFeePerGas", ("londonBlock",)),
    ("withdrawalsRoot", ("mergeNetsplitBlock", "shanghaiTime")),
    ("parentBeaconBlockRoot", ("cancunTime",)),
    ("requestsHash", ("pragueTime", "osakaTime")),
)


def rules_of(source: ForkSource) -> ChainConfig:
    """The constants of a known chain, else the newest rules that the header's fields allow."""
    try:
        return find(str(source.chain_id)).config()
    except UnknownChain:
        pass
    forks = list(BLOCK_FORKS)
    for member, keys in BY_FIELD:
        if source.header.get(member) is not None:
            forks.extend(keys)
    config: dict[str, int] = {"terminalTotalDifficulty": 0, **dict.fromkeys(forks, 0)}
    return ChainConfig(
        chain_id=source.chain_id, activations=Activations.from_genesis_config(config)
    )
