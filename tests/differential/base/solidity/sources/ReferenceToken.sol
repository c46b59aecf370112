// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// The policy registry of Base under Denim's rules, written for comparison from its description.
contract ReferencePolicies {
    error ZeroAddress();
    error IncompatiblePolicyType();
    error PolicyNotFound();
    error Unauthorized();
    error NoPendingAdmin();
    error ChildPoliciesOutsideOfRange();
    error InvalidChildPolicy(uint64 child);

    event PolicyCreated(uint64 indexed policyId, address indexed creator, uint8 policyType);
    event PolicyAdminUpdated(uint64 indexed policyId, address indexed previous, address indexed next);
    event PolicyAdminStaged(uint64 indexed policyId, address indexed current, address indexed pending);
    event AllowlistUpdated(uint64 indexed policyId, address indexed by, bool allowed, address[] accounts);
    event BlocklistUpdated(uint64 indexed policyId, address indexed by, bool blocked, address[] accounts);
    event CompositePolicyUpdated(uint64 indexed policyId, address indexed by, uint64[] children);

    uint8 constant BLOCKLIST = 0;
    uint8 constant ALLOWLIST = 1;
    uint8 constant UNION = 2;
    uint64 constant ALWAYS_BLOCK = (1 << 56) | 1;
    uint64 constant INVERTED = 1 << 63;

    struct Policy {
        bool exists;
        address admin;
        address pending;
        uint64[] children;
        mapping(address => bool) members;
    }

    mapping(uint64 => Policy) policies;
    uint64 next = 2;

    function typeOf(uint64 id) internal pure returns (uint8) {
        return uint8(id >> 56);
    }

    function isBuiltIn(uint64 id) internal pure returns (bool) {
        return id == 0 || id == ALWAYS_BLOCK;
    }

    function policyExists(uint64 id) public view returns (bool) {
        id &= ~INVERTED;
        return isBuiltIn(id) || policies[id].exists;
    }

    function policyAdmin(uint64 id) external view returns (address) {
        return policies[id & ~INVERTED].admin;
    }

    function pendingPolicyAdmin(uint64 id) external view returns (address) {
        return policies[id & ~INVERTED].pending;
    }

    function isAuthorized(uint64 id, address account) public view returns (bool) {
        if (id & INVERTED != 0) {
            uint64 base = id & ~INVERTED;
            return policyExists(base) && !isAuthorized(base, account);
        }
        if (id == 0) return true;
        if (id == ALWAYS_BLOCK || typeOf(id) > 3) return false;
        Policy storage policy = policies[id];
        if (typeOf(id) == BLOCKLIST) return !policy.members[account];
        if (typeOf(id) == ALLOWLIST) return policy.members[account];
        bool isUnion = typeOf(id) == UNION;
        for (uint256 i = 0; i < policy.children.length; i++) {
            if (isAuthorized(policy.children[i], account) == isUnion) return isUnion;
        }
        return !isUnion;
    }

    function create(address admin, uint8 kind) internal returns (uint64 id) {
        // The first policy also records the built-in ones.
        policies[0].exists = policies[ALWAYS_BLOCK].exists = true;
        id = (uint64(kind) << 56) | next++;
        policies[id].exists = true;
        policies[id].admin = admin;
        emit PolicyCreated(id, msg.sender, kind);
        emit PolicyAdminUpdated(id, address(0), admin);
    }

    function createPolicy(address admin, uint8 kind) external returns (uint64) {
        if (admin == address(0)) revert ZeroAddress();
        if (kind > ALLOWLIST) revert IncompatiblePolicyType();
        return create(admin, kind);
    }

    function createPolicyWithAccounts(address admin, uint8 kind, address[] calldata accounts)
        external
        returns (uint64 id)
    {
        if (admin == address(0)) revert ZeroAddress();
        if (kind > ALLOWLIST) revert IncompatiblePolicyType();
        id = create(admin, kind);
        setMembers(id, true, accounts);
    }

    function setMembers(uint64 id, bool listed, address[] calldata accounts) internal {
        for (uint256 i = 0; i < accounts.length; i++) policies[id].members[accounts[i]] = listed;
        if (typeOf(id) == ALLOWLIST) emit AllowlistUpdated(id, msg.sender, listed, accounts);
        else emit BlocklistUpdated(id, msg.sender, listed, accounts);
    }

    function update(uint64 id, uint8 kind, bool listed, address[] calldata accounts) internal {
        if (!policies[id].exists) revert PolicyNotFound();
        if (typeOf(id) != kind) revert IncompatiblePolicyType();
        if (policies[id].admin != msg.sender) revert Unauthorized();
        setMembers(id, listed, accounts);
    }

    function updateAllowlist(uint64 id, bool listed, address[] calldata accounts) external {
        update(id, ALLOWLIST, listed, accounts);
    }

    function updateBlocklist(uint64 id, bool listed, address[] calldata accounts) external {
        update(id, BLOCKLIST, listed, accounts);
    }

    function checkChildren(uint64[] calldata children) internal view {
        if (children.length < 2 || children.length > 4) revert ChildPoliciesOutsideOfRange();
        for (uint256 i = 0; i < children.length; i++) {
            if (!policies[children[i] & ~INVERTED].exists) revert PolicyNotFound();
        }
        for (uint256 i = 0; i < children.length; i++) {
            uint64 base = children[i] & ~INVERTED;
            if (isBuiltIn(base) || typeOf(base) > ALLOWLIST) revert InvalidChildPolicy(children[i]);
        }
    }

    function createCompositePolicy(address admin, uint8 kind, uint64[] calldata children)
        external
        returns (uint64 id)
    {
        if (admin == address(0)) revert ZeroAddress();
        if (kind < UNION) revert IncompatiblePolicyType();
        checkChildren(children);
        id = create(admin, kind);
        policies[id].children = children;
        emit CompositePolicyUpdated(id, msg.sender, children);
    }

    function updateComposite(uint64 id, uint64[] calldata children) external {
        if (!policies[id].exists) revert PolicyNotFound();
        if (typeOf(id) < UNION) revert IncompatiblePolicyType();
        if (policies[id].admin != msg.sender) revert Unauthorized();
        checkChildren(children);
        policies[id].children = children;
        emit CompositePolicyUpdated(id, msg.sender, children);
    }

    function stageUpdateAdmin(uint64 id, address next_) external {
        if (!policies[id].exists) revert PolicyNotFound();
        if (policies[id].admin != msg.sender) revert Unauthorized();
        policies[id].pending = next_;
        emit PolicyAdminStaged(id, msg.sender, next_);
    }

    function finalizeUpdateAdmin(uint64 id) external {
        if (!policies[id].exists) revert PolicyNotFound();
        Policy storage policy = policies[id];
        if (policy.pending == address(0)) revert NoPendingAdmin();
        if (policy.pending != msg.sender) revert Unauthorized();
        emit PolicyAdminUpdated(id, policy.admin, msg.sender);
        policy.admin = msg.sender;
        policy.pending = address(0);
    }

    function renounceAdmin(uint64 id) external {
        if (!policies[id].exists) revert PolicyNotFound();
        if (policies[id].admin != msg.sender) revert Unauthorized();
        policies[id].admin = address(0);
        policies[id].pending = address(0);
        emit PolicyAdminUpdated(id, msg.sender, address(0));
    }
}

