#!/usr/bin/env node
// Runs npm's Solidity compiler as forge calls it: with `--version`, or from standard JSON input to JSON output.
const { readFileSync } = require("node:fs");
const { join } = require("node:path");

const { version } = require(join(__dirname, "node_modules/solc/package.json"));
if (process.argv.includes("--version")) {
  console.log(`solc, the solidity compiler commandline interface\nVersion: ${version}+commit.00000000.Linux.g++`);
} else {
  const solc = require(join(__dirname, "node_modules/solc"));
  console.log(solc.compile(readFileSync(0, "utf8")));
}
