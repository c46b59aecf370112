# pragma version ~=0.4.3
"""
@title A vault of shares over a coin (ERC-4626), by snekmate.
"""

from ethereum.ercs import IERC20
from snekmate.extensions import erc4626

initializes: erc4626

exports: erc4626.__interface__


@deploy
def __init__(asset: IERC20):
    erc4626.__init__("Shares", "SHARE", asset, 0, "Shares", "1")
