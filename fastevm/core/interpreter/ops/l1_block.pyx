"""BLOCKHASH on Arbitrum: returns a hash for the number of an L1 block, from the storage of ArbOS.

It is not the hash of the L1 block: ArbOS stores the hash of the last Arbitrum block that was made
before ArbOS saw the next L1 block.
"""

from fastevm.core.interpreter.frame cimport missing
from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.interpreter.status cimport RUNNING, Status
from fastevm.core.native.arbitrum.storage cimport ARBOS_STATE, l1_hash_slot
from fastevm.core.primitives.word cimport Word, word_copy, word_fits64, word_zero
from fastevm.core.spec.constants cimport BLOCK_HASH_WINDOW
from fastevm.core.state.account cimport Account, Slot
from fastevm.core.state.world cimport world_account, world_slot


cdef Status blockhash_of_l1(Frame* f, Word* sp) noexcept nogil:
    cdef Word* asked = &sp[0]
    cdef Account* state
    cdef Slot* slot
    cdef Word key
    if not word_fits64(asked) or asked.d[0] >= f.machine.block.l1_number or (
        f.machine.block.l1_number - asked.d[0] > BLOCK_HASH_WINDOW
    ):
        word_zero(asked)
        return RUNNING
    state = world_account(f.world, &ARBOS_STATE)
    if state == NULL:
        return missing(f)
    l1_hash_slot(&key, asked.d[0])
    slot = world_slot(f.world, state, &key)
    if slot == NULL:
        return missing(f)
    word_copy(asked, &slot.current)
    return RUNNING
