"""The method eth_getLogs."""

from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.dispatch.workers import require_worker, require_worker_above_limit
from fastevm.rpc.log_filter import LogFilter, check_choices, decode_filter
from fastevm.rpc.log_queries import is_upstream, objects_of_logs, query_logs


@method("eth_getLogs", Param(decode_filter), run_on=RunOn.SMALL)
def get_logs(context: Context, wanted: LogFilter) -> bytes:
    """Return logs by address, topics and blocks (both ends default to ``latest``).

    ``toBlock`` pending adds the pre-confirmed logs, ``fromBlock`` pending returns only
    pre-confirmed logs. ``blockHash`` of a block that is not canonical returns its logs with
    ``removed`` true. Raises RpcError with a smaller range to try if the range or the result exceeds
    a limit.
    """
    check_choices(wanted)
    if is_upstream(context, wanted):
        require_worker(is_long=True)
    require_worker_above_limit(objects_of_logs(context, wanted))
    return query_logs(context, wanted)
