"""Settings of a development chain's next blocks: fees, gas, coinbase, prevRandao, chain id."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fastevm.chain.chain import Chain
from fastevm.core.primitives.replace import replace
from fastevm.node.production.attributes import EthereumAttributes
from fastevm.node.production.block_producer import BlockProducer
from fastevm.node.production.block_settings import MAX_BASE_FEE, MAX_GAS_LIMIT


class ChainSettings:
    """Changes settings of the next blocks. Each method first seals an open block with transactions.

    A method that raises ValueError, with the reason, changes nothing. A chain in a data directory
    does not allow another chain id. It allows another base fee or gas limit only if it is forked,
    because other chains are verified by their rules when they are restored. ``changed()`` is called
    after each change.
    """

    def __init__(
        self, chain: Chain, producer: BlockProducer, changed: Callable[[], None] = lambda: None
    ) -> None:
        self.chain, self.producer, self.changed = chain, producer, changed

    def set_coinbase(self, coinbase: bytes) -> None:
        """Sets the fee recipient of all later blocks (20 bytes)."""
        if not isinstance(self.producer.source, EthereumAttributes):
            raise ValueError("the fees of this chain go to a vault of the OP stack")
        with self._between_blocks():
            self.producer.settings.coinbase = coinbase

    def set_gas_limit(self, gas_limit: int) -> None:
        """Sets the gas limit of all later blocks."""
        self._check_not_verified("the gas limit")
        if not 0 < gas_limit <= MAX_GAS_LIMIT:
            raise ValueError(f"gas limit: expected 1 to {MAX_GAS_LIMIT}, found {gas_limit}")
        with self._between_blocks():
            self.producer.settings.gas_limit = gas_limit

    def set_next_base_fee(self, base_fee: int) -> None:
        """Sets the base fee of the next block in wei. Later base fees are computed from it."""
        self._check_not_verified("the base fee")
        if base_fee > MAX_BASE_FEE:
            raise ValueError(f"base fee: expected at most {MAX_BASE_FEE}, found {base_fee}")
        if not self._has_base_fee():
            raise ValueError("blocks have no base fee before the fork London")
        with self._between_blocks():
            self.producer.settings.set_child(self.chain.head.hash, base_fee=base_fee)

    def set_next_prev_randao(self, prev_randao: bytes) -> None:
        """Sets the prevRandao of the next block (32 bytes)."""
        with self._between_blocks():
            self.producer.settings.set_child(self.chain.head.hash, prev_randao=prev_randao)

    def set_min_gas_price(self, price: int) -> None:
        """Sets the minimum gas price in wei. Raises ValueError if blocks have base fees."""
        if self._has_base_fee():
            raise ValueError("anvil_setMinGasPrice is not supported when EIP-1559 is active")
        self.producer.settings.min_gas_price = price
        self.changed()

    def set_chain_id(self, chain_id: int) -> None:
        """Sets the chain id. Transactions that are signed for the old id leave the pool."""
        self._check_not_kept("the chain id")
        config = replace(self.chain.config, chain_id=chain_id)
        with self._between_blocks():
            self.chain.config = config

    def set_logging(self, wanted: bool) -> None:
        """Enables the log of this process if true. Otherwise only errors are logged."""
        logging.disable(logging.NOTSET if wanted else logging.WARNING)

    def next_base_fee(self, parent: bytes) -> int | None:
        """Returns the base fee that was set for the child of a block hash, or None."""
        return self.producer.settings.base_fee_after(parent)

    @property
    def gas_limit(self) -> int | None:
        """The gas limit that was set, or None if blocks follow the rules."""
        return self.producer.settings.gas_limit

    def _has_base_fee(self) -> bool:
        head = self.chain.head.header
        schedule = self.chain.schedule_for_child(head, head.timestamp + 1)
        return bool(schedule.parameters["has_base_fee"])

    def _check_not_verified(self, what: str) -> None:
        if not self.chain.partial:
            self._check_not_kept(what)

    def _check_not_kept(self, what: str) -> None:
        if self.chain.journal is not None:
            raise ValueError(
                f"{what} of a chain in a data directory follows the rules of the chain"
            )

    @contextmanager
    def _between_blocks(self) -> Iterator[None]:
        with self.producer.lock:
            self.producer.seal_open_block()
            yield
            self.changed()
            self.producer.restart()
