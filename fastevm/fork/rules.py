"""The rules of a remote chain: by its chain id, by what a development node says, or by name."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from fastevm.chain.config import ChainConfig
from fastevm.chains import UnknownChain, find
from fastevm.errors import ForkError, UnknownForkError
from fastevm.fork.remote_source import RemoteSource
from fastevm.fork.session import DEVELOPMENT_CHAINS
from fastevm.spec import forks as f
from fastevm.spec.activation import MAINNET, Activations
from fastevm.spec.forks import Fork, fork_named
from fastevm.wire.client.messages import RpcRefusal

log = logging.getLogger(__name__)

NEWEST: Final = MAINNET.by_time[-1].fork
# A precompile that a fork brought (EIP-7910 names them), the newest first.
BROUGHT: Final = (("P256VERIFY", f.OSAKA), ("BLS12_G1ADD", f.PRAGUE))
BLOBS: Final = "KZG_POINT_EVALUATION"  # Cancun's, which was the first with eth_config


def rules_of(source: RemoteSource, hardfork: str | None = None) -> ChainConfig:
    """The constants and forks of the source's chain.

    ``hardfork``: the name of a fork that is in force at every block. Without it: of a chain that
    the registry knows its own forks; of a development chain what its node says; of any other the
    newest fork of Ethereum, with a warning. UnknownForkError for a name that nobody knows.
    """
    if hardfork is not None:
        return _always(source, fork_named(hardfork))
    if source.chain_id not in DEVELOPMENT_CHAINS:
        try:
            return find(source.chain_id).config()
        except UnknownChain:
            log.warning(
                "chain %d is unknown and gets the rules of %s: name others by hardfork=",
                source.chain_id, NEWEST.name,
            )  # fmt: skip
            return _always(source, NEWEST)
    fork = _fork_of_node(source)
    if fork is None:
        log.info("%s names no hardfork: %s is taken", source.endpoint, NEWEST.name)
    return _always(source, fork or NEWEST)


def _always(source: RemoteSource, fork: Fork) -> ChainConfig:
    return ChainConfig(chain_id=source.chain_id, activations=Activations.always(fork))


def _fork_of_node(source: RemoteSource) -> Fork | None:
    """The fork that a development node names, or whose precompiles it has."""
    if source.session.offline:
        return None
    try:
        info, config = source.batch([("anvil_nodeInfo", ()), ("eth_config", ())])
    except ForkError:
        return None
    if isinstance(info, Mapping) and isinstance(info.get("hardFork"), str):
        try:
            return fork_named(info["hardFork"])
        except UnknownForkError as error:
            log.warning("%s: %s", source.endpoint, error)
    return None if isinstance(config, RpcRefusal) else _fork_of_config(config)


def _fork_of_config(config: Any) -> Fork | None:
    """The fork in the answer of eth_config (EIP-7910)."""
    current = config.get("current") if isinstance(config, Mapping) else None
    precompiles = current.get("precompiles") if isinstance(current, Mapping) else None
    if not isinstance(precompiles, Mapping):
        return None
    found = next((fork for name, fork in BROUGHT if name in precompiles), None)
    return f.CANCUN if found is None and BLOBS in precompiles else found
