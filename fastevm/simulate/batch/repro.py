"""Capsules: simulations with exactly the state that they read, which can be repeated anywhere.

A capsule is a small file: the payload, its base block, and the accounts, slots and codes that a run
accessed. Running the capsule again gives the same results, bit for bit. State roots need the
complete state, so blocks of a capsule have 32 zero bytes instead.
"""

import base64
import json
from typing import Any, Final

from fastevm.core.execution.types import Header
from fastevm.core.primitives.replace import replace
from fastevm.core.simulation.plan import Plan
from fastevm.core.simulation.simulated_blocks import simulate_touching
from fastevm.core.simulation.values import SimulatedBlock, SimulateOptions, StateView
from fastevm.core.spec.activation import Activations
from fastevm.core.spec.blobs import BlobParameters
from fastevm.core.state.layer import Layer
from fastevm.core.state.shipping import pack_layer, unpack_layer
from fastevm.errors import FastevmError
from fastevm.rpc_types.simulate_request import payload_from
from fastevm.simulate.views import BareChain

FORMAT: Final = "fastevm-capsule-1"
STATE_LIMIT: Final = 2**28
"""Largest state of a capsule in bytes, unpacked: about two million slots."""


def make_capsule(
    view: StateView, payload: Any, options: SimulateOptions
) -> tuple[bytes, list[SimulatedBlock]]:
    """Runs a payload (JSON form). Returns the capsule and the simulated blocks.

    All blocks must have the rules of one fork. Raises the errors of `simulate_v1`.
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
    """Returns the view, the payload and the options of a capsule.

    Raises ValueError for invalid bytes.
    """
    try:
        content = json.loads(data)
        if content["format"] != FORMAT:
            raise ValueError(f"expected format {FORMAT}, found {content['format']!r}")
        options = SimulateOptions(
            zero_state_root=True,
            block_spacing=_number(content["options"]["blockSpacing"]),
            gas_cap=_number(content["options"]["gasCap"]),
        )
        return view_in(content), content["payload"], options
    except (
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        FastevmError,
    ) as error:
        raise ValueError(f"a damaged capsule: {error!r}") from None


def view_in(content: dict[str, Any]) -> StateView:
    """Returns the view that a capsule describes."""
    blobs = None if content["blobs"] is None else BlobParameters(*content["blobs"])
    activations = Activations.always(content["fork"], blobs=blobs)
    header = Header.decode(bytes.fromhex(content["header"]))
    return StateView(
        header=header,
        block_hash=_bytes(content["blockHash"], 32),
        layer=unpack_layer(base64.b64decode(content["state"]), limit=STATE_LIMIT),
        ancestors=tuple(_bytes(block_hash, 32) for block_hash in content["ancestors"]),
        schedule=activations.at(header.number, header.timestamp, after_merge=None),
        config=BareChain(
            chain_id=_number(content["chainId"]),
            activations=activations,
            deposit_contract=_bytes(content["depositContract"], 20),
            block_time_ms=_number(content["blockTimeMs"]),
            has_system_contracts=bool(content["hasSystemContracts"]),
        ),
    )


def _number(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < 2**64:
        raise ValueError(f"a number of 64 bits is needed, not {value!r}")
    return value


def _bytes(text: str, size: int) -> bytes:
    value = bytes.fromhex(text)
    if len(value) != size:
        raise ValueError(f"{size} bytes are needed, not {len(value)}")
    return value


def account_fields(layer: Layer, address: bytes, slots: list[int]) -> dict[str, Any]:
    """Returns an account with these slots of its storage."""
    return {
        "balance": layer.balance(address),
        "nonce": layer.nonce(address),
        "code": layer.code(address),
        "storage": {slot: layer.storage(address, slot) for slot in slots},
    }


def blob_values(blobs: BlobParameters) -> tuple[int, ...]:
    """Returns the parameters in the order of the constructor's arguments."""
    return tuple(getattr(blobs, name) for name in blobs.__struct_fields__)
