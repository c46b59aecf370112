"""Converts the settings of a development chain to JSON, which a data directory stores."""

from __future__ import annotations

from typing import Any

from fastevm.core.primitives.hex import hex_bytes
from fastevm.node.impersonated_accounts import Impersonation
from fastevm.node.production.block_clock import BlockClock, KeptTime
from fastevm.node.production.block_producer import BlockProducer
from fastevm.node.production.block_settings import BlockSettings

Json = dict[str, Any]


def state_json(producer: BlockProducer, impersonation: Impersonation) -> Json:
    """Returns clock, settings of the next blocks, impersonated accounts and signatures as JSON."""
    return {
        "clock": list(clock_key(producer.clock)),
        "settings": settings_json(producer.settings),
        "impersonated": [hex_bytes(address) for address in impersonation.accounts],
        "listed": [hex_bytes(address) for address in impersonation.listed],
        "everyone": impersonation.everyone,
        "signatures": [
            [hex_bytes(address), hex_bytes(signature)]
            for address, signature in impersonation.signatures
        ],
    }


def restore_state(state: Json, producer: BlockProducer, impersonation: Impersonation) -> None:
    """Restores the JSON of `state_json`. The clock advances by the system time that has passed."""
    clock = producer.clock
    offset, interval, following, last = state["clock"]
    clock.restore(KeptTime(offset, interval, following, last, clock.system_time()))
    producer.settings.restore(settings_of(state["settings"]))
    impersonation.everyone = state["everyone"]
    named: list[str] = state["impersonated"]
    listed = set(state.get("listed", named))  # older directories have no member "listed"
    for address in named:
        impersonation.start(bytes.fromhex(address[2:]), listed=address in listed)
    for address, signature in state["signatures"]:
        impersonation.remember(bytes.fromhex(address[2:]), bytes.fromhex(signature[2:]))


def clock_key(clock: BlockClock) -> tuple[int | None, ...]:
    """Returns the settings of a clock in a form that can be compared, to detect changes."""
    return clock.kept()[:-1]


def settings_json(settings: BlockSettings) -> Json:
    """Returns the settings of the next blocks as JSON."""
    return {
        "coinbase": _hex(settings.coinbase),
        "gasLimit": settings.gas_limit,
        "minGasPrice": settings.min_gas_price,
        "parent": _hex(settings.parent),
        "ofChildren": {
            name: hex_bytes(value) if isinstance(value, bytes) else value
            for name, value in settings.of_children.items()
        },
    }


def settings_of(found: Json) -> BlockSettings:
    """Reads the JSON that `settings_json` returned."""
    settings = BlockSettings()
    settings.coinbase, settings.gas_limit = _bytes(found["coinbase"]), found["gasLimit"]
    settings.min_gas_price = found["minGasPrice"]
    parent = _bytes(found["parent"])
    if parent is not None:
        children = {
            name: bytes.fromhex(value[2:]) if isinstance(value, str) else value
            for name, value in found["ofChildren"].items()
        }
        settings.set_child(parent, **children)
    return settings


def _hex(data: bytes | None) -> str | None:
    return None if data is None else hex_bytes(data)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text[2:])
