"""How requests to endpoints are repeated, unless somebody says otherwise."""

from typing import Final

DEFAULT_RETRIES: Final = 5
DEFAULT_TIMEOUT: Final = 45.0  # seconds for one request
DEFAULT_BACKOFF: Final = 1.0  # seconds before the first retry
