//! Prepares programs and times them.

use crate::Result;
use crate::fields::{Account, Word, rules};
use crate::world::info_of;
use revm::context::{BlockEnv, TxEnv};
use revm::context_interface::block::BlobExcessGasAndPrice;
use revm::database::{CacheDB, EmptyDB};
use revm::handler::{MainnetContext, MainnetEvm};
use revm::primitives::{Address, B256, Bytes, TxKind, U256, hardfork::SpecId, hex};
use revm::{Context, ExecuteEvm, MainBuilder, MainContext};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

const OUTPUT_LIMIT: usize = 256;
const INTRINSIC_GAS: u64 = 21_000;

#[derive(serde::Deserialize)]
struct Request {
    #[serde(rename = "do")]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    runs: u64,
    environment: Option<Environment>,
    case: Option<Case>,
}

#[derive(serde::Deserialize)]
struct Environment {
    fork: Option<String>,
    chain_id: Option<u64>,
    number: Option<u64>,
    timestamp: Option<u64>,
    gas_limit: Option<u64>,
    #[serde(default)]
    base_fee: Word,
}

#[derive(serde::Deserialize)]
struct Case {
    pre: BTreeMap<Address, Account>,
    caller: Address,
    to: Address,
    calldata: Option<Bytes>,
    gas: Word,
}

/// A message call whose changes are dropped, so that each run starts from the same state.
struct Program {
    evm: MainnetEvm<MainnetContext<CacheDB<EmptyDB>>>,
    call: TxEnv,
    intrinsic: u64,
}

impl Program {
    fn new(environment: Environment, case: Case) -> Result<Program> {
        let fork = environment.fork.as_deref().unwrap_or("cancun");
        let (rules, fraction) = rules(fork).ok_or(format!("unknown fork {fork:?}"))?;
        let mut database = CacheDB::new(EmptyDB::default());
        for (address, account) in &case.pre {
            database.insert_account_info(*address, info_of(account));
            for (slot, value) in account.slots()? {
                database.insert_account_storage(*address, slot, value)?;
            }
        }
        let chain = environment.chain_id.unwrap_or(1);
        let mut block = BlockEnv::default();
        block.number = U256::from(environment.number.unwrap_or(1));
        block.timestamp = U256::from(environment.timestamp.unwrap_or(1));
        block.gas_limit = environment.gas_limit.unwrap_or(30_000_000);
        block.basefee = environment.base_fee.u64();
        block.prevrandao = rules.is_enabled_in(SpecId::MERGE).then_some(B256::ZERO);
        block.blob_excess_gas_and_price =
            (fraction > 0).then(|| BlobExcessGasAndPrice::new(0, fraction));
        let evm = Context::mainnet()
            .modify_cfg_chained(|cfg| {
                cfg.set_spec_and_mainnet_gas_params(rules);
                cfg.chain_id = chain;
                cfg.disable_nonce_check = true;
                cfg.disable_balance_check = true;
                cfg.disable_block_gas_limit = true;
                cfg.disable_base_fee = true;
                cfg.disable_eip3607 = true;
                cfg.tx_gas_limit_cap = Some(u64::MAX);
            })
            .with_db(database)
            .with_block(block)
            .build_mainnet();
        let data = case.calldata.unwrap_or_default();
        let price = |byte: &u8| if *byte == 0 { 4 } else { 16 };
        let intrinsic = INTRINSIC_GAS + data.iter().map(price).sum::<u64>();
        let call = TxEnv {
            caller: case.caller,
            gas_limit: case.gas.u64() + intrinsic,
            gas_price: 0,
            kind: TxKind::Call(case.to),
            data,
            chain_id: Some(chain),
            ..TxEnv::default()
        };
        Ok(Program {
            evm,
            call,
            intrinsic,
        })
    }

    fn outcome(&mut self) -> Result<Value> {
        let result = self.evm.transact(self.call.clone())?.result;
        let output = result.output().cloned().unwrap_or_default();
        let shown = hex::encode_prefixed(&output[..output.len().min(OUTPUT_LIMIT)]);
        let used = result.gas().total_gas_spent() - self.intrinsic;
        Ok(json!({ "gas_used": used, "output": shown, "success": result.is_success() }))
    }

    fn run(&mut self) -> Result<()> {
        std::hint::black_box(self.evm.transact(self.call.clone())?);
        Ok(())
    }
}

/// The processor time of this thread, which is the only one.
fn thread_seconds() -> f64 {
    let mut spent = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `spent` is valid for writes during the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut spent) };
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

#[derive(Default)]
pub struct Bench {
    programs: HashMap<String, Program>,
}

impl Bench {
    pub fn answer(&mut self, line: &str) -> Result<Value> {
        let request: Request = serde_json::from_str(line)?;
        match request.kind.as_str() {
            "hello" => Ok(json!({ "version": crate::VERSION })),
            "prepare" => {
                let environment = request.environment.ok_or("no environment")?;
                let case = request.case.ok_or("no case")?;
                let mut program = Program::new(environment, case)?;
                let start = thread_seconds();
                let outcome = program.outcome()?;
                let seconds = thread_seconds() - start;
                self.programs.insert(request.name, program);
                Ok(json!({ "outcome": outcome, "seconds": seconds }))
            }
            "time" => {
                let program = self
                    .programs
                    .get_mut(&request.name)
                    .ok_or("no such program")?;
                let start = thread_seconds();
                for _ in 0..request.runs {
                    program.run()?;
                }
                Ok(json!({ "seconds": thread_seconds() - start }))
            }
            "forget" => {
                self.programs.remove(&request.name);
                Ok(json!({}))
            }
            other => Err(format!("unknown request {other:?}").into()),
        }
    }
}
