"""Blob parameters that a chain configures: blobs per block and the update fraction of the fee."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fastevm.core.primitives.config_values import read_number


class BlobParameters(Struct, frozen=True):
    """One entry of a blob schedule (EIP-7840, EIP-7892).

    ``target`` and ``max`` are blobs per block; ``base_fee_fraction`` is BASE_FEE_UPDATE_FRACTION,
    in blob gas: the greater it is, the slower the fee changes.
    """

    target: int
    max: int
    base_fee_fraction: int

    def __post_init__(self) -> None:
        if not 0 <= self.target <= self.max:
            raise ValueError(
                f"blob target {self.target} must lie between 0 and the maximum {self.max}"
            )
        if self.base_fee_fraction <= 0:
            raise ValueError(
                f"blob base fee fraction must be positive, not {self.base_fee_fraction}"
            )

    def as_parameters(self) -> dict[str, int]:
        """Returns the three values under their names in ``parameters``."""
        return {
            "blob_target": self.target,
            "blob_max": self.max,
            "blob_base_fee_fraction": self.base_fee_fraction,
        }


def read_blob_schedule(schedule: Mapping[str, Any] | None) -> dict[str, BlobParameters]:
    """Reads the ``blobSchedule`` of a genesis configuration (EIP-7840), by fork name in lower case.

    Each entry is ``{target, max, baseFeeUpdateFraction}``; ``None`` is the empty schedule. Raises
    ValueError, which names the entry, for an incomplete entry or a value out of range.
    """
    if not isinstance(schedule, Mapping | None):
        raise ValueError(f"blobSchedule: expected an object, found {schedule!r}")
    return {
        name.casefold(): _read_entry(name, entry)
        for name, entry in (schedule or {}).items()
        if entry is not None
    }


def _read_entry(name: str, entry: Any) -> BlobParameters:
    where = f"blobSchedule.{name}"
    if not isinstance(entry, Mapping):
        raise ValueError(f"{where}: expected an object, found {entry!r}")
    try:
        return BlobParameters(
            *(
                read_number(entry.get(key), key)
                for key in ("target", "max", "baseFeeUpdateFraction")
            )
        )
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
