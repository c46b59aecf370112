"""The permit collector, a contract that captures permitted payments (EIP-2612).

B20 tokens have no EIP-3009. Instead the payer signs a permit that names the collector as spender.
The collector's ``capture`` submits the permit and calls ``transferFromWithMemo`` in one
transaction. A collector belongs to one operator, the only account that can capture, and pays one
recipient. It captures each order once.

Anybody may submit a permit before the collector does. A capture still succeeds then: the collector
spends the allowance that the permit has created. Only the operator can make the collector spend it.

A collector has the same address on every chain, because it is deployed with CREATE2 through the
deterministic deployment proxy. Anybody can deploy it.
"""

from typing import Final

from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from fastevm.payments.calls import call_data
from fastevm.payments.contracts import artifact
from fastevm.payments.errors import InvalidTerms
from fastevm.payments.orders import Order
from fastevm.payments.signatures import Signature

CREATE2_PROXY: Final = "0x4e59b44847b379578588920cA78FbF26c0B4956C"
SALT: Final = bytes(32)
_CAPTURE: Final = "capture(address,address,uint256,uint256,bytes32,uint8,bytes32,bytes32)"


def collector_of(operator: str, recipient: str) -> str:
    """Returns the address of the collector for this operator and recipient."""
    initcode = artifact("PermitCollector").initcode(operator, recipient)
    digest = keccak(b"\xff" + bytes.fromhex(CREATE2_PROXY[2:]) + SALT + keccak(initcode))
    return str(to_checksum_address(digest[12:]))


def deployment_of(operator: str, recipient: str) -> tuple[str, bytes]:
    """Returns target and data of the transaction that deploys a collector."""
    return CREATE2_PROXY, SALT + artifact("PermitCollector").initcode(operator, recipient)


def permit_call(order: Order, signature: Signature) -> tuple[str, bytes]:
    """Returns target and data of the call that captures a PERMIT order.

    Raises InvalidTerms if the signature was not made by a key.
    """
    authorization, terms = order.authorization, order.authorization.terms
    permit = authorization.permit
    if permit is None:
        raise InvalidTerms(f"order {order.id}: expected a permit")
    data = call_data(
        _CAPTURE, authorization.domain.token, terms.payer, terms.value, authorization.deadline,
        terms.nonce, *signature.vrs,
    )  # fmt: skip
    return permit.spender, data
