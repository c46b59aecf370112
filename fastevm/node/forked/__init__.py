"""Nodes whose chain begins at a block of another node's chain."""
