"""Capsules: a simulation with exactly the state that it looks at, to be run again anywhere.

A capsule is a small file: the payload, the block it stands on, and the accounts, slots and codes
that a run touched. Running it again gives the same outcomes, bit for bit. State roots need the rest
of the state, so blocks of a capsule have 32 zero bytes in their place.
"""

import base64
import json
from dataclasses import replace
from typing import Any, Final

from fastevm.simulate.engine.plan import Plan
from fastevm.simulate.engine.simulated_blocks import simulate_touching
from fastevm.simulate.values import SimulatedBlock, SimulateOptions, StateView
from fastevm.simulate.views import BareChain
from fastevm.spec.activation import Activations
from fastevm.spec.blobs import BlobParameters
from fastevm.state.layer import Layer
from fastevm.state.shipping import pack_layer, unpack_layer
from fastevm.types import Header
from fastevm.wire.simulate_values import payload_from

FORMAT: Final = "fastevm-capsule-1"


def make_capsule(
    view: StateView, payload: Any, options: SimulateOptions
) -> tuple[bytes, list[SimulatedBlock]]:
    """Run a payload (in its JSON form) and pack what it needs; the capsule and the outcome.

    All blocks must follow the rules of one fork. Raises as `simulate_v1` does.
    """
    options = replace(options, zero_state_root=True)
    blocks, touched = simulate_touching(view, Plan.of(payload_from(payload)), options)
    needed = Layer.of(
        {
            address: account_fields(view.layer, address, slots)
            for address, slots in touched.items()
            if view.layer.account(address) is not None
        }
    )
    config, blobs = view.config, view.schedule.blobs
    content = {
        "format": FORMAT,
        "payload": payload,
        "options": {"blockSpacing": options.block_spacing, "gasCap": options.gas_cap},
        "header": view.header.rlp().hex(),
        "blockHash": view.block_hash.hex(),
        "ancestors": [block_hash.hex() for block_hash in view.ancestors],
        "fork": view.schedule.name,
        "blobs": None if blobs is None else list(blob_values(blobs)),
        "chainId": config.chain_id,
        "depositContract": config.deposit_contract.hex(),
        "blockTimeMs": config.block_time_ms,
        "hasSystemContracts": getattr(config, "has_system_contracts", True),
        "state": base64.b64encode(pack_layer(needed)).decode(),
    }
    return json.dumps(content, indent=1).encode(), blocks


def open_capsule(data: bytes) -> tuple[StateView, Any, SimulateOptions]:
    """The view, the payload and the options of a capsule; ValueError for bytes that are none."""
    try:
        content = json.loads(data)
        if content["format"] != FORMAT:
            raise ValueError(f"expected format {FORMAT}, found {content['format']!r}")
        options = SimulateOptions(
            zero_state_root=True,
            block_spacing=content["options"]["blockSpacing"],
            gas_cap=content["options"]["gasCap"],
        )
        return view_in(content), content["payload"], options
    except (KeyError, TypeError) as error:
        raise ValueError(f"a damaged capsule: {error!r}") from None


def view_in(content: dict[str, Any]) -> StateView:
    """The view that a capsule describes."""
    blobs = None if content["blobs"] is None else BlobParameters(*content["blobs"])
    activations = Activations.always(content["fork"], blobs=blobs)
    header = Header.decode(bytes.fromhex(content["header"]))
    return StateView(
        header=header,
        block_hash=bytes.fromhex(content["blockHash"]),
        layer=unpack_layer(base64.b64decode(content["state"])),
        ancestors=tuple(bytes.fromhex(block_hash) for block_hash in content["ancestors"]),
        schedule=activations.at(header.number, header.timestamp, after_merge=None),
        config=BareChain(
            chain_id=content["chainId"],
            activations=activations,
            deposit_contract=bytes.fromhex(content["depositContract"]),
            block_time_ms=content["blockTimeMs"],
            has_system_contracts=content["hasSystemContracts"],
        ),
    )


def account_fields(layer: Layer, address: bytes, slots: list[int]) -> dict[str, Any]:
    """One account with these slots of its storage."""
    return {
        "balance": layer.balance(address),
        "nonce": layer.nonce(address),
        "code": layer.code(address),
        "storage": {slot: layer.storage(address, slot) for slot in slots},
    }


def blob_values(blobs: BlobParameters) -> tuple[int, ...]:
    """The parameters in the order in which they are made from."""
    return tuple(getattr(blobs, name) for name in blobs.__dataclass_fields__)
