"""The interfaces of contracts built into Base: tokens (B20), their registries, and BaseTime.

Each is a contract type, as `fastevm.contract` returns::

    factory = B20_FACTORY.at(evm, B20_FACTORY_ADDRESS)
    token = B20_STABLECOIN.at(evm, address)

They have the functions of the newest fork, Denim. A call of a function that an
earlier fork lacks reverts.
"""

from __future__ import annotations

from typing import Final

from fastevm.evm.contracts import ContractType, contract

B20_FACTORY_ADDRESS: Final = bytes.fromhex("b20f000000000000000000000000000000000000")
ACTIVATION_REGISTRY_ADDRESS: Final = bytes.fromhex("8453000000000000000000000000000000000001")
POLICY_REGISTRY_ADDRESS: Final = bytes.fromhex("8453000000000000000000000000000000000002")

_TOKEN: Final = """
function DEFAULT_ADMIN_ROLE() view returns (bytes32);
function MINT_ROLE() view returns (bytes32);
function BURN_ROLE() view returns (bytes32);
function BURN_BLOCKED_ROLE() view returns (bytes32);
function PAUSE_ROLE() view returns (bytes32);
function UNPAUSE_ROLE() view returns (bytes32);
function METADATA_ROLE() view returns (bytes32);
function TRANSFER_SENDER_POLICY() view returns (bytes32);
function TRANSFER_RECEIVER_POLICY() view returns (bytes32);
function TRANSFER_EXECUTOR_POLICY() view returns (bytes32);
function MINT_RECEIVER_POLICY() view returns (bytes32);
function name() view returns (string);
function symbol() view returns (string);
function decimals() view returns (uint8);
function totalSupply() view returns (uint256);
function balanceOf(address account) view returns (uint256);
function allowance(address owner, address spender) view returns (uint256);
function transfer(address to, uint256 amount) returns (bool);
function transferFrom(address from, address to, uint256 amount) returns (bool);
function approve(address spender, uint256 amount) returns (bool);
function updateName(string newName);
function updateSymbol(string newSymbol);
function transferWithMemo(address to, uint256 amount, bytes32 memo) returns (bool);
function transferFromWithMemo(address from, address to, uint256 amount, bytes32 memo) returns
    (bool);
function mint(address to, uint256 amount);
function mintWithMemo(address to, uint256 amount, bytes32 memo);
function burn(uint256 amount);
function burnWithMemo(uint256 amount, bytes32 memo);
function burnBlocked(address from, uint256 amount);
function hasRole(bytes32 role, address account) view returns (bool);
function getRoleAdmin(bytes32 role) view returns (bytes32);
function grantRole(bytes32 role, address account);
function revokeRole(bytes32 role, address account);
function renounceRole(bytes32 role, address callerConfirmation);
function renounceLastAdmin();
function setRoleAdmin(bytes32 role, bytes32 newAdminRole);
function pausedFeatures() view returns (uint8[]);
function isPaused(uint8 feature) view returns (bool);
function pause(uint8[] features);
function unpause(uint8[] features);
function policyId(bytes32 policyScope) view returns (uint64);
function updatePolicy(bytes32 policyScope, uint64 newPolicyId);
function supplyCap() view returns (uint256);
function updateSupplyCap(uint256 newSupplyCap);
function DOMAIN_SEPARATOR() view returns (bytes32);
function nonces(address owner) view returns (uint256);
function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32
    r, bytes32 s);
function eip712Domain() view returns (bytes1 fields, string name, string version, uint256 chainId,
    address verifyingContract, bytes32 salt, uint256[] extensions);
function contractURI() view returns (string);
function updateContractURI(string newURI);
function SEIZE_ROLE() view returns (bytes32);
function SEIZE_EXEMPT_POLICY() view returns (bytes32);
function SEIZE_RECEIVER_POLICY() view returns (bytes32);
function seizeWithMemo(address from, address to, uint256 amount, bytes32 memo);
event Transfer(address indexed from, address indexed to, uint256 amount);
event Approval(address indexed owner, address indexed spender, uint256 amount);
event Memo(address indexed caller, bytes32 indexed memo);
event BurnedBlocked(address indexed caller, address indexed from, uint256 amount);
event RoleGranted(bytes32 indexed role, address indexed account, address indexed sender);
event RoleRevoked(bytes32 indexed role, address indexed account, address indexed sender);
event RoleAdminChanged(bytes32 indexed role, bytes32 indexed previousAdminRole, bytes32 indexed
    newAdminRole);
event LastAdminRenounced(address indexed previousAdmin);
event Paused(address indexed updater, uint8[] features);
event Unpaused(address indexed updater, uint8[] features);
event PolicyUpdated(bytes32 indexed policyScope, uint64 oldPolicyId, uint64 newPolicyId);
event SupplyCapUpdated(address indexed updater, uint256 oldSupplyCap, uint256 newSupplyCap);
event ContractURIUpdated();
event NameUpdated(address indexed updater, string newName);
event SymbolUpdated(address indexed updater, string newSymbol);
event EIP712DomainChanged();
event Seized(address indexed caller, address indexed from, address indexed to, uint256 amount);
error NonPayable();
error AccessControlUnauthorizedAccount(address account, bytes32 neededRole);
error Unauthorized();
error ContractPaused(uint8 feature);
error InsufficientAllowance(address spender, uint256 allowance, uint256 needed);
error InsufficientBalance(address sender, uint256 balance, uint256 needed);
error InvalidSender(address sender);
error InvalidReceiver(address receiver);
error InvalidApprover(address approver);
error InvalidSpender(address spender);
error InvalidAmount();
error EmptyFeatureSet();
error InvalidSupplyCap(uint256 currentSupply, uint256 proposedCap);
error SupplyCapExceeded(uint256 cap, uint256 attempted);
error PolicyForbids(bytes32 policyScope, uint64 policyId);
error PolicyNotFound(uint64 policyId);
error UnsupportedPolicyType(bytes32 policyScope);
error AccountNotBlocked(address account);
error ExpiredSignature(uint256 deadline);
error InvalidSigner(address signer, address owner);
error LastAdminCannotRenounce();
error NotSoleAdmin();
error AccessControlBadConfirmation();
error AccountNotSeizable(address account);
"""

