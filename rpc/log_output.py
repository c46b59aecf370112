"""Writes log output to standard error, limited in length and rate and safe for a terminal.

Records may contain foreign text, such as errors of upstream nodes and requests in aiohttp's errors.
So unsafe characters are escaped, and a record is one line. The lines of a traceback follow,
indented. An error about a client's broken HTTP has no traceback. A call site writes at most `BURST`
records in `WINDOW` seconds.
"""

import logging
import time
import traceback
from threading import Lock
from typing import Final

from fastevm.core.primitives.safe_text import TEXT_LIMIT, safe

FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
INDENT: Final = "    "
TRACEBACK_PARTS: Final = 30  # last frames and messages of a traceback that are shown
BURST: Final = 10  # records per window of one call site and exception type
WINDOW: Final = 10.0  # seconds
CLIENT_FAULTS: Final = "aiohttp.http_exceptions"  # module of aiohttp's exceptions for broken HTTP


class SafeFormatter(logging.Formatter):
    """Formats records: escapes unsafe characters and bounds the length."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record and the lines of its traceback."""
        message = safe(record.getMessage())
        error = exception_of(record)
        if error is not None and is_client_fault(error):
            message += f": {safe(error)}"
        left_out = getattr(record, "left_out", 0)
        if left_out:
            message += f" ({left_out} similar records were left out)"
        record.message, record.asctime = message, self.formatTime(record)
        lines = [self.formatMessage(record)]
        if error is not None and not is_client_fault(error):
            parts = traceback.format_exception(error)[-TRACEBACK_PARTS:]
            lines += [INDENT + safe(line) for part in parts for line in bounded_lines(part)]
        return "\n".join(lines)


class RateLimit(logging.Filter):
    """Drops and counts records of a call site beyond `BURST` in `WINDOW` seconds."""

    def __init__(self) -> None:
        super().__init__()
        # (file, line, exception type) -> window start, written, dropped
        self._windows: dict[tuple[str, int, str], list[float]] = {}
        self._lock = Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write a record. A window's first record reports dropped records."""
        kind = type(exception_of(record)).__name__
        now = time.monotonic()
        with self._lock:
            key = (record.pathname, record.lineno, kind)
            window = self._windows.setdefault(key, [now, 0, 0])
            if now - window[0] >= WINDOW:
                record.left_out = int(window[2])
                window[:] = now, 0, 0
            window[1] += 1
            if window[1] <= BURST:
                return True
            window[2] += 1
            return False


def exception_of(record: logging.LogRecord) -> BaseException | None:
    """Return the exception of a record, if any."""
    return record.exc_info[1] if record.exc_info else None


def is_client_fault(error: BaseException) -> bool:
    """Return whether an exception means that a client sent broken HTTP."""
    return type(error).__module__ == CLIENT_FAULTS


def bounded_lines(part: str) -> list[str]:
    """Return the lines of a traceback part, cut at `TEXT_LIMIT` characters."""
    more = [f"... ({len(part) - TEXT_LIMIT} more characters)"] if len(part) > TEXT_LIMIT else []
    return part[:TEXT_LIMIT].splitlines() + more


def set_up_log(level: int = logging.WARNING) -> None:
    """Log records from ``level`` up to standard error, unless logging is already configured."""
    handler = logging.StreamHandler()
    handler.setFormatter(SafeFormatter(FORMAT))
    handler.addFilter(RateLimit())
    logging.basicConfig(level=level, handlers=[handler])
