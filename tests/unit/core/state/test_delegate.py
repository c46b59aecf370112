"""Tests which code is a delegation, and to which account."""

import pytest

from fastevm.core.state.delegate import DELEGATION_PREFIX, delegate_of

DELEGATE = bytes(range(1, 21))


def test_the_address_after_the_prefix_is_the_delegate() -> None:
    assert delegate_of(DELEGATION_PREFIX + DELEGATE) == DELEGATE


@pytest.mark.parametrize(
    "code",
    [
        b"",
        DELEGATION_PREFIX,
        DELEGATION_PREFIX + DELEGATE[:-1],
        DELEGATION_PREFIX + DELEGATE + b"\0",
        b"\xef\x01\x01" + DELEGATE,
    ],
)
def test_code_of_another_size_or_prefix_is_no_delegation(code: bytes) -> None:
    assert delegate_of(code) is None
