"""The trace records of an execution."""

from typing import Any, final

@final
class StepTrace:
    def __init__(
        self,
        *,
        steps: bool = True,
        calls: bool = False,
        stack_words: int | None = None,
        memory: bool = False,
        return_data: bool = False,
        limit: int = 16777216,
        accesses: bool = False,
    ) -> None: ...
    def drain(self) -> list[dict[str, Any]]: ...
    def read(self, at: int, most: int) -> tuple[list[dict[str, Any]], int]: ...
