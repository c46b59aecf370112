# One fork's rules as a flat C struct, packed from the Python tables of this folder.
from libc.stdint cimport int64_t, uint32_t, uint64_t


# The transition original -> current -> new of a slot's value determines the cost and refund of
# SSTORE. Index into `sstore_cost` and `sstore_refund`; the cold-slot surcharge is added. A slot is
# dirty if current != original. Without net metering the price depends on (current, new) only; the
# rows then hold the same values for every `original`.
cdef enum SstoreTransition:
    SSTORE_NOOP = 0            # new == current
    SSTORE_CREATE = 1          # original == current == 0, new != 0
    SSTORE_UPDATE = 2          # original == current != 0, new != 0
    SSTORE_DELETE = 3          # original == current != 0, new == 0
    SSTORE_DIRTY = 4           # dirty, and no row below applies: no refund effect
    SSTORE_DIRTY_DELETE = 5    # dirty, original != 0, current != 0, new == 0, new != original
    SSTORE_DIRTY_UNDELETE = 6  # dirty, original != 0, current == 0, new != 0, new != original
    SSTORE_RESTORE_ZERO = 7    # dirty, new == original == 0
    SSTORE_RESTORE = 8         # dirty, new == original != 0, current != 0
    SSTORE_UNDELETE_RESTORE = 9  # dirty, original != 0, current == 0, new == original
    SSTORE_TRANSITIONS = 10


cdef enum:
    # Precompiles 0x01..0x11 by number; P256VERIFY (0x100) is index 0x12 in the tables below.
    PRECOMPILE_LIMIT = 0x12


