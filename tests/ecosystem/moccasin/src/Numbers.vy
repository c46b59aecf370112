# pragma version ~=0.4.3
"""
@title Functions of snekmate's mathematics, for a test to compare with Python's.
"""

from snekmate.utils import math


@external
@pure
def mul_div(x: uint256, y: uint256, denominator: uint256) -> uint256:
    return math._mul_div(x, y, denominator, False)


@external
@pure
def log2(x: uint256) -> uint256:
    return math._log2(x, False)
