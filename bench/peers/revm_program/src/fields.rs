//! Fields of case files.

use revm::primitives::{Address, B256, Bytes, U256, hardfork::SpecId};
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Value;
use std::collections::BTreeMap;

/// A number of up to 256 bits: in JSON a number, or a string with hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Word(pub U256);

impl Word {
    pub fn parse(text: &str) -> Option<U256> {
        match text.strip_prefix("0x") {
            Some("") => Some(U256::ZERO),
            Some(digits) => U256::from_str_radix(digits, 16).ok(),
            None => U256::from_str_radix(text, 10).ok(),
        }
    }

    pub fn u64(self) -> u64 {
        self.0.saturating_to()
    }

    pub fn u128(self) -> u128 {
        self.0.saturating_to()
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let found = match &value {
            Value::Null => Some(U256::ZERO),
            Value::Number(number) => Word::parse(&number.to_string()),
            Value::String(text) => Word::parse(text),
            _ => None,
        };
        found
            .map(Word)
            .ok_or_else(|| D::Error::custom(format!("not a number: {value}")))
    }
}

#[derive(serde::Deserialize)]
pub struct Account {
    #[serde(default)]
    pub balance: Word,
    #[serde(default)]
    pub nonce: Word,
    pub code: Option<Bytes>,
    #[serde(default)]
    pub storage: Option<BTreeMap<String, Word>>,
}

impl Account {
    pub fn slots(&self) -> crate::Result<Vec<(U256, U256)>> {
        let storage = self.storage.iter().flatten();
        storage
            .map(|(slot, value)| Ok((Word::parse(slot).ok_or("bad slot")?, value.0)))
            .collect()
    }
}

#[derive(serde::Deserialize)]
pub struct Case {
    pub fork: String,
    pub block: Block,
    pub pre: BTreeMap<Address, Account>,
    pub transactions: Vec<Transaction>,
}

#[derive(serde::Deserialize)]
pub struct Block {
    pub number: u64,
    pub timestamp: u64,
    pub gas_limit: u64,
    pub coinbase: Address,
    pub difficulty: Word,
    pub prev_randao: Word,
    pub base_fee: Word,
    #[serde(default)]
    pub excess_blob_gas: u64,
    #[serde(default)]
    pub slot_number: u64,
}

#[derive(serde::Deserialize)]
pub struct Transaction {
    #[serde(rename = "type")]
    pub kind: u8,
    pub sender: Address,
    pub to: Option<Address>,
    pub data: Bytes,
    pub gas_limit: u64,
    pub nonce: u64,
    #[serde(default)]
    pub value: Word,
    #[serde(default)]
    pub gas_price: Word,
    #[serde(default)]
    pub max_fee_per_gas: Word,
    #[serde(default)]
    pub max_priority_fee_per_gas: Word,
    #[serde(default)]
    pub access_list: Vec<(Address, Vec<Word>)>,
    #[serde(default)]
    pub max_fee_per_blob_gas: Word,
    #[serde(default)]
    pub blob_versioned_hashes: Vec<B256>,
    #[serde(default)]
    pub authorization_list: Vec<(Word, Address, u64, u8, Word, Word)>,
}

/// The rules of a fork and its blob base fee update fraction; None for forks that revm lacks.
pub fn rules(fork: &str) -> Option<(SpecId, u64)> {
    Some(match fork.to_lowercase().as_str() {
        "frontier" => (SpecId::FRONTIER, 0),
        "homestead" => (SpecId::HOMESTEAD, 0),
        "tangerinewhistle" => (SpecId::TANGERINE, 0),
        "spuriousdragon" => (SpecId::SPURIOUS_DRAGON, 0),
        "byzantium" => (SpecId::BYZANTIUM, 0),
        "petersburg" => (SpecId::PETERSBURG, 0),
        "istanbul" => (SpecId::ISTANBUL, 0),
        "berlin" => (SpecId::BERLIN, 0),
        "london" => (SpecId::LONDON, 0),
        "paris" => (SpecId::MERGE, 0),
        "shanghai" => (SpecId::SHANGHAI, 0),
        "cancun" => (SpecId::CANCUN, 3_338_477),
        "prague" => (SpecId::PRAGUE, 5_007_716),
        "osaka" => (SpecId::OSAKA, 5_007_716),
        "bpo1" => (SpecId::OSAKA, 8_346_193),
        "bpo2" => (SpecId::OSAKA, 11_684_671),
        "amsterdam" => (SpecId::AMSTERDAM, 11_684_671),
        _ => return None,
    })
}
