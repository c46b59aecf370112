"""Tests the optional members that fastevm adds to the payload of eth_simulateV1."""

from fastevm.bench.node.launch import ServerThread

from .simulating import A, B, C, blocks, one_block

SLOT = "0x" + "00" * 32


def test_extensions_add_members_to_each_call(live: ServerThread) -> None:
    # SSTORE(0, 7)
    state = {A: {"balance": "0x64"}, C: {"code": "0x60075f5500"}}
    calls = [{"from": A, "to": C}, {"from": A, "to": B, "value": "0x5"}]
    flags = {"returnStateDiff": True, "returnAssetChanges": True, "returnAccessList": True}
    first, second = blocks(live.url("geth"), one_block(*calls, state=state, **flags))[0]["calls"]
    assert first["stateDiff"][C] == {"storage": {SLOT: {"before": SLOT, "after": SLOT[:-1] + "7"}}}
    assert {"address": C, "storageKeys": [SLOT]} in first["accessList"]
    assert first["assetChanges"] == []
    assert second["stateDiff"][B] == {"balance": {"before": "0x0", "after": "0x5"}}
    assert second["assetChanges"] == [
        {"type": "native", "address": A, "change": "-0x5"},
        {"type": "native", "address": B, "change": "0x5"},
    ]


def test_siblings_stand_in_the_order_of_their_calls(live: ServerThread) -> None:
    # CALLs addresses 1, 2 and 3
    code = "0x" + "".join(f"5f5f5f5f5f60{n:02x}5af150" for n in (1, 2, 3)) + "00"
    payload = one_block({"from": A, "to": C}, state={C: {"code": code}}, returnCallTree=True)
    tree = blocks(live.url("geth"), payload)[0]["calls"][0]["callTree"]
    assert [int(below["to"], 16) for below in tree["calls"]] == [1, 2, 3]


def test_a_call_tree_has_the_shape_of_the_call_tracer(live: ServerThread) -> None:
    payload = one_block(
        {"from": A, "to": C, "input": "0x12"},
        state={C: {"code": "0x365f5f37365ffd"}},
        returnCallTree=True,
    )
    tree = blocks(live.url("geth"), payload)[0]["calls"][0]["callTree"]
    assert (tree["type"], tree["from"], tree["to"], tree["input"]) == ("CALL", A, C, "0x12")
    assert (tree["output"], tree["error"]) == ("0x12", "execution reverted")


def test_without_them_answers_are_those_of_the_standard(live: ServerThread) -> None:
    call = blocks(live.url("geth"), one_block({"from": A, "to": B}))[0]["calls"][0]
    assert set(call) == {"returnData", "logs", "gasUsed", "maxUsedGas", "status"}
