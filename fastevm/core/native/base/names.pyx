"""Selectors of errors, topics of events, and the identifiers of Base's native contracts.

All are derived from their names when this module is imported.
"""

from libc.stdint cimport uint8_t, uint32_t

from fastevm.core.primitives.intrinsics cimport load32_big
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.word cimport Word, word_load


cdef uint32_t error(bytes signature):
    """Returns the selector of an error."""
    cdef uint8_t digest[32]
    keccak256(digest, <const uint8_t*><const char*>signature, len(signature))
    return load32_big(digest)


cdef int name(Word* out, bytes text) except -1:
    """Computes the hash of a name: topic 0 of an event, a role, a scope, a feature."""
    cdef uint8_t digest[32]
    keccak256(digest, <const uint8_t*><const char*>text, len(text))
    word_load(out, digest)
    return 0


cdef int root(Word* out, str namespace) except -1:
    """Computes the first slot of a namespace (ERC-7201).

    It is keccak256(keccak256(namespace) - 1) with the last byte set to 0.
    """
    cdef uint8_t digest[32]
    cdef bytes text = namespace.encode()
    keccak256(digest, <const uint8_t*><const char*>text, len(text))
    text = (int.from_bytes(digest[:32], "big") - 1).to_bytes(32, "big")
    keccak256(digest, <const uint8_t*><const char*>text, 32)
    digest[31] = 0
    word_load(out, digest)
    return 0


NON_PAYABLE = error(b"NonPayable()")
DELEGATE_CALL_NOT_ALLOWED = error(b"DelegateCallNotAllowed()")
STATIC_CALL_NOT_ALLOWED = error(b"StaticCallNotAllowed()")
PANIC = error(b"Panic(uint256)")
UNAUTHORIZED_ROLE = error(b"AccessControlUnauthorizedAccount(address,bytes32)")
BAD_CONFIRMATION = error(b"AccessControlBadConfirmation()")
LAST_ADMIN_CANNOT_RENOUNCE = error(b"LastAdminCannotRenounce()")
NOT_SOLE_ADMIN = error(b"NotSoleAdmin()")
CONTRACT_PAUSED = error(b"ContractPaused(uint8)")
EMPTY_FEATURE_SET = error(b"EmptyFeatureSet()")
INSUFFICIENT_ALLOWANCE = error(b"InsufficientAllowance(address,uint256,uint256)")
INSUFFICIENT_BALANCE = error(b"InsufficientBalance(address,uint256,uint256)")
INVALID_SENDER = error(b"InvalidSender(address)")
INVALID_RECEIVER = error(b"InvalidReceiver(address)")
INVALID_APPROVER = error(b"InvalidApprover(address)")
INVALID_SPENDER = error(b"InvalidSpender(address)")
INVALID_SUPPLY_CAP = error(b"InvalidSupplyCap(uint256,uint256)")
SUPPLY_CAP_EXCEEDED = error(b"SupplyCapExceeded(uint256,uint256)")
POLICY_FORBIDS = error(b"PolicyForbids(bytes32,uint64)")
TOKEN_POLICY_NOT_FOUND = error(b"PolicyNotFound(uint64)")
UNSUPPORTED_POLICY_TYPE = error(b"UnsupportedPolicyType(bytes32)")
ACCOUNT_NOT_BLOCKED = error(b"AccountNotBlocked(address)")
ACCOUNT_NOT_SEIZABLE = error(b"AccountNotSeizable(address)")
EXPIRED_SIGNATURE = error(b"ExpiredSignature(uint256)")
INVALID_SIGNER = error(b"InvalidSigner(address,address)")
ANNOUNCEMENT_ID_ALREADY_USED = error(b"AnnouncementIdAlreadyUsed(string)")
ANNOUNCEMENT_IN_PROGRESS = error(b"AnnouncementInProgress()")
INTERNAL_CALL_MALFORMED = error(b"InternalCallMalformed(bytes)")
INTERNAL_CALL_FAILED = error(b"InternalCallFailed(bytes)")
INVALID_METADATA_KEY = error(b"InvalidMetadataKey()")
INVALID_MULTIPLIER = error(b"InvalidMultiplier()")
LENGTH_MISMATCH = error(b"LengthMismatch(uint256,uint256)")
EMPTY_BATCH = error(b"EmptyBatch()")
EFFECTIVE_AT_IN_PAST = error(b"EffectiveAtInPast(uint256)")
EFFECTIVE_AT_TOO_FAR = error(b"EffectiveAtTooFar(uint256)")
UI_MULTIPLIER_UPDATE_EXISTS = error(b"UIMultiplierUpdateExists(uint256)")
UI_MULTIPLIER_UPDATE_DOES_NOT_EXIST = error(b"UIMultiplierUpdateDoesNotExist()")
TOKEN_ALREADY_EXISTS = error(b"TokenAlreadyExists(address)")
UNSUPPORTED_VERSION = error(b"UnsupportedVersion(uint8,uint8)")
MISSING_REQUIRED_FIELD = error(b"MissingRequiredField(string)")
INVALID_CURRENCY = error(b"InvalidCurrency(string)")
INVALID_DECIMALS = error(b"InvalidDecimals(uint8)")
INIT_CALL_FAILED = error(b"InitCallFailed(uint256)")
POLICY_NOT_FOUND = error(b"PolicyNotFound()")
INCOMPATIBLE_POLICY_TYPE = error(b"IncompatiblePolicyType()")
ZERO_ADDRESS = error(b"ZeroAddress()")
BATCH_SIZE_TOO_LARGE = error(b"BatchSizeTooLarge(uint256)")
NO_PENDING_ADMIN = error(b"NoPendingAdmin()")
CHILD_POLICIES_OUTSIDE_OF_RANGE = error(b"ChildPoliciesOutsideOfRange()")
INVALID_CHILD_POLICY = error(b"InvalidChildPolicy(uint64)")
UNAUTHORIZED = error(b"Unauthorized()")
UNAUTHORIZED_ACCOUNT = error(b"Unauthorized(address)")
ALREADY_ACTIVATED = error(b"AlreadyActivated(bytes32)")
FEATURE_NOT_ACTIVATED = error(b"FeatureNotActivated(bytes32)")
ZERO_ADMIN_ADDRESS = error(b"ZeroAdminAddress()")

