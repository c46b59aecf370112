"""Payments: authorize now (EIP-3009), capture later; what a merchant's back end needs.

A payer signs typed data, which moves nothing. The merchant keeps the signature sealed and captures
the payment later, once; only a canonical receipt at the merchant's depth is a payment. `Merchant`
does all of it against any JSON-RPC node; SECURITY.md says what is protected, and what is not.
"""

from fastevm.payments.authorization import Authorization, Cancellation, Domain, Kind, Terms
from fastevm.payments.errors import (
    CaptureRefused,
    DuplicateOrder,
    IllegalTransition,
    InvalidTerms,
    NodeRefusal,
    NodeUnreachable,
    PaymentError,
    ReorganisedMeanwhile,
    SignatureRefused,
    StaleOrder,
    StoreError,
    UnknownOrder,
    VaultError,
)
from fastevm.payments.events import ChainLog, Entry, Event
from fastevm.payments.merchant import Merchant
from fastevm.payments.movements import (
    Amounts,
    Movement,
    MovementKind,
    MovementState,
    MovementTrigger,
)
from fastevm.payments.node import NodeClient
from fastevm.payments.orders import AuditEntry, Order, Progress, Purpose, Settlement, Submission
from fastevm.payments.policy import KeySigner, Policy, Signer
from fastevm.payments.preflight import Report, Verdict
from fastevm.payments.reasons import Reason
from fastevm.payments.routes import Direct, Route, ThroughWallet
from fastevm.payments.signatures import Signature, sign
from fastevm.payments.states import TRANSITIONS, Actor, State, Transition, Trigger
from fastevm.payments.store import Store, open_store
from fastevm.payments.vault import KEY_VARIABLE, Vault, new_key
from fastevm.payments.watcher import Change, Watcher

__all__ = [
    "KEY_VARIABLE",
    "TRANSITIONS",
    "Actor",
    "Amounts",
    "AuditEntry",
    "Authorization",
    "Cancellation",
    "CaptureRefused",
    "ChainLog",
    "Change",
    "Direct",
    "Domain",
    "DuplicateOrder",
    "Entry",
    "Event",
    "IllegalTransition",
    "InvalidTerms",
    "KeySigner",
    "Kind",
    "Merchant",
    "Movement",
    "MovementKind",
    "MovementState",
    "MovementTrigger",
    "NodeClient",
    "NodeRefusal",
    "NodeUnreachable",
    "Order",
    "PaymentError",
    "Policy",
    "Progress",
    "Purpose",
    "Reason",
    "ReorganisedMeanwhile",
    "Report",
    "Route",
    "Settlement",
    "Signature",
    "SignatureRefused",
    "Signer",
    "StaleOrder",
    "State",
    "Store",
    "StoreError",
    "Submission",
    "Terms",
    "ThroughWallet",
    "Transition",
    "Trigger",
    "UnknownOrder",
    "Vault",
    "VaultError",
    "Verdict",
    "Watcher",
    "new_key",
    "open_store",
    "sign",
]
