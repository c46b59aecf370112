"""The client whose request is answered: what limits and the fair queues count requests for."""

from contextvars import ContextVar
from typing import Final

CLIENT: Final[ContextVar[str]] = ContextVar("client", default="")
"""The client (see `Access.client`) of the current task, and of a worker's job for it."""
