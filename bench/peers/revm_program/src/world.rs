//! A state in memory that knows its root.

use crate::Result;
use crate::fields::Account;
use alloy_trie::TrieAccount;
use alloy_trie::root::{state_root_unhashed, storage_root_unhashed};
use revm::Database;
use revm::bytecode::Bytecode;
use revm::primitives::{Address, B256, U256, hardfork::SpecId, keccak256};
use revm::state::{AccountInfo, EvmState};
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;

#[derive(Default)]
struct Entry {
    info: AccountInfo,
    storage: BTreeMap<U256, U256>,
}

#[derive(Default)]
pub struct World {
    accounts: HashMap<Address, Entry>,
}

pub fn info_of(account: &Account) -> AccountInfo {
    let code = Bytecode::new_raw(account.code.clone().unwrap_or_default());
    let mut info = AccountInfo::default();
    info.balance = account.balance.0;
    info.nonce = account.nonce.u64();
    info.code_hash = code.hash_slow();
    info.code = Some(code);
    info
}

impl World {
    pub fn new(accounts: &BTreeMap<Address, Account>) -> Result<World> {
        let mut world = World::default();
        for (address, account) in accounts {
            let mut storage = BTreeMap::new();
            for (slot, value) in account.slots()? {
                if value != U256::ZERO {
                    storage.insert(slot, value);
                }
            }
            world.accounts.insert(
                *address,
                Entry {
                    info: info_of(account),
                    storage,
                },
            );
        }
        Ok(world)
    }

    /// Keeps what a transaction changed. Touched empty accounts vanish since EIP-161.
    pub fn commit(&mut self, changes: EvmState, rules: SpecId) {
        let clears_empty = rules.is_enabled_in(SpecId::SPURIOUS_DRAGON);
        for (address, account) in changes {
            if !account.is_touched() {
                continue;
            }
            if account.is_selfdestructed() || (clears_empty && account.is_empty()) {
                self.accounts.remove(&address);
                continue;
            }
            let entry = self.accounts.entry(address).or_default();
            if account.is_created() {
                entry.storage.clear();
            }
            let code = account
                .info
                .code
                .clone()
                .or_else(|| entry.info.code.clone());
            for (slot, value) in account.changed_storage_slots() {
                if value.present_value == U256::ZERO {
                    entry.storage.remove(slot);
                } else {
                    entry.storage.insert(*slot, value.present_value);
                }
            }
            entry.info = account.info;
            entry.info.code = code;
        }
    }

    pub fn root(&self) -> B256 {
        state_root_unhashed(self.accounts.iter().map(|(address, entry)| {
            let slots = entry
                .storage
                .iter()
                .map(|(slot, value)| (B256::from(*slot), *value));
            let root = storage_root_unhashed(slots);
            let info = &entry.info;
            (
                *address,
                TrieAccount::new(info.nonce, info.balance, root, info.code_hash),
            )
        }))
    }
}

impl Database for World {
    type Error = Infallible;

    fn basic(&mut self, address: Address) -> std::result::Result<Option<AccountInfo>, Infallible> {
        Ok(self.accounts.get(&address).map(|entry| entry.info.clone()))
    }

    fn code_by_hash(&mut self, hash: B256) -> std::result::Result<Bytecode, Infallible> {
        unreachable!("accounts come with their code; no account has code hash {hash}")
    }

    fn storage(&mut self, address: Address, slot: U256) -> std::result::Result<U256, Infallible> {
        let entry = self.accounts.get(&address);
        Ok(entry
            .and_then(|entry| entry.storage.get(&slot).copied())
            .unwrap_or_default())
    }

    /// keccak256 of the number in decimal.
    fn block_hash(&mut self, number: u64) -> std::result::Result<B256, Infallible> {
        Ok(keccak256(number.to_string()))
    }
}
