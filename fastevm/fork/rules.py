"""The rules of a remote chain: by its chain id, by what a development node says, or by name."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from fastevm.chain.config import ChainConfig
from fastevm.chain.named import UnknownChain, find
from fastevm.core.execution.op_stack.predeploys import L1_BLOCK
from fastevm.core.primitives.hex import quantity
from fastevm.core.spec import forks as f
from fastevm.core.spec.activation import MAINNET, Activations
from fastevm.core.spec.forks import Fork, fork_named
from fastevm.errors import ForkError, UnknownForkError
from fastevm.fork.endpoints import NOT_ANSWERED
from fastevm.fork.opening import RULES_CALLS
from fastevm.fork.remote_source import RemoteSource
from fastevm.fork.session import DEVELOPMENT_CHAINS
from fastevm.rpc_client.messages import RpcRefusal

log = logging.getLogger(__name__)

NEWEST: Final = MAINNET.by_time[-1].fork
NEWEST_OP: Final = f.OP_FORKS[-1]
HOLOCENE_EXTRA_DATA, JOVIAN_EXTRA_DATA = 9, 17  # bytes
# A precompile that a fork brought (EIP-7910 names them), the newest first.
BROUGHT: Final = (("P256VERIFY", f.OSAKA), ("BLS12_G1ADD", f.PRAGUE))
BLOBS: Final = "KZG_POINT_EVALUATION"  # Cancun's, which was the first with eth_config


def rules_of(source: RemoteSource, hardfork: str | None = None) -> ChainConfig:
    """The constants and forks of the source's chain.

    ``hardfork``: the name of a fork that is in force at every block. Without it: of a chain that
    the registry knows its own forks; of a development chain what its node says; of any other the
    newest fork of Ethereum, or of the OP stack where its predeploys are, with a warning.
    UnknownForkError for a name that nobody knows.
    """
    if hardfork is not None:
        return _always(source, fork_named(hardfork))
    if source.chain_id not in DEVELOPMENT_CHAINS:
        try:
            return find(source.chain_id).config()
        except UnknownChain:
            return _always(source, _guessed(source))
    fork = _fork_of_node(source)
    if fork is None:
        log.info("%s names no hardfork: %s is taken", source.endpoint, NEWEST.name)
    return _always(source, fork or NEWEST)


def _always(source: RemoteSource, fork: Fork) -> ChainConfig:
    return ChainConfig(chain_id=source.chain_id, activations=Activations.always(fork))


def _guessed(source: RemoteSource) -> Fork:
    """The fork of a chain that nobody knows: the newest of its family, with a warning."""
    is_op = False
    if not source.session.offline:
        at = quantity(source.block_number)
        code = source.batch([("eth_getCode", ("0x" + L1_BLOCK.hex(), at))])[0]
        is_op = isinstance(code, str) and len(code) > len("0x")
    fork = _op_fork_of(source.header) if is_op else NEWEST
    log.warning(
        "chain %d is unknown and gets the rules of %s%s: name others by hardfork= (--hardfork)",
        source.chain_id, fork.name, " (OP stack)" if is_op else "",
    )  # fmt: skip
    return fork


def _op_fork_of(header: Mapping[str, Any]) -> Fork:
    """The newest fork of the OP stack whose headers have this form."""
    extra_data_bytes = len(header.get("extraData", "0x")) // 2 - 1
    if extra_data_bytes == JOVIAN_EXTRA_DATA:
        return NEWEST_OP
    if extra_data_bytes == HOLOCENE_EXTRA_DATA:
        return f.ISTHMUS if "requestsHash" in header else f.HOLOCENE
    if "parentBeaconBlockRoot" in header:
        return f.GRANITE
    return f.CANYON if "withdrawalsRoot" in header else f.REGOLITH


def _fork_of_node(source: RemoteSource) -> Fork | None:
    """The fork that a development node names, or whose precompiles it has."""
    if source.session.offline:
        return None
    info, config = source.session.told or (None, None)
    if _is_unanswered(info) or _is_unanswered(config):
        try:
            info, config = source.batch([(call.method, call.params) for call in RULES_CALLS])
        except ForkError:
            return None
    if isinstance(info, Mapping) and isinstance(info.get("hardFork"), str):
        try:
            return fork_named(info["hardFork"])
        except UnknownForkError as error:
            log.warning("%s: %s", source.endpoint, error)
    return None if isinstance(config, RpcRefusal) else _fork_of_config(config)


def _is_unanswered(answer: Any) -> bool:
    """Whether a call was not asked, or given up together with others."""
    return answer is None or (isinstance(answer, RpcRefusal) and answer.code == NOT_ANSWERED)


def _fork_of_config(config: Any) -> Fork | None:
    """The fork in the answer of eth_config (EIP-7910)."""
    current = config.get("current") if isinstance(config, Mapping) else None
    precompiles = current.get("precompiles") if isinstance(current, Mapping) else None
    if not isinstance(precompiles, Mapping):
        return None
    found = next((fork for name, fork in BROUGHT if name in precompiles), None)
    return f.CANCUN if found is None and BLOBS in precompiles else found
