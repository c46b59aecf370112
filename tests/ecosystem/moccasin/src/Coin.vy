# pragma version ~=0.4.3
"""
@title A coin made of snekmate's modules, as their users make one.
"""

from snekmate.auth import ownable
from snekmate.tokens import erc20

initializes: ownable
initializes: erc20[ownable := ownable]

exports: erc20.__interface__


@deploy
def __init__(supply: uint256):
    ownable.__init__()
    erc20.__init__("Coin", "COIN", 18, "Coin", "1")
    erc20._mint(msg.sender, supply)
