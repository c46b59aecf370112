"""Tests the runner of recorded requests: equal answers, reports and exit codes."""

import argparse
import io
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from fastevm.conformance.rpc import (
    CaseError,
    Comparison,
    add_arguments,
    read_case,
    run,
    run_directory,
)

Reply = Callable[[Any], Any]


@pytest.fixture
def serve() -> Iterator[Callable[[Reply], str]]:
    """Provides a function that starts a server with a reply function and returns its URL."""
    servers = []

    def start(reply: Reply) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                answer = json.dumps(reply(json.loads(self.rfile.read(size)))).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args: Any) -> None:
                return None

        server = HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def record(root: Path, name: str, expected: Any, *, header: str = "// a case") -> None:
    method = name.split("/")[0]
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method})
    path = root / f"{name}.io"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{header}\n>> {request}\n<< {json.dumps(expected)}\n")


def answer(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def failure(code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message}}


def test_a_case_may_hold_several_exchanges_and_comments() -> None:
    text = "// what\n// more\n\n>> {}\n<< 1\n// between\n  >> {}  \n  << 2  \n"
    case = read_case("a", text)
    assert [exchange.expected for exchange in case.exchanges] == [1, 2]
    assert not case.spec_only


def test_speconly_counts_in_the_header_only() -> None:
    assert read_case("a", "// x\n// speconly: shape\n>> {}\n<< 1").spec_only
    assert not read_case("a", "// x\n>> {}\n// speconly: late\n<< 1").spec_only


@pytest.mark.parametrize(
    "text",
    ["", "// only", ">> {}", "<< 1", ">> {}\n>> {}\n<< 1", "text\n>> {}\n<< 1", ">> {}\n<< {"],
)
def test_a_file_that_is_no_case_is_refused(text: str) -> None:
    with pytest.raises(CaseError):
        read_case("a", text)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        ({"a": 1, "b": [None, True]}, {"b": [None, True], "a": 1}),
        ({"error": {"code": 3, "message": "x"}}, {"error": {"code": 3, "message": "y"}}),
        (
            {"calls": [{"error": {"code": 3, "message": "x"}}]},
            {"calls": [{"error": {"code": 3, "message": "y"}}]},
        ),
    ],
)
def test_equal_values(left: Any, right: Any) -> None:
    assert Comparison().values(left, right, "$") is None


@pytest.mark.parametrize(
    ("left", "right", "place"),
    [
        (1, True, "$"),
        (0, False, "$"),
        ("0x1", "0x01", "$"),
        ([1], [1, 2], "$"),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "$.a.b[1]"),
        ({"a": 1}, {"a": 1, "b": 1}, "$"),
        ({"a": None}, {}, "$"),
        ({"error": {"code": 3}}, {"error": {"code": 4}}, "$.error.code"),
        ({"result": 1}, {"error": {"code": 1, "message": ""}}, "$"),
        ({"error": {"code": 3, "data": "0x"}}, {"error": {"code": 3}}, "$.error"),
    ],
)
def test_different_values_name_the_place(left: Any, right: Any, place: str) -> None:
    fault = Comparison().values(left, right, "$")
    assert fault is not None
    assert fault.expected.startswith(place + ":")
    assert fault.found.startswith(place + ":")


def test_differing_messages_are_collected() -> None:
    compare = Comparison()
    compare.values({"error": {"message": "x"}}, {"error": {"message": "y"}}, "$")
    assert compare.messages == [("x", "y")]


def test_shapes_compare_kinds_and_keys() -> None:
    compare = Comparison()
    assert compare.shapes(answer({"a": 1}), answer({"a": "x"})) is None
    assert compare.shapes(answer([]), answer([1])) is None
    assert compare.shapes(answer({"a": 1}), answer({"b": 1})) is not None
    assert compare.shapes(answer("0x1"), answer(1)) is not None
    assert compare.shapes(answer(1), failure(3, "")) is not None


def test_passes_failures_and_messages_are_distinguished(
    tmp_path: Path, serve: Callable[[Reply], str]
) -> None:
    record(tmp_path, "eth_a/good", answer("0x1"))
    record(tmp_path, "eth_b/bad", answer("0x2"))
    record(tmp_path, "eth_c/error", failure(-32000, "expected words"))
    record(tmp_path, "eth_d/shape", answer("0x99"), header="// speconly: any")
    (tmp_path / "eth_d" / "broken.io").write_text("nonsense")
    replies = {"eth_c": failure(-32000, "other words")}
    url = serve(lambda request: replies.get(request["method"], answer("0x1")))
    output = io.StringIO()
    seen: list[int] = []
    report = run_directory(
        tmp_path, url, output=output, progress=lambda tally: seen.append(tally.passed)
    )
    assert report.tally.line() == "3 passed, 2 failed, 0 skipped"
    assert report.messages == [("eth_c/error.io", "expected words", "other words")]
    assert seen == [1, 1, 2, 2, 3]
    assert "FAILED eth_b/bad.io" in output.getvalue()
    assert "expected: $.result: 0x2" in output.getvalue()
    assert "found:    $.result: 0x1" in output.getvalue()


def test_methods_and_paths_can_be_chosen(tmp_path: Path, serve: Callable[[Reply], str]) -> None:
    for name in ("eth_a/one", "eth_a/two", "eth_b/one"):
        record(tmp_path, name, answer("0x1"))
    url = serve(lambda request: answer("0x1"))
    assert run_directory(tmp_path, url, methods=["eth_a"]).tally.passed == 2
    assert run_directory(tmp_path, url, filter="one").tally.passed == 2
    assert run_directory(tmp_path, url, methods=["eth_a"], filter="one").tally.passed == 1


def test_an_unreachable_node_fails_every_case(tmp_path: Path) -> None:
    record(tmp_path, "eth_a/one", answer("0x1"))
    report = run_directory(tmp_path, "http://127.0.0.1:1", output=io.StringIO())
    assert report.tally.line() == "0 passed, 1 failed, 0 skipped"


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(given)


def test_the_command_ends_with_a_line_and_a_code(
    tmp_path: Path, serve: Callable[[Reply], str], capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, "eth_a/one", failure(-32000, "expected words"))
    url = serve(lambda request: failure(-32000, "other words"))
    given = (str(tmp_path), "--url", url)
    assert run(arguments(*given)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "1 passed, 0 failed, 0 skipped"
    assert lines[-2] == "1 error messages have different texts"
    assert run(arguments(*given, "--strict-messages")) == 1
    assert run(arguments(*given, "--method", "eth_none")) == 2
    record(tmp_path, "eth_a/two", answer("0x1"))
    assert run(arguments(*given)) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"
