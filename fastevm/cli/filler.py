"""A pytest plugin for ``fill`` of execution-specs. It runs fastevm in the process of ``fill``.

    fill -p fastevm.cli.filler tests/

With ``fill --evm-bin fastevm-evm``, the filler starts a process for each block, and starting this
process takes more time than most blocks of tests. The plugin needs fastevm in the environment of
``fill``. Errors have the text of geth's ``evm t8n``. Like the specification, the plugin does not
count opcodes.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from execution_testing.client_clis import TransitionTool, TransitionToolOutput
from execution_testing.client_clis.clis.geth import GethExceptionMapper
from execution_testing.client_clis.file_utils import dump_files_to_directory
from execution_testing.forks import Fork

from fastevm import __version__
from fastevm.cli.options import STDIN, Options, default_values
from fastevm.cli.t8n import NO_REWARD, transitioned
from fastevm.cli.writing import alloc_json, result_json
from fastevm.core.spec.activation import NETWORK_FORKS

FORKS: Final = frozenset(
    name.casefold() for fork in NETWORK_FORKS for name in (fork.name, *fork.aliases)
)


class FastevmTransitionTool(TransitionTool):  # type: ignore[misc]  # the filler is not installed
    """Runs ``fastevm t8n`` in this process. Raises `ToolError` where the command would fail."""

    supports_blob_params = True

    def __init__(self, *, trace: bool = False) -> None:
        self.exception_mapper = GethExceptionMapper()
        self.trace = trace
        self._info_metadata: dict[str, Any] = {}
        self.defaults = default_values() | dict.fromkeys(
            ("input.alloc", "input.env", "input.txs"), STDIN
        )

    @classmethod
    def detect_binary(cls, binary_output: str) -> bool:
        """Returns False: ``--evm-bin`` never selects this tool."""
        del binary_output
        return False

    def version(self) -> str:
        """Returns the version, in the format of geth's ``evm``."""
        return f"evm version {__version__} (fastevm)"

    def is_fork_supported(self, fork: Fork) -> bool:
        """Returns whether fastevm has the rules of a fork."""
        return str(fork.transition_tool_name()).casefold() in FORKS

    def _evaluate(
        self,
        *,
        transition_tool_data: TransitionTool.TransitionToolData,
        debug_output_path: Path | None,
        **_: Any,
    ) -> TransitionToolOutput:
        """Runs the transactions of a block, and returns roots, receipts and accounts."""
        data = transition_tool_data
        given = data.to_input().model_dump("json", by_alias=True, exclude_none=True)
        options = self.defaults | {
            "input.blobParams": STDIN if "blobParams" in given else "",
            "state.fork": data.fork_name,
            "state.chainid": data.chain_id,
            # The specification pays nobody in state tests; geth creates an empty coinbase.
            "state.reward": NO_REWARD if data.state_test else data.reward,
            "trace": self.trace,
        }
        if not self.trace:
            return self.run(options, given, Path(), debug_output_path)
        folder = TemporaryDirectory()
        with folder:
            output = self.run(options, given, Path(folder.name), debug_output_path)
            receipts = output.result.receipts
            output.result.traces = self.collect_traces(receipts, folder, debug_output_path)
        return output

    def run(
        self, options: dict[str, Any], given: dict[str, Any], traces: Path, dump: Path | None
    ) -> TransitionToolOutput:
        """Runs the block that the input describes.

        Writes the traces to a folder, and input and output to the folder ``dump``, if given.
        """
        transition = transitioned(Options(options), traces, given)
        answer = {
            "result": result_json(transition),
            "alloc": alloc_json(transition.result.layer),
        }
        if dump is not None:
            files = {"input": given, "output": answer}
            dump_files_to_directory(
                dump,
                {
                    f"{kind}/{name}.json": files[kind][name]
                    for kind in files
                    for name in files[kind]
                },
            )
        return TransitionToolOutput.model_validate(
            answer, context={"exception_mapper": self.exception_mapper}
        )


TransitionTool.set_default_tool(FastevmTransitionTool)
