//! Runs a case: the status, gas, output and logs of each transaction, and the state root afterwards.

use crate::Result;
use crate::fields::{Block, Case, Transaction, Word, rules};
use crate::world::World;
use alloy_eip7702::{Authorization, SignedAuthorization};
use revm::context::either::Either;
use revm::context::result::ExecutionResult;
use revm::context::transaction::{AccessList, AccessListItem};
use revm::context::{BlockEnv, TxEnv};
use revm::context_interface::block::BlobExcessGasAndPrice;
use revm::primitives::{B256, TxKind, U256, hardfork::SpecId};
use revm::{Context, ExecuteEvm, MainBuilder, MainContext};
use serde_json::{Value, json};

fn block_of(block: &Block, rules: SpecId, fraction: u64) -> BlockEnv {
    let mut found = BlockEnv::default();
    found.number = U256::from(block.number);
    found.beneficiary = block.coinbase;
    found.timestamp = U256::from(block.timestamp);
    found.gas_limit = block.gas_limit;
    found.basefee = block.base_fee.u64();
    found.difficulty = block.difficulty.0;
    found.prevrandao = rules
        .is_enabled_in(SpecId::MERGE)
        .then(|| B256::from(block.prev_randao.0));
    found.blob_excess_gas_and_price =
        (fraction > 0).then(|| BlobExcessGasAndPrice::new(block.excess_blob_gas, fraction));
    found.slot_num = block.slot_number;
    found
}

fn access_list_of(entries: &[(revm::primitives::Address, Vec<Word>)]) -> AccessList {
    let items = entries.iter().map(|(address, keys)| AccessListItem {
        address: *address,
        storage_keys: keys.iter().map(|key| B256::from(key.0)).collect(),
    });
    AccessList(items.collect())
}

/// None without a recipient that its type requires: revm checks that where it derives the type.
fn transaction_of(fields: &Transaction) -> Option<TxEnv> {
    if fields.kind > 2 && fields.to.is_none() {
        return None;
    }
    let authorizations =
        fields
            .authorization_list
            .iter()
            .map(|(chain, address, nonce, v, r, s)| {
                let inner = Authorization {
                    chain_id: chain.0,
                    address: *address,
                    nonce: *nonce,
                };
                Either::Left(SignedAuthorization::new_unchecked(inner, *v, r.0, s.0))
            });
    let dynamic = fields.kind > 1;
    let price = if dynamic {
        fields.max_fee_per_gas
    } else {
        fields.gas_price
    };
    Some(TxEnv {
        tx_type: fields.kind,
        caller: fields.sender,
        gas_limit: fields.gas_limit,
        gas_price: price.u128(),
        kind: fields.to.map_or(TxKind::Create, TxKind::Call),
        value: fields.value.0,
        data: fields.data.clone(),
        nonce: fields.nonce,
        chain_id: Some(1),
        access_list: access_list_of(&fields.access_list),
        gas_priority_fee: dynamic.then(|| fields.max_priority_fee_per_gas.u128()),
        blob_hashes: fields.blob_versioned_hashes.clone(),
        max_fee_per_blob_gas: fields.max_fee_per_blob_gas.u128(),
        authorization_list: authorizations.collect(),
    })
}

fn outcome_of(result: &ExecutionResult) -> Value {
    let (status, reason) = match result {
        ExecutionResult::Success { .. } => ("success", String::new()),
        ExecutionResult::Revert { .. } => ("revert", String::new()),
        ExecutionResult::Halt { reason, .. } => ("halt", format!("{reason:?}")),
    };
    let logs: Vec<Value> = result
        .logs()
        .iter()
        .map(|log| json!([format!("{:#x}", log.address), log.topics(), log.data.data]))
        .collect();
    json!({
        "status": status,
        "reason": reason,
        "gas_used": result.tx_gas_used(),
        "output": result.output().cloned().unwrap_or_default(),
        "logs": logs,
    })
}

pub fn run(line: &str) -> Result<Value> {
    let case: Case = serde_json::from_str(line)?;
    let Some((rules, fraction)) = rules(&case.fork) else {
        return Ok(json!({ "unsupported": case.fork }));
    };
    let mut evm = Context::mainnet()
        .modify_cfg_chained(|cfg| {
            cfg.set_spec_and_mainnet_gas_params(rules);
            cfg.chain_id = 1;
            cfg.tx_chain_id_check = true;
        })
        .with_db(World::new(&case.pre)?)
        .with_block(block_of(&case.block, rules, fraction))
        .build_mainnet();
    let mut outcomes = Vec::new();
    for fields in &case.transactions {
        let Some(transaction) = transaction_of(fields) else {
            outcomes.push(json!({ "status": "rejected", "reason": "no recipient" }));
            continue;
        };
        match evm.transact(transaction) {
            Ok(done) => {
                outcomes.push(outcome_of(&done.result));
                evm.ctx.journaled_state.database.commit(done.state, rules);
            }
            Err(error) => {
                outcomes.push(json!({ "status": "rejected", "reason": error.to_string() }))
            }
        }
    }
    let root = evm.ctx.journaled_state.database.root();
    Ok(json!({ "transactions": outcomes, "root": root }))
}
