"""The state of a chain that another node holds: fetched in few round trips, kept on disk."""

from fastevm.primitives.late_names import late_names

__all__ = [
    "ForkCounters",
    "RemoteBlock",
    "RemoteSource",
    "Replay",
    "forked_evm",
    "masked",
    "place_of",
    "receipt_of",
    "replay",
    "rules_of",
]

# A node that forks nothing asks for none of them.
__getattr__ = late_names(
    __name__,
    {
        "ForkCounters": "counters",
        "RemoteBlock": "remote_block",
        "RemoteSource": "remote_source",
        "Replay": "transaction_replay",
        "forked_evm": "evm_of_fork",
        "masked": "masking",
        "place_of": "remote_block",
        "receipt_of": "remote_block",
        "replay": "transaction_replay",
        "rules_of": "rules",
    },
)