_ASSET: Final = """
function OPERATOR_ROLE() view returns (bytes32);
function WAD_PRECISION() view returns (uint256);
function announce(bytes[] internalCalls, string id, string description, string uri);
function isAnnouncementIdUsed(string id) view returns (bool);
function multiplier() view returns (uint256);
function toScaledBalance(uint256 rawBalance) view returns (uint256);
function toRawBalance(uint256 scaledBalance) view returns (uint256 rawBalance);
function scaledBalanceOf(address account) view returns (uint256);
function updateMultiplier(uint256 newMultiplier);
function batchMint(address[] recipients, uint256[] amounts);
function extraMetadata(string key) view returns (string);
function updateExtraMetadata(string key, string value);
function uiMultiplier() view returns (uint256);
function newUIMultiplier() view returns (uint256);
function effectiveAt() view returns (uint256);
function balanceOfUI(address account) view returns (uint256);
function totalSupplyUI() view returns (uint256);
function toUIAmount(uint256 rawAmount) view returns (uint256);
function fromUIAmount(uint256 uiAmount) view returns (uint256);
function MAX_UI_MULTIPLIER() view returns (uint256);
function updateUIMultiplier(uint256 newMultiplier, uint256 effectiveAt);
function cancelUIMultiplierUpdate();
function supportsInterface(bytes4 interfaceId) view returns (bool);
event MultiplierUpdated(uint256 multiplier);
event ExtraMetadataUpdated(string key, string value);
event Announcement(address indexed caller, string id, string description, string uri);
event EndAnnouncement(string id);
event UIMultiplierUpdated(uint256 oldMultiplier, uint256 newMultiplier, uint256
    effectiveAtTimestamp);
event UIMultiplierUpdateCancelled(uint256 cancelledMultiplier, uint256 cancelledEffectiveAt);
error AnnouncementIdAlreadyUsed(string id);
error InvalidMetadataKey();
error InvalidMultiplier();
error LengthMismatch(uint256 leftLen, uint256 rightLen);
error EmptyBatch();
error AnnouncementInProgress();
error InternalCallMalformed(bytes call);
error InternalCallFailed(bytes call);
error EffectiveAtInPast(uint256 effectiveAt);
error EffectiveAtTooFar(uint256 effectiveAt);
error UIMultiplierUpdateExists(uint256 effectiveAt);
error UIMultiplierUpdateDoesNotExist();
"""

_STABLECOIN: Final = """
function currency() view returns (string);
"""

_FACTORY: Final = """
function createB20(uint8 variant, bytes32 salt, bytes params, bytes[] initCalls) returns (address
    token);
function getB20Address(uint8 variant, address sender, bytes32 salt) view returns (address);
function isB20(address token) view returns (bool);
function isB20Initialized(address token) view returns (bool);
event B20Created(address indexed token, uint8 indexed variant, string name, string symbol, uint8
    decimals, bytes variantEventParams);
error NonPayable();
error TokenAlreadyExists(address token);
error InvalidVariant();
error UnsupportedVersion(uint8 version, uint8 variant);
error MissingRequiredField(string field);
error InvalidCurrency(string code);
error InvalidDecimals(uint8 decimals);
error InitCallFailed(uint256 index);
"""

