"""Payments for merchants: authorize now (EIP-3009), capture later.

A payer signs typed data, which moves no tokens. The merchant stores the signature encrypted and
captures the payment later, exactly once. A payment counts only when its receipt is canonical and
has the confirmations that the merchant's policy requires. `Merchant` does all of this against any
JSON-RPC node. SECURITY.md lists what is protected and what is not.
"""

from fastevm.errors import install_command

try:
    import eth_account  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{error}, which fastevm.payments needs: {install_command('payments')}", name=error.name
    ) from None

from fastevm.payments.amounts import amount
from fastevm.payments.authorization import (
    Authorization,
    Cancellation,
    Domain,
    Kind,
    Permit,
    Terms,
)
from fastevm.payments.call_routes import Direct, Route, ThroughWallet
from fastevm.payments.errors import (
    AlreadyRefunded,
    CaptureRefused,
    DuplicateOrder,
    ExpiredOrder,
    IllegalTransition,
    InvalidTerms,
    LimitReached,
    MovementRefused,
    NodeBehind,
    NodeRefusal,
    NodeUnreachable,
    OtherChain,
    PaymentError,
    ReorganisedMeanwhile,
    SignatureRefused,
    SignerUnavailable,
    StaleOrder,
    StoreError,
    StoreUnavailable,
    UnknownOrder,
    UnreadableRow,
    VaultError,
    WrongChain,
)
from fastevm.payments.events import ChainLog, Entry, Event
from fastevm.payments.holds import Hold, Holds, HoldTerms
from fastevm.payments.kms import AwsKey, GoogleKey, KeyService, ServiceSigner
from fastevm.payments.merchant import Merchant
from fastevm.payments.metrics import Metrics
from fastevm.payments.movements import (
    Amounts,
    Movement,
    MovementKind,
    MovementState,
    MovementTrigger,
)
from fastevm.payments.node import NodeClient
from fastevm.payments.orders import AuditEntry, Order, Progress, Purpose, Settlement, Submission
from fastevm.payments.outbox import Delivery, DeliveryState, Endpoint, Notice
from fastevm.payments.policy import Policy
from fastevm.payments.preflight import Report, Verdict
from fastevm.payments.reasons import Reason
from fastevm.payments.signatures import Signature, sign
from fastevm.payments.signer import KeySigner, Signer
from fastevm.payments.states import TRANSITIONS, Actor, State, Transition, Trigger
from fastevm.payments.store import Store, open_store
from fastevm.payments.tokens import KNOWN, KnownToken, Token, WrongToken
from fastevm.payments.vault import KEY_VARIABLE, Vault, new_key
from fastevm.payments.watcher import Change, Watcher

__all__ = [
    "KEY_VARIABLE",
    "KNOWN",
    "TRANSITIONS",
    "Actor",
    "AlreadyRefunded",
    "Amounts",
    "AuditEntry",
    "Authorization",
    "AwsKey",
    "Cancellation",
    "CaptureRefused",
    "ChainLog",
    "Change",
    "Delivery",
    "DeliveryState",
    "Direct",
    "Domain",
    "DuplicateOrder",
    "Endpoint",
    "Entry",
    "Event",
    "ExpiredOrder",
    "GoogleKey",
    "Hold",
    "HoldTerms",
    "Holds",
    "IllegalTransition",
    "InvalidTerms",
    "KeyService",
    "KeySigner",
    "Kind",
    "KnownToken",
    "LimitReached",
    "Merchant",
    "Metrics",
    "Movement",
    "MovementKind",
    "MovementRefused",
    "MovementState",
    "MovementTrigger",
    "NodeBehind",
    "NodeClient",
    "NodeRefusal",
    "NodeUnreachable",
    "Notice",
    "Order",
    "OtherChain",
    "PaymentError",
    "Permit",
    "Policy",
    "Progress",
    "Purpose",
    "Reason",
    "ReorganisedMeanwhile",
    "Report",
    "Route",
    "ServiceSigner",
    "Settlement",
    "Signature",
    "SignatureRefused",
    "Signer",
    "SignerUnavailable",
    "StaleOrder",
    "State",
    "Store",
    "StoreError",
    "StoreUnavailable",
    "Submission",
    "Terms",
    "ThroughWallet",
    "Token",
    "Transition",
    "Trigger",
    "UnknownOrder",
    "UnreadableRow",
    "Vault",
    "VaultError",
    "Verdict",
    "Watcher",
    "WrongChain",
    "WrongToken",
    "amount",
    "new_key",
    "open_store",
    "sign",
]
