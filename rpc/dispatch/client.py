"""Identifies the client of a request, because limits and fair queues count by client."""

from contextvars import ContextVar
from typing import Final

CLIENT: Final[ContextVar[str]] = ContextVar("client", default="")
"""The client (see `Access.client`) for which the current task or worker job runs."""
