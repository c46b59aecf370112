"""eth_getLogs."""

from rpc.context import Context
from rpc.logs import LogFilter, check_choices, decode_filter, query_logs, weigh_logs
from rpc.registry import Param, Place, method
from rpc.workers import weigh


@method("eth_getLogs", Param(decode_filter), place=Place.SMALL)
def get_logs(context: Context, wanted: LogFilter) -> bytes:
    """Return logs by address, topics and blocks (both ends default to ``latest``).

    ``toBlock`` pending adds the pre-confirmed logs, both ends pending gives only those. A range or
    a result beyond the limits is refused with a smaller range to try.
    """
    check_choices(wanted)
    weigh(weigh_logs(context, wanted))
    return query_logs(context, wanted)
