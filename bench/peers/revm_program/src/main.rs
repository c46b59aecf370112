//! Serves revm over standard input and output, a line of JSON for each request and answer.
//!
//!     on-revm differential    runs the transactions of a case on its state
//!     on-revm bench           prepares programs and times them

mod bench;
mod differential;
mod fields;
mod world;

use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The version of the crate, as Cargo.toml pins it.
pub const VERSION: &str = "43.0.3";

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn serve(failed: &str, mut answer: impl FnMut(&str) -> Result<Value>) -> Result<()> {
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let found = match catch_unwind(AssertUnwindSafe(|| answer(&line))) {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => json!({ failed: error.to_string() }),
            Err(_) => json!({ failed: "panic" }),
        };
        serde_json::to_writer(&mut output, &found)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("differential") => {
            println!("{}", json!({ "peer": format!("revm {VERSION}") }));
            serve("failure", differential::run)
        }
        Some("bench") => {
            let mut bench = bench::Bench::default();
            serve("error", |line| bench.answer(line))
        }
        _ => Err("usage: on-revm differential|bench".into()),
    }
}
