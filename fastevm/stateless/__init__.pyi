"""Blocks verified without a state; names are loaded late."""

from fastevm.stateless.recording import witness_of as witness_of
from fastevm.stateless.verification import Verified as Verified
from fastevm.stateless.verification import verify as verify
from fastevm.stateless.witness import Witness as Witness
from fastevm.stateless.witness import WitnessError as WitnessError
