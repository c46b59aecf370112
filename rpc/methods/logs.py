"""eth_getLogs."""

import msgspec

from rpc.context import Context
from rpc.logs import LogFilter, check_choices, decode_filter, query_logs
from rpc.registry import Param, Place, method


@method("eth_getLogs", Param(decode_filter), place=Place.WORKER)
def get_logs(context: Context, wanted: LogFilter) -> msgspec.Raw:
    """Return logs by address, topics and blocks (both ends default to ``latest``).

    ``toBlock`` pending adds the pre-confirmed logs, both ends pending gives only those. A range or
    a result beyond the limits is refused with a smaller range to try.
    """
    check_choices(wanted)
    return query_logs(context, wanted)
