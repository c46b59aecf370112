// The node under test is the only network. No compiler is downloaded.
module.exports = {
  solidity: "0.8.28",
  defaultNetwork: "target",
  networks: { target: { url: process.env.NODE_URL ?? "http://127.0.0.1:8545" } },
};