cdef struct Schedule:
    # --- opcodes: static price of each opcode, negative = undefined in this fork ---
    int64_t gas[256]

    # --- storage ---
    int64_t sstore_cost[10]
    int64_t sstore_refund[10]
    int64_t sstore_sentry               # SSTORE fails when gas left <= this (0 = no rule)
    bint sstore_net_metering            # `original` matters (Constantinople, and Istanbul on)
    int64_t cold_account_surcharge      # on top of the opcode's static price; 0 before access lists
    int64_t cold_slot_surcharge         # SLOAD: on top of its static price
    int64_t cold_sstore_surcharge       # SSTORE: on top of its table row
    int64_t cold_selfdestruct_surcharge  # SELFDESTRUCT to a cold account
    int64_t warm_access_cost            # access to a warm account (delegation)
    bint has_access_lists               # warm and cold accesses have different prices

    # --- calls and creation ---
    int64_t call_value_cost
    int64_t call_stipend
    int64_t call_new_account_cost
    int64_t create_word_cost            # per word of init code (EIP-3860), 0 before
    int64_t code_deposit_cost           # per byte
    int64_t max_code_size               # 0 = no limit
    int64_t max_initcode_size           # 0 = no limit
    bint all_but_one_64th               # a caller keeps 1/64 of its gas
    bint new_account_cost_needs_value   # only a value transfer to a dead account pays it
    bint code_deposit_must_be_paid      # creation fails if the deposit runs out of gas
    bint rejects_code_starting_ef
    int64_t selfdestruct_new_account_cost
    int64_t selfdestruct_refund
    bint selfdestruct_only_if_created   # only contracts of the same transaction are destroyed
    uint64_t created_account_nonce      # initial nonce of a contract
    bint clears_empty_accounts          # touched empty accounts are deleted
    bint has_delegations                # set-code accounts
    int64_t exp_byte_cost
    bint difficulty_is_randomness       # opcode 0x44 returns PREVRANDAO

    # --- precompiles: which are active, and variable prices ---
    bint precompile_active[0x13]
    int64_t bn254_add_cost
    int64_t bn254_mul_cost
    int64_t bn254_pairing_base_cost
    int64_t bn254_pairing_pair_cost
    int64_t modexp_version              # 0 none, 1 Byzantium, 2 Berlin, 3 Osaka
    int64_t modexp_max_length           # bytes of each operand, 0 = no limit
    int64_t p256_verify_cost
    int64_t precompile_max_input[0x13]  # bytes; a longer input fails the call; 0 = no limit

    # --- transactions ---
    int64_t tx_cost
    int64_t tx_create_cost              # on top of tx_cost
    int64_t tx_zero_byte_cost
    int64_t tx_nonzero_byte_cost
    int64_t tx_access_address_cost
    int64_t tx_access_slot_cost
    int64_t tx_floor_token_cost         # calldata floor per token, 0 = no floor
    int64_t tx_gas_cap                  # 0 = none
    int64_t authorization_cost          # per tuple, at the price of an empty account
    int64_t authorization_refund        # refund for an existing account
    int64_t refund_quotient
    uint32_t max_tx_type                # highest transaction type accepted
    bint signature_low_s
    bint has_chain_id_in_signature
    bint warm_coinbase

    # --- fees ---
    bint has_base_fee
    uint64_t elasticity_multiplier
    uint64_t base_fee_change_denominator
    uint64_t initial_base_fee
    bint has_blobs                      # header fields and opcodes exist
    bint accepts_blobs                  # blob transactions are valid
    uint64_t blob_gas_per_blob
    uint64_t blob_target                # per block
    uint64_t blob_max                   # per block
    uint64_t blob_max_per_tx            # 0 = only the block's limit
    uint64_t blob_base_fee_fraction
    uint64_t blob_min_base_fee
    uint64_t blob_reserve_cost          # execution gas; bounds the fee (EIP-7918); 0 = no rule

    # --- blocks ---
    bint proof_of_stake                 # no reward, no uncles, difficulty 0
    uint64_t block_reward_gwei          # before the merge
    int64_t difficulty_version          # 0 Frontier, 1 Homestead, 2 Byzantium (uncle-aware)
    uint64_t bomb_delay_blocks
    bint receipt_has_state_root         # before Byzantium
    bint has_withdrawals
    bint has_beacon_root                # system call with the parent beacon block root
    bint has_history_contract           # system call with the parent hash
    bint has_requests                   # the header field exists
    bint collects_requests
    int64_t max_block_rlp_size          # 0 = no limit

    # --- chains of the OP stack ---
    bint has_deposits
    bint deposits_report_gas
    int64_t deposit_receipt_version     # 0 = receipts of deposits have no nonce
    bint has_fee_vaults
    int64_t l1_fee_version              # 0 none, 1 Bedrock, 2 Regolith, 3 Ecotone, 4 Fjord
    int64_t operator_fee_version        # 0 none, 1 Isthmus, 2 Jovian
    int64_t fee_parameters_version      # in the extra data: 0 none, 1 Holocene, 2 Jovian
    bint has_free_gas_limit
    bint has_da_footprint
    bint commits_to_withdrawals
    bint has_post_exec                  # gas refunds in a last transaction

    # --- Base ---
    int64_t native_contracts            # 0 none, 1 Base, 2 Arbitrum: see core/native
    int64_t b20_version                 # native tokens: 0 none, 1 Beryl, 2 Cobalt, 3 Denim
    uint64_t activation_admin[3]        # of the ActivationRegistry unless its storage has one; limbs
    bint has_base_time                  # blocks every 200 ms; a deposit holds the milliseconds

    # --- Arbitrum ---
    int64_t arbos_version               # 0 on other chains

    # --- Amsterdam ---
    int64_t state_gas_version           # 0 none, 1 devnet of April 2026, 2 Amsterdam
    int64_t state_byte_cost             # state gas; 0 = depends on the block's gas limit
    int64_t account_state_bytes
    int64_t slot_state_bytes
    int64_t delegation_state_bytes
    int64_t system_call_state_gas
    int64_t account_write_cost          # first write of an authorization to its account
    int64_t code_word_cost              # per word of deposited code
    int64_t tx_recipient_cost
    int64_t tx_value_cost
    int64_t tx_total_gas_cap            # 0 = none; tx_gas_cap then caps regular gas
    int64_t tx_floor_byte_cost          # per byte of data; 0 = no rule
    int64_t tx_floor_address_cost
    int64_t tx_floor_slot_cost
    int64_t block_access_item_gas       # gas limit per item of the block access list
    bint has_transfer_logs
    bint has_burn_logs
    bint counts_gas_before_refunds
    bint has_slot_number                # the header field exists
    bint has_block_access_list          # the header field exists
    bint creates_over_storage           # storage alone is no collision
    bint selfdestruct_keeps_balance
    bint has_builder_requests


cdef class ForkSchedule:
    """One fork's packed schedule. Owns the C struct."""
    cdef Schedule c
    cdef readonly str name
    cdef readonly object fork               # forks.Fork
    cdef readonly object blobs              # blobs.BlobParameters; None before blobs
    cdef readonly object opcodes            # mapping mnemonic -> static price, defined opcodes only
    cdef readonly object parameters         # mapping of every parameter by name
    cdef readonly object precompiles        # mapping name -> address as int
    cdef readonly object system_contracts   # mapping name -> 20-byte address