name(&TRANSFER, b"Transfer(address,address,uint256)")
name(&APPROVAL, b"Approval(address,address,uint256)")
name(&MEMO, b"Memo(address,bytes32)")
name(&BURNED_BLOCKED, b"BurnedBlocked(address,address,uint256)")
name(&SEIZED, b"Seized(address,address,address,uint256)")
name(&ROLE_GRANTED, b"RoleGranted(bytes32,address,address)")
name(&ROLE_REVOKED, b"RoleRevoked(bytes32,address,address)")
name(&ROLE_ADMIN_CHANGED, b"RoleAdminChanged(bytes32,bytes32,bytes32)")
name(&LAST_ADMIN_RENOUNCED, b"LastAdminRenounced(address)")
name(&PAUSED, b"Paused(address,uint8[])")
name(&UNPAUSED, b"Unpaused(address,uint8[])")
name(&POLICY_UPDATED, b"PolicyUpdated(bytes32,uint64,uint64)")
name(&SUPPLY_CAP_UPDATED, b"SupplyCapUpdated(address,uint256,uint256)")
name(&CONTRACT_URI_UPDATED, b"ContractURIUpdated()")
name(&NAME_UPDATED, b"NameUpdated(address,string)")
name(&SYMBOL_UPDATED, b"SymbolUpdated(address,string)")
name(&DOMAIN_CHANGED, b"EIP712DomainChanged()")
name(&MULTIPLIER_UPDATED, b"MultiplierUpdated(uint256)")
name(&EXTRA_METADATA_UPDATED, b"ExtraMetadataUpdated(string,string)")
name(&ANNOUNCEMENT, b"Announcement(address,string,string,string)")
name(&END_ANNOUNCEMENT, b"EndAnnouncement(string)")
name(&UI_MULTIPLIER_UPDATED, b"UIMultiplierUpdated(uint256,uint256,uint256)")
name(&UI_MULTIPLIER_UPDATE_CANCELLED, b"UIMultiplierUpdateCancelled(uint256,uint256)")
name(&B20_CREATED, b"B20Created(address,uint8,string,string,uint8,bytes)")
name(&POLICY_CREATED, b"PolicyCreated(uint64,address,uint8)")
name(&POLICY_ADMIN_UPDATED, b"PolicyAdminUpdated(uint64,address,address)")
name(&POLICY_ADMIN_STAGED, b"PolicyAdminStaged(uint64,address,address)")
name(&ALLOWLIST_UPDATED, b"AllowlistUpdated(uint64,address,bool,address[])")
name(&BLOCKLIST_UPDATED, b"BlocklistUpdated(uint64,address,bool,address[])")
name(&COMPOSITE_POLICY_UPDATED, b"CompositePolicyUpdated(uint64,address,uint64[])")
name(&FEATURE_ACTIVATED, b"FeatureActivated(bytes32,address)")
name(&FEATURE_DEACTIVATED, b"FeatureDeactivated(bytes32,address)")
name(&ADMIN_CHANGED, b"AdminChanged(address,address,address)")

name(&MINT_ROLE, b"MINT_ROLE")
name(&BURN_ROLE, b"BURN_ROLE")
name(&BURN_BLOCKED_ROLE, b"BURN_BLOCKED_ROLE")
name(&SEIZE_ROLE, b"SEIZE_ROLE")
name(&PAUSE_ROLE, b"PAUSE_ROLE")
name(&UNPAUSE_ROLE, b"UNPAUSE_ROLE")
name(&METADATA_ROLE, b"METADATA_ROLE")
name(&OPERATOR_ROLE, b"OPERATOR_ROLE")
name(&TRANSFER_SENDER_POLICY, b"TRANSFER_SENDER_POLICY")
name(&TRANSFER_RECEIVER_POLICY, b"TRANSFER_RECEIVER_POLICY")
name(&TRANSFER_EXECUTOR_POLICY, b"TRANSFER_EXECUTOR_POLICY")
name(&MINT_RECEIVER_POLICY, b"MINT_RECEIVER_POLICY")
name(&SEIZE_EXEMPT_POLICY, b"SEIZE_EXEMPT_POLICY")
name(&SEIZE_RECEIVER_POLICY, b"SEIZE_RECEIVER_POLICY")

name(&POLICY_REGISTRY_FEATURE, b"base.policy_registry")
name(&ASSET_FEATURE, b"base.b20_asset")
name(&STABLECOIN_FEATURE, b"base.b20_stablecoin")

root(&TOKEN_ROOT, "base.b20")
root(&ASSET_ROOT, "base.b20.asset")
root(&STABLECOIN_ROOT, "base.b20.stablecoin")
root(&POLICY_ROOT, "base.policy_registry")
root(&ACTIVATION_ROOT, "base.activation_registry")

name(
    &DOMAIN_TYPE_HASH,
    b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)",
)
name(
    &PERMIT_TYPE_HASH,
    b"Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)",
)
