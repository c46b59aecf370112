"""Tests that py-evm can execute blocks with only the witnesses that fastevm recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from fastevm.chain.stateless import Witness
from fastevm.core.primitives.replace import replace
from tests.unit.chain.stateless.chains import (
    CALLER,
    LOOKER,
    OLD_HASH,
    QUITTER,
    SIZER,
    WRITER,
    Sample,
    call,
    sample,
)  # fmt: skip

from .peers import Peer

FORKS = ("London", "Paris", "Shanghai", "Cancun", "Prague")


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with Peer("py-evm-stateless") as started:
        yield started


def ran(peer: Peer, fork: str, made: Sample, witness: Witness) -> dict[str, str]:
    """Executes a sample's block on the peer with the witness. Returns the peer's result."""
    return peer.run(
        json.dumps(
            {
                "fork": fork,
                "chainId": made.chain.config.chain_id,
                "block": "0x" + made.block.rlp().hex(),
                "witness": witness.to_json(),
            }
        )
    )


def busy(fork: str) -> Sample:
    """Returns a block that writes, deletes, self-destructs, reads codes and reads an old hash."""
    asked = [
        (WRITER, 9, 99), *((WRITER, 0, slot) for slot in range(1, 36)), (OLD_HASH, 1),
        (SIZER, LOOKER), (LOOKER, WRITER), (QUITTER, b"\x77" * 20), (CALLER, QUITTER),
    ]  # fmt: skip
    return sample([call(nonce, *item) for nonce, item in enumerate(asked)], fork, blocks=4)


@pytest.mark.parametrize("fork", FORKS)
def test_py_evm_makes_the_same_block_of_it(peer: Peer, fork: str) -> None:
    made = busy(fork)
    reported = ran(peer, fork, made, made.witness)
    assert reported.get("hash") == "0x" + made.block.hash.hex(), reported


def test_py_evm_misses_what_is_left_out(peer: Peer) -> None:
    made = busy("Cancun")
    for at in range(0, len(made.witness.state), 7):
        less = made.witness.state[:at] + made.witness.state[at + 1 :]
        reported = ran(peer, "Cancun", made, replace(made.witness, state=less))
        assert "refused" in reported, at
