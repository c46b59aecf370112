"""Where the data shared by tests and benchmarks lies: beside the repository by default."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[3]
SHARED = Path(os.environ.get("FASTEVM_SHARED", ROOT.parent / "shared"))