_POLICY_REGISTRY: Final = """
function createPolicy(address admin, uint8 policyType) returns (uint64);
function createPolicyWithAccounts(address admin, uint8 policyType, address[] accounts) returns
    (uint64);
function stageUpdateAdmin(uint64 policyId, address newAdmin);
function finalizeUpdateAdmin(uint64 policyId);
function renounceAdmin(uint64 policyId);
function updateAllowlist(uint64 policyId, bool allowed, address[] accounts);
function updateBlocklist(uint64 policyId, bool blocked, address[] accounts);
function isAuthorized(uint64 policyId, address account) view returns (bool);
function policyExists(uint64 policyId) view returns (bool);
function policyAdmin(uint64 policyId) view returns (address);
function pendingPolicyAdmin(uint64 policyId) view returns (address);
function createCompositePolicy(address admin, uint8 policyType, uint64[] childPolicyIds) returns
    (uint64);
function updateComposite(uint64 policyId, uint64[] childPolicyIds);
function MIN_COMPOSITE_CHILD_POLICIES() view returns (uint256);
function MAX_COMPOSITE_CHILD_POLICIES() view returns (uint256);
function compositePolicyChildIds(uint64 policyId) view returns (uint64[]);
function invertedPolicyId(uint64 policyId) view returns (uint64);
event PolicyCreated(uint64 indexed policyId, address indexed creator, uint8 policyType);
event PolicyAdminUpdated(uint64 indexed policyId, address indexed previousAdmin, address indexed
    newAdmin);
event PolicyAdminStaged(uint64 indexed policyId, address indexed currentAdmin, address indexed
    pendingAdmin);
event AllowlistUpdated(uint64 indexed policyId, address indexed updater, bool allowed, address[]
    accounts);
event BlocklistUpdated(uint64 indexed policyId, address indexed updater, bool blocked, address[]
    accounts);
event CompositePolicyUpdated(uint64 indexed policyId, address indexed updater, uint64[]
    childPolicyIds);
error NonPayable();
error Unauthorized();
error PolicyNotFound();
error IncompatiblePolicyType();
error ZeroAddress();
error BatchSizeTooLarge(uint256 maxBatchSize);
error NoPendingAdmin();
error ChildPoliciesOutsideOfRange();
error InvalidChildPolicy(uint64 childPolicyId);
"""

_ACTIVATION_REGISTRY: Final = """
function isActivated(bytes32 feature) view returns (bool);
function checkActivated(bytes32 feature) view;
function admin() view returns (address);
function activate(bytes32 feature);
function deactivate(bytes32 feature);
function setAdmin(address newAdmin);
event FeatureActivated(bytes32 indexed feature, address indexed caller);
event FeatureDeactivated(bytes32 indexed feature, address indexed caller);
event AdminChanged(address indexed previousAdmin, address indexed newAdmin, address indexed
    caller);
error Unauthorized(address caller);
error AlreadyActivated(bytes32 feature);
error FeatureNotActivated(bytes32 feature);
error DelegateCallNotAllowed();
error StaticCallNotAllowed();
error AdminStorageNotEnabled();
error ZeroAdminAddress();
error NonPayable();
"""

_BASE_TIME: Final = """
function version() view returns (string);
function timestampMs() view returns (uint64);
function timestampMillisPart() view returns (uint16);
function setTimestampMillisPart(uint16 timestampMillisPart);
error BaseTime_NotDepositor();
error BaseTime_InvalidTimestampMillisPart();
"""


def _interface(text: str) -> ContractType:
    """Returns the contract type for declarations that end with semicolons."""
    found = (" ".join(part.split()) for part in text.split(";"))
    return contract([declaration for declaration in found if declaration])


B20_FACTORY: Final = _interface(_FACTORY)
"""Creates tokens and predicts their addresses."""
B20_ASSET: Final = _interface(_TOKEN + _ASSET)
"""A token with multipliers, announcements and metadata."""
B20_STABLECOIN: Final = _interface(_TOKEN + _STABLECOIN)
"""A token for a currency."""
POLICY_REGISTRY: Final = _interface(_POLICY_REGISTRY)
"""Lists of accounts that may or may not take part in transfers."""
ACTIVATION_REGISTRY: Final = _interface(_ACTIVATION_REGISTRY)
"""The registry of activated features."""
BASE_TIME: Final = _interface(_BASE_TIME)
"""The milliseconds of the block timestamp."""
