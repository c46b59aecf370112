"""``fastevm dev``: the development node under the names and units of anvil and Hardhat."""
