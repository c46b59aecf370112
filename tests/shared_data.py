"""Where official tests and recorded requests lie: a folder beside the repository by default."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("FASTEVM_SHARED", ROOT.parent / "shared"))
RECORDED = SHARED / "rpc-compat"  # a recorded chain with its genesis, and requests with answers
