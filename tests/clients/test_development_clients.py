"""Tests that published clients, each in its own environment, pass all their cases on `fastevm dev`.

`python -m tests.ecosystem.development.clients` also runs the cases on anvil.
"""

import shutil
import subprocess

import pytest

from fastevm.bench.node.compared import anvil_binary
from fastevm.bench.node.load import LoadError
from tests.ecosystem.development.clients import CLIENTS, environment, run
from tests.ecosystem.development.nodes import OURS

# In Ganache mode, viem calls these actions by names that Ganache itself does not have either, and
# it cannot mine with an interval.
NOT_IN_GANACHE = {
    "dropTransaction", "dumpState", "impersonateAccount", "loadState", "mine with an interval",
    "removeBlockTimestampInterval", "reset", "setBlockTimestampInterval", "setCoinbase",
    "setLoggingEnabled", "setMinGasPrice", "setNextBlockBaseFeePerGas", "setNonce", "setRpcUrl",
    "setStorageAt", "stopImpersonatingAccount",
}  # fmt: skip
REFUSED = {
    "viem, mode ganache": NOT_IN_GANACHE,
    # The helper expects an error, but a failing transaction without a gas limit is mined, as on
    # anvil.
    "OpenZeppelin test helpers": {"expectRevert"},
}
TRACING = {"alto"}  # clients that need JavaScript tracers
FEWEST = 4  # minimum number of cases of a client

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm, which brings the clients"),
]


@pytest.mark.parametrize("name", CLIENTS)
def test_every_case_of_a_client(name: str) -> None:
    client = CLIENTS[name]
    if name in TRACING:
        pytest.importorskip("quickjs", reason="needs the extra fastevm[javascript]")
    try:
        environment(client)
        if client.upstream:
            anvil_binary()
    except (subprocess.CalledProcessError, LoadError) as error:
        pytest.skip(f"{name} could not be installed: {error}")
    found = run(client, OURS)
    failed = {case: error for case, error in found.items() if error is not None}
    assert len(found) >= FEWEST
    assert set(failed) == REFUSED.get(name, set()), failed
