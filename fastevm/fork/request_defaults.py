"""Default timeout and retries of requests to endpoints."""

from typing import Final

DEFAULT_RETRIES: Final = 5
DEFAULT_TIMEOUT: Final = 45.0  # seconds for one request
DEFAULT_BACKOFF: Final = 1.0  # seconds before the first retry
