"""Tests that the picture of the terminal in the README shows the current output."""

import re

from tests.explorer.terminal_picture import picture, recorded
from tests.shared_data import ROOT

HASH = r"0x[0-9a-f]{60,64}"  # hash of a transaction or block, which differs in each run


def test_the_picture_of_the_readme_is_up_to_date() -> None:
    shown = (ROOT / "docs/assets/terminal.svg").read_text()
    assert re.sub(HASH, "", shown) == re.sub(HASH, "", picture(recorded())), (
        "run: python -m tests.explorer.terminal_picture docs/assets/terminal.svg"
    )
