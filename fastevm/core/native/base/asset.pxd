# The functions of assets, and dispatch to the functions of a token.
from fastevm.core.native.base.abi cimport Slice
from fastevm.core.native.base.context cimport Context


cdef enum AssetField:
    DECIMALS = 0              # a stored 0 means 6
    MULTIPLIER = 1            # a stored 0 means 10^18
    ANNOUNCEMENT_IDS = 2
    EXTRA_METADATA = 3
    PENDING_MULTIPLIER = 4    # limbs 0 and 1: multiplier; limb 2: its start, Unix seconds (Cobalt)


# Runs a function of the token `c.account`: `c.contract` is ASSET or STABLECOIN.
cdef bint run_token(Context* c, Slice input) noexcept nogil
