"""Costs and refunds of SSTORE, by how the write changes the slot.

`core/state/sstore.pxd` chooses the row of a write. The numbers are parameters in ``eips``.
"""

from collections.abc import Mapping
from enum import IntEnum

from .parameters import Value


class SstoreTransition(IntEnum):
    """Rows of the SSTORE tables: how a write changes a slot (original, current, new)."""

    NOOP = 0
    CREATE = 1
    UPDATE = 2
    DELETE = 3
    DIRTY = 4
    DIRTY_DELETE = 5
    DIRTY_UNDELETE = 6
    RESTORE_ZERO = 7
    RESTORE = 8
    UNDELETE_RESTORE = 9


def sstore_rows(values: Mapping[str, Value]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the costs and refunds of SSTORE in the order of ``SstoreTransition``.

    ``values`` are the resolved parameters of a fork. Costs do not include the cold surcharge.
    Refunds of transitions that undo an earlier transition are negative, or sums with mixed signs.
    Sources: Yellow Paper appendix G; EIP-1283, EIP-2200, EIP-2929, EIP-3529.
    """
    create, reset = values["sstore_set_cost"], values["sstore_reset_cost"]
    clear = values["sstore_clear_refund"]
    row = SstoreTransition
    cost = dict.fromkeys(row, reset)
    refund = dict.fromkeys(row, 0)
    cost[row.CREATE] = create
    refund[row.DELETE] = refund[row.DIRTY_DELETE] = clear
    if values["sstore_net_metering"]:
        dirty = values["sstore_dirty_cost"]
        for transition in row:
            if transition not in (row.CREATE, row.UPDATE, row.DELETE):
                cost[transition] = dirty
        refund[row.DIRTY_UNDELETE] = -clear
        refund[row.RESTORE_ZERO] = create - dirty
        refund[row.RESTORE] = reset - dirty
        refund[row.UNDELETE_RESTORE] = reset - dirty - clear
    else:
        cost[row.DIRTY_UNDELETE] = cost[row.UNDELETE_RESTORE] = create
        refund[row.RESTORE_ZERO] = clear
    return tuple(cost[r] for r in row), tuple(refund[r] for r in row)
