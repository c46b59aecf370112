"""Runs blocks on the transcription of the OP-stack rules over the executable specification."""

import sys
from importlib.metadata import version
from pathlib import Path

from ethereum.trace import discard_evm_trace, set_evm_trace
from pipe import serve

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.differential.op_stack.specification.blocks import run_case

set_evm_trace(discard_evm_trace)
serve(run_case, f"OP-stack specification on ethereum-execution {version('ethereum-execution')}")