/// A stablecoin of Base (B20) under Denim's rules, written for comparison from its description.
contract ReferenceToken {
    error AccessControlUnauthorizedAccount(address account, bytes32 role);
    error AccessControlBadConfirmation();
    error ContractPaused(uint8 feature);
    error InsufficientAllowance(address spender, uint256 allowance, uint256 needed);
    error InsufficientBalance(address holder, uint256 balance, uint256 needed);
    error InvalidSender(address sender);
    error InvalidReceiver(address receiver);
    error InvalidSpender(address spender);
    error EmptyFeatureSet();
    error InvalidSupplyCap(uint256 supply, uint256 proposed);
    error SupplyCapExceeded(uint256 cap, uint256 supply);
    error PolicyForbids(bytes32 scope, uint64 policyId);
    error PolicyNotFound(uint64 policyId);
    error UnsupportedPolicyType(bytes32 scope);
    error AccountNotBlocked(address account);
    error AccountNotSeizable(address account);
    error LastAdminCannotRenounce();
    error NotSoleAdmin();

    event Transfer(address indexed from, address indexed to, uint256 amount);
    event Approval(address indexed owner, address indexed spender, uint256 amount);
    event Memo(address indexed caller, bytes32 indexed memo);
    event BurnedBlocked(address indexed caller, address indexed from, uint256 amount);
    event Seized(address indexed caller, address indexed from, address indexed to, uint256 amount);
    event RoleGranted(bytes32 indexed role, address indexed account, address indexed sender);
    event RoleRevoked(bytes32 indexed role, address indexed account, address indexed sender);
    event RoleAdminChanged(bytes32 indexed role, bytes32 indexed previous, bytes32 indexed next);
    event LastAdminRenounced(address indexed previousAdmin);
    event Paused(address indexed updater, uint8[] features);
    event Unpaused(address indexed updater, uint8[] features);
    event PolicyUpdated(bytes32 indexed scope, uint64 oldPolicyId, uint64 newPolicyId);
    event SupplyCapUpdated(address indexed updater, uint256 oldCap, uint256 newCap);
    event ContractURIUpdated();
    event NameUpdated(address indexed updater, string newName);
    event SymbolUpdated(address indexed updater, string newSymbol);
    event EIP712DomainChanged();

    uint8 constant TRANSFER = 0;
    uint8 constant MINT = 1;
    uint8 constant BURN = 2;
    uint8 constant SEIZE = 3;

    bytes32 constant SENDER = keccak256("TRANSFER_SENDER_POLICY");
    bytes32 constant RECEIVER = keccak256("TRANSFER_RECEIVER_POLICY");
    bytes32 constant EXECUTOR = keccak256("TRANSFER_EXECUTOR_POLICY");
    bytes32 constant MINT_RECEIVER = keccak256("MINT_RECEIVER_POLICY");
    bytes32 constant SEIZE_EXEMPT = keccak256("SEIZE_EXEMPT_POLICY");
    bytes32 constant SEIZE_RECEIVER = keccak256("SEIZE_RECEIVER_POLICY");

    ReferencePolicies immutable registry;
    string public name;
    string public symbol;
    string public contractURI;
    uint256 public totalSupply;
    uint256 public supplyCap = type(uint128).max;
    uint256 paused;
    uint256 admins = 1;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    mapping(bytes32 => mapping(address => bool)) public hasRole;
    mapping(bytes32 => bytes32) public getRoleAdmin;
    mapping(bytes32 => uint64) policies;

    constructor(ReferencePolicies registry_, address admin, string memory name_, string memory symbol_) {
        registry = registry_;
        name = name_;
        symbol = symbol_;
        hasRole[0][admin] = true;
    }

    // --- checks

    function running(uint8 feature) internal view {
        if (paused & (1 << feature) != 0) revert ContractPaused(feature);
    }

    function only(bytes32 role) internal view {
        if (!hasRole[role][msg.sender]) revert AccessControlUnauthorizedAccount(msg.sender, role);
    }

    function onlyNamed(string memory role) internal view {
        only(keccak256(bytes(role)));
    }

    function ask(bytes32 scope, address account) internal view {
        uint64 id = policies[scope];
        if (!registry.isAuthorized(id, account)) revert PolicyForbids(scope, id);
    }

    function receivable(address to) internal view {
        if (to == address(0) || to == address(this)) revert InvalidReceiver(to);
    }

    // --- transfers

    function move(address from, address to, uint256 amount) internal {
        uint256 balance = balanceOf[from];
        if (balance < amount) revert InsufficientBalance(from, balance, amount);
        balanceOf[from] = balance - amount;
        balanceOf[to] += amount;
        emit Transfer(from, to, amount);
    }

    function core(address from, address to, uint256 amount) internal {
        receivable(to);
        if (from == address(0)) revert InvalidSender(from);
        ask(EXECUTOR, msg.sender);
        if (msg.sender != from || policies[EXECUTOR] != policies[SENDER]) ask(SENDER, from);
        ask(RECEIVER, to);
        move(from, to, amount);
    }

    function transfer(address to, uint256 amount) public returns (bool) {
        running(TRANSFER);
        core(msg.sender, to, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) public returns (bool) {
        running(TRANSFER);
        receivable(to);
        if (from == address(0)) revert InvalidSender(from);
        uint256 allowed = allowance[from][msg.sender];
        bool finite = allowed != type(uint256).max;
        if (finite && allowed < amount) revert InsufficientAllowance(msg.sender, allowed, amount);
        core(from, to, amount);
        if (finite) allowance[from][msg.sender] = allowed - amount;
        return true;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        if (spender == address(0)) revert InvalidSpender(spender);
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    function transferWithMemo(address to, uint256 amount, bytes32 memo) external returns (bool) {
        transfer(to, amount);
        emit Memo(msg.sender, memo);
        return true;
    }

    function transferFromWithMemo(address from, address to, uint256 amount, bytes32 memo)
        external
        returns (bool)
    {
        transferFrom(from, to, amount);
        emit Memo(msg.sender, memo);
        return true;
    }

    // --- supply

    function mint(address to, uint256 amount) public {
        running(MINT);
        onlyNamed("MINT_ROLE");
        receivable(to);
        ask(MINT_RECEIVER, to);
        uint256 supply = totalSupply + amount;
        if (supply > supplyCap) revert SupplyCapExceeded(supplyCap, supply);
        totalSupply = supply;
        balanceOf[to] += amount;
        emit Transfer(address(0), to, amount);
    }

    function mintWithMemo(address to, uint256 amount, bytes32 memo) external {
        mint(to, amount);
        emit Memo(msg.sender, memo);
    }

    function destroy(address from, uint256 amount) internal {
        uint256 balance = balanceOf[from];
        if (balance < amount) revert InsufficientBalance(from, balance, amount);
        balanceOf[from] = balance - amount;
        totalSupply -= amount;
        emit Transfer(from, address(0), amount);
    }

    function burn(uint256 amount) public {
        running(BURN);
        onlyNamed("BURN_ROLE");
        destroy(msg.sender, amount);
    }

    function burnWithMemo(uint256 amount, bytes32 memo) external {
        burn(amount);
        emit Memo(msg.sender, memo);
    }

    function burnBlocked(address from, uint256 amount) external {
        running(BURN);
        onlyNamed("BURN_BLOCKED_ROLE");
        if (registry.isAuthorized(policies[SENDER], from)) revert AccountNotBlocked(from);
        destroy(from, amount);
        emit BurnedBlocked(msg.sender, from, amount);
    }

    function seizeWithMemo(address from, address to, uint256 amount, bytes32 memo) external {
        running(SEIZE);
        onlyNamed("SEIZE_ROLE");
        receivable(to);
        if (from == address(0)) revert InvalidSender(from);
        if (from == to) revert InvalidReceiver(to);
        if (registry.isAuthorized(policies[SEIZE_EXEMPT], from)) revert AccountNotSeizable(from);
        ask(SEIZE_RECEIVER, to);
        move(from, to, amount);
        emit Memo(msg.sender, memo);
        emit Seized(msg.sender, from, to, amount);
    }

    function updateSupplyCap(uint256 cap) external {
        only(0);
        if (cap < totalSupply || cap > type(uint128).max) revert InvalidSupplyCap(totalSupply, cap);
        emit SupplyCapUpdated(msg.sender, supplyCap, cap);
        supplyCap = cap;
    }

    // --- switches and names

    function mask(uint8[] calldata features) internal pure returns (uint256 found) {
        if (features.length == 0) revert EmptyFeatureSet();
        for (uint256 i = 0; i < features.length; i++) found |= 1 << features[i];
    }

    function pause(uint8[] calldata features) external {
        onlyNamed("PAUSE_ROLE");
        paused |= mask(features);
        emit Paused(msg.sender, features);
    }

    function unpause(uint8[] calldata features) external {
        onlyNamed("UNPAUSE_ROLE");
        paused &= ~mask(features);
        emit Unpaused(msg.sender, features);
    }

    function isPaused(uint8 feature) external view returns (bool) {
        return paused & (1 << feature) != 0;
    }

    function updateName(string calldata value) external {
        onlyNamed("METADATA_ROLE");
        name = value;
        emit NameUpdated(msg.sender, value);
        emit EIP712DomainChanged();
    }

    function updateSymbol(string calldata value) external {
        onlyNamed("METADATA_ROLE");
        symbol = value;
        emit SymbolUpdated(msg.sender, value);
    }

    function updateContractURI(string calldata value) external {
        onlyNamed("METADATA_ROLE");
        contractURI = value;
        emit ContractURIUpdated();
    }

    // --- policies

    function known(bytes32 scope) internal pure {
        if (
            scope != SENDER && scope != RECEIVER && scope != EXECUTOR && scope != MINT_RECEIVER
                && scope != SEIZE_EXEMPT && scope != SEIZE_RECEIVER
        ) revert UnsupportedPolicyType(scope);
    }

    function policyId(bytes32 scope) external view returns (uint64) {
        known(scope);
        return policies[scope];
    }

    function updatePolicy(bytes32 scope, uint64 id) external {
        only(0);
        known(scope);
        if (!registry.policyExists(id)) revert PolicyNotFound(id);
        emit PolicyUpdated(scope, policies[scope], id);
        policies[scope] = id;
    }

    // --- roles

    function administered(bytes32 role) internal view {
        if (admins == 0) revert AccessControlUnauthorizedAccount(msg.sender, 0);
        only(getRoleAdmin[role]);
    }

    function revoke(bytes32 role, address account) internal {
        bool held = hasRole[role][account];
        if (role == 0 && held && admins == 1) revert LastAdminCannotRenounce();
        if (!held) return;
        hasRole[role][account] = false;
        if (role == 0) admins--;
        emit RoleRevoked(role, account, msg.sender);
    }

    function grantRole(bytes32 role, address account) external {
        administered(role);
        if (hasRole[role][account]) return;
        hasRole[role][account] = true;
        if (role == 0) admins++;
        emit RoleGranted(role, account, msg.sender);
    }

    function revokeRole(bytes32 role, address account) external {
        administered(role);
        revoke(role, account);
    }

    function renounceRole(bytes32 role, address confirmation) external {
        if (confirmation != msg.sender) revert AccessControlBadConfirmation();
        revoke(role, msg.sender);
    }

    function renounceLastAdmin() external {
        only(0);
        if (admins != 1) revert NotSoleAdmin();
        hasRole[0][msg.sender] = false;
        admins = 0;
        emit RoleRevoked(0, msg.sender, msg.sender);
        emit LastAdminRenounced(msg.sender);
    }

    function setRoleAdmin(bytes32 role, bytes32 next) external {
        bytes32 previous = getRoleAdmin[role];
        administered(role);
        getRoleAdmin[role] = next;
        emit RoleAdminChanged(role, previous, next);
    }
}
