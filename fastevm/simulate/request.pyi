"""Reads the params of eth_simulateV1 into plain C values."""

from typing import final

@final
class Request:
    """A request in the usual form. Made by ``read``."""

    @staticmethod
    def read(params: bytes) -> tuple[Request, bytes] | None: ...
