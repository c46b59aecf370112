"""Compares values that a fork fetched with the upstream's answers to direct requests."""

from collections.abc import Iterable

from fastevm.bench.remote import market
from fastevm.bench.remote.market_nodes import MAX_BATCH, Upstream
from fastevm.core.state.source import Found, RemoteAccount, Wanted
from fastevm.rpc_client.messages import Call, RpcRefusal

NOBODY = b"\xde\xad" * 10
ABSENT_SLOT = 1 << 200


def wide(tokens: int = 40, holders: int = 3) -> Wanted:
    """Returns many keys to fetch: kinds of accounts, set and unset slots, block hashes."""
    wanted = Wanted()
    wanted.accounts = {
        NOBODY,
        market.MULTICALL_ADDRESS,
        market.IMPLEMENTATION,
        *market.POOL_ADDRESSES,
    }
    wanted.accounts |= {holder.address for holder in market.holders()[:holders]}
    for token in market.TOKEN_ADDRESSES[:tokens]:
        wanted.accounts.add(token)
        wanted.slots |= {(token, market.token_slot_of(at)) for at in range(holders)}
        wanted.slots.add((token, market.IMPLEMENTATION_SLOT))
        wanted.slots.add((token, ABSENT_SLOT))
    wanted.slots |= {(pool, slot) for pool in market.POOL_ADDRESSES for slot in range(3)}
    wanted.block_hashes = {1, 2, 3}
    return wanted


def small() -> Wanted:
    """Returns a few keys to fetch, for tests with many requests."""
    return wide(tokens=2, holders=1)


def answers(upstream: Upstream, calls: list[Call]) -> list[str]:
    """Sends many calls and returns their results."""
    found: list[str] = []
    with upstream.node.client() as client:
        for at in range(0, len(calls), MAX_BATCH):
            for answer in client.batch(calls[at : at + MAX_BATCH]):
                assert not isinstance(answer, RpcRefusal), answer
                found.append(answer)
    return found


def differences(upstream: Upstream, found: Found, block: int) -> list[str]:
    """Returns the fetched values that differ from the upstream's values in that block."""
    at = hex(block)
    return [
        *_accounts(upstream, found.accounts, at),
        *_slots(upstream, found.slots, at),
        *_hashes(upstream, found.block_hashes),
    ]


def _accounts(upstream: Upstream, found: dict[bytes, RemoteAccount], at: str) -> Iterable[str]:
    methods = ("eth_getBalance", "eth_getTransactionCount", "eth_getCode")
    calls = [(name, ["0x" + address.hex(), at]) for address in found for name in methods]
    said = iter(answers(upstream, calls))
    for address, account in found.items():
        true = RemoteAccount(
            int(next(said), 16), int(next(said), 16), bytes.fromhex(next(said)[2:])
        )
        if account != true:
            yield f"account {address.hex()}: {account} is {true}"


def _slots(upstream: Upstream, found: dict[tuple[bytes, int], int], at: str) -> Iterable[str]:
    calls = [
        ("eth_getStorageAt", ["0x" + address.hex(), f"0x{slot:064x}", at])
        for address, slot in found
    ]
    for (address, slot), said in zip(found, answers(upstream, calls), strict=True):
        if found[address, slot] != int(said, 16):
            yield f"slot {address.hex()} {slot:x}: {found[address, slot]:x} is {said}"


def _hashes(upstream: Upstream, found: dict[int, bytes]) -> Iterable[str]:
    for number, block_hash in found.items():
        said = upstream.ask("eth_getBlockByNumber", hex(number), False)["hash"]
        if "0x" + block_hash.hex() != said:
            yield f"hash of block {number}: {block_hash.hex()} is {said}"
