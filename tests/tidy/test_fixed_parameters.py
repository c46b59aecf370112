"""Tests that test parameters are the same in every process.

Otherwise the workers of a parallel run collect different tests, and pytest aborts. So decorators
and module-level values in test files must not depend on the clock or on random numbers.
"""

import ast
from collections.abc import Iterator

from .sources import files, shown

CHANGING = {
    "time.time", "time.time_ns", "time.monotonic", "time.perf_counter", "datetime.now",
    "os.urandom", "os.getpid", "uuid.uuid4", "random.random", "random.randrange", "random.choice",
    "random.randbytes", "random.Random", "secrets.token_bytes", "secrets.token_hex",
}  # fmt: skip
# Functions whose result does not depend on the clock if they get this argument.
BUT_WITH = {"gzip.compress": "mtime", "gzip.GzipFile": "mtime"}


def outside_of_bodies(node: ast.AST) -> Iterator[ast.Call]:
    """Yields the calls that run when the module is imported, and not in a function's body."""
    for child in ast.iter_child_nodes(node):
        is_program = isinstance(child, ast.If) and "__name__" in ast.unparse(child.test)
        if is_program or isinstance(child, ast.Lambda):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in child.decorator_list:
                yield from outside_of_bodies(ast.Expr(decorator))
            continue
        if isinstance(child, ast.Call):
            yield child
        yield from outside_of_bodies(child)


def changes(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    if name in BUT_WITH:
        return BUT_WITH[name] not in {keyword.arg for keyword in call.keywords}
    return name in CHANGING and not (name == "random.Random" and call.args)


def changing_calls(text: str) -> list[str]:
    return [ast.unparse(call) for call in outside_of_bodies(ast.parse(text)) if changes(call)]


def test_no_parameter_depends_on_the_clock_or_on_chance() -> None:
    found = [
        f"{shown(path)}: {call}"
        for path in files(".py", under=("tests",))
        if path.name.startswith("test_")
        for call in changing_calls(path.read_text())
    ]
    assert found == []


def test_the_check_sees_decorators_and_constants_and_no_bodies() -> None:
    assert changing_calls('@parametrize("a", [gzip.compress(b"a")])\ndef f(): time.time()') == [
        "gzip.compress(b'a')"
    ]
    assert changing_calls("NOW = int(time.time())") == ["time.time()"]
    assert not changing_calls('A = gzip.compress(b"a", mtime=0), random.Random(1)')
