"""The rules of a remote chain: by chain id, from a development node, or by name."""

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
from fastevm.fork.arbitrum import arbitrum_rules, is_arbitrum_chain
from fastevm.fork.endpoints import NOT_ANSWERED
from fastevm.fork.opening import RULES_CALLS
from fastevm.fork.remote_source import RemoteSource
from fastevm.fork.session import DEVELOPMENT_CHAINS
from fastevm.fork.zksync import refuse_zksync
from fastevm.rpc_client.messages import RpcRefusal

log = logging.getLogger(__name__)

NEWEST: Final = MAINNET.by_time[-1].fork
NEWEST_OP: Final = f.OP_FORKS[-1]
HOLOCENE_EXTRA_DATA, JOVIAN_EXTRA_DATA = 9, 17  # bytes of extra data
# Precompile -> the fork that introduced it (names of EIP-7910), newest first.
BROUGHT: Final = (("P256VERIFY", f.OSAKA), ("BLS12_G1ADD", f.PRAGUE))
# precompile of Cancun, the oldest fork that eth_config reports
BLOBS: Final = "KZG_POINT_EVALUATION"


def rules_of(source: RemoteSource, hardfork: str | None = None) -> ChainConfig:
    """Returns the constants and forks of the source's chain.

    ``hardfork``: the name of a fork to use for all blocks. Without ``hardfork``, a known chain has
    its own forks, and a development chain the fork that its node reports. Any other chain has the
    newest fork of the OP Stack if the predeploys exist, else the newest fork of Ethereum, and a
    warning is logged. On Arbitrum's chains, the source's block determines the rules. Raises
    UnknownForkError for an unknown name, and ForkError for a chain that does not run the EVM.
    """
    refuse_zksync(source)
    if hardfork is not None:
        return _always(source, fork_named(hardfork))
    if _is_named(source.chain_id):
        return find(source.chain_id).config()
    if is_arbitrum_chain(source):
        return arbitrum_rules(source)
    if source.chain_id not in DEVELOPMENT_CHAINS:
        return _always(source, _guessed(source))
    fork = _fork_of_node(source)
    if fork is None:
        log.info("%s reports no hardfork: using %s", source.endpoint, NEWEST.name)
    return _always(source, fork or NEWEST)


def has_known_rules(source: RemoteSource) -> bool:
    """Returns whether the chain id and the block suffice to determine the rules."""
    return _is_named(source.chain_id) or is_arbitrum_chain(source)


def _is_named(chain_id: int) -> bool:
    try:
        return chain_id not in DEVELOPMENT_CHAINS and bool(find(chain_id))
    except UnknownChain:
        return False


def _always(source: RemoteSource, fork: Fork) -> ChainConfig:
    return ChainConfig(chain_id=source.chain_id, activations=Activations.always(fork))


def _guessed(source: RemoteSource) -> Fork:
    """Returns the fork for an unknown chain: the newest fork of its family. Logs a warning."""
    is_op = False
    if not source.session.offline:
        at = quantity(source.block_number)
        code = source.batch([("eth_getCode", ("0x" + L1_BLOCK.hex(), at))])[0]
        is_op = isinstance(code, str) and len(code) > len("0x")
    fork = _op_fork_of(source.header) if is_op else NEWEST
    log.warning(
        "unknown chain %d: using the rules of %s%s; select others with hardfork= (--hardfork)",
        source.chain_id, fork.name, " (OP stack)" if is_op else "",
    )  # fmt: skip
    return fork


def _op_fork_of(header: Mapping[str, Any]) -> Fork:
    """Returns the newest OP Stack fork whose headers have this format."""
    extra_data_bytes = len(header.get("extraData", "0x")) // 2 - 1
    if extra_data_bytes == JOVIAN_EXTRA_DATA:
        return NEWEST_OP
    if extra_data_bytes == HOLOCENE_EXTRA_DATA:
        return f.ISTHMUS if "requestsHash" in header else f.HOLOCENE
    if "parentBeaconBlockRoot" in header:
        return f.GRANITE
    return f.CANYON if "withdrawalsRoot" in header else f.REGOLITH


def _fork_of_node(source: RemoteSource) -> Fork | None:
    """Returns the fork that a development node reports by name or by its precompiles."""
    if source.session.offline:
        return None
    info, config = source.session.node_answers or (None, None)
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
    """Returns whether a call was not sent, or was dropped with its batch."""
    return answer is None or (isinstance(answer, RpcRefusal) and answer.code == NOT_ANSWERED)


def _fork_of_config(config: Any) -> Fork | None:
    """Returns the fork in the answer of eth_config (EIP-7910)."""
    current = config.get("current") if isinstance(config, Mapping) else None
    precompiles = current.get("precompiles") if isinstance(current, Mapping) else None
    if not isinstance(precompiles, Mapping):
        return None
    found = next((fork for name, fork in BROUGHT if name in precompiles), None)
    return f.CANCUN if found is None and BLOBS in precompiles else found
