// Names of addresses, functions, events and errors: well-known ones, those of the node's own files,
// and those that the user gave, which come first.

import { decode, parseAbi, selectorOf, topicOf } from "./abi.js";
import { contractOf } from "./contracts.js";
import { live } from "./live.js";

const KNOWN_ADDRESSES = {
  "0x4e59b44847b379578588920ca78fbf26c0b4956c": "CREATE2 deployer",
  "0xca11bde05977b3631167028862be2a173976ca11": "Multicall3",
  "0x000f3df6d732807ef1319fb7b8bb8522d0beac02": "Beacon roots",
  "0x0000f90827f1c53a10cb7a02335b175320002935": "History storage",
  "0x00000961ef480eb55e80d19ad83579a64c007002": "Withdrawal requests",
  "0x0000bbddc7ce488642fb579f8b00f3a590007251": "Consolidation requests",
  "0xfffffffffffffffffffffffffffffffffffffffe": "System",
  "0xdeaddeaddeaddeaddeaddeaddeaddeaddead0001": "L1 attributes depositor",
  "0x4200000000000000000000000000000000000015": "L1Block",
  "0x000000000000000000636f6e736f6c652e6c6f67": "console",
};
const PRECOMPILES = ["ECRECOVER", "SHA256", "RIPEMD160", "IDENTITY", "MODEXP", "BN254_ADD",
  "BN254_MUL", "BN254_PAIRING", "BLAKE2F", "POINT_EVALUATION", "BLS12_G1ADD", "BLS12_G1MSM",
  "BLS12_G2ADD", "BLS12_G2MSM", "BLS12_PAIRING_CHECK", "BLS12_MAP_FP_TO_G1", "BLS12_MAP_FP2_TO_G2"];
PRECOMPILES.forEach((name, i) => {
  KNOWN_ADDRESSES[`0x${(i + 1).toString(16).padStart(40, "0")}`] = name;
});
KNOWN_ADDRESSES[`0x${"100".padStart(40, "0")}`] = "P256VERIFY";

const COMMON = parseAbi(`
transfer(address to, uint256 value) returns (bool)
approve(address spender, uint256 value) returns (bool)
transferFrom(address from, address to, uint256 value) returns (bool)
balanceOf(address owner) view returns (uint256)
allowance(address owner, address spender) view returns (uint256)
totalSupply() view returns (uint256)
name() view returns (string)
symbol() view returns (string)
decimals() view returns (uint8)
owner() view returns (address)
transferOwnership(address newOwner)
renounceOwnership()
mint(address to, uint256 amount)
mint(uint256 amount)
burn(uint256 amount)
burn(address from, uint256 amount)
deposit() payable
withdraw(uint256 amount)
deposit(uint256 assets, address receiver) returns (uint256 shares)
withdraw(uint256 assets, address receiver, address owner) returns (uint256 shares)
permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)
transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)
safeTransferFrom(address from, address to, uint256 tokenId)
safeTransferFrom(address from, address to, uint256 tokenId, bytes data)
safeTransferFrom(address from, address to, uint256 id, uint256 amount, bytes data)
setApprovalForAll(address operator, bool approved)
ownerOf(uint256 tokenId) view returns (address)
tokenURI(uint256 tokenId) view returns (string)
multicall(bytes[] data) returns (bytes[] results)
multicall(uint256 deadline, bytes[] data) returns (bytes[] results)
aggregate3((address target, bool allowFailure, bytes callData)[] calls) payable returns ((bool success, bytes returnData)[] returnData)
execute(bytes commands, bytes[] inputs, uint256 deadline) payable
swapExactTokensForTokens(uint256 amountIn, uint256 amountOutMin, address[] path, address to, uint256 deadline) returns (uint256[] amounts)
swapExactETHForTokens(uint256 amountOutMin, address[] path, address to, uint256 deadline) payable returns (uint256[] amounts)
initialize()
upgradeTo(address newImplementation)
upgradeToAndCall(address newImplementation, bytes data) payable
handleOps((address sender, uint256 nonce, bytes initCode, bytes callData, bytes32 accountGasLimits, uint256 preVerificationGas, bytes32 gasFees, bytes paymasterAndData, bytes signature)[] ops, address beneficiary)
increment()
setNumber(uint256 newNumber)
number() view returns (uint256)
event Transfer(address indexed from, address indexed to, uint256 value)
event Transfer(address indexed from, address indexed to, uint256 indexed tokenId)
event Approval(address indexed owner, address indexed spender, uint256 value)
event ApprovalForAll(address indexed owner, address indexed operator, bool approved)
event OwnershipTransferred(address indexed previousOwner, address indexed newOwner)
event Deposit(address indexed account, uint256 value)
event Withdrawal(address indexed account, uint256 value)
event TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value)
event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)
event Upgraded(address indexed implementation)
error Error(string reason)
error Panic(uint256 code)
error OwnableUnauthorizedAccount(address account)
error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)
error ERC20InsufficientAllowance(address spender, uint256 allowance, uint256 needed)
error ERC20InvalidReceiver(address receiver)
error ERC721NonexistentToken(uint256 tokenId)
`);
const PANICS = { 0x01: "assertion failed", 0x11: "arithmetic overflow", 0x12: "division by zero",
  0x21: "no such enum value", 0x22: "storage is damaged", 0x31: "pop of an empty array",
  0x32: "index out of bounds", 0x41: "too much memory", 0x51: "call of an empty function" };

const STORE = "fastevm-contracts"; // of all chains: {"chain:address": {name, abi}}
const selectors = new Map(); // selector -> entries
const topics = new Map();
export const accountNames = new Map(); // address -> name, of the node's own accounts
export const impersonated = new Set(); // addresses for which the node signs without a key

// sends the event "names" when functions, events or contracts get names
export const learned = new EventTarget();

/** Register the functions, events and errors of an ABI. */
export function learn(entries) {
  for (const entry of entries) {
    const [table, key] = entry.type === "event" ? [topics, topicOf(entry)]
      : [selectors, entry.type === "constructor" ? "" : selectorOf(entry)];
    if (!table.has(key)) table.set(key, []);
    if (!table.get(key).includes(entry)) table.get(key).unshift(entry);
  }
}
learn(COMMON);

function stored() {
  try {
    return JSON.parse(localStorage.getItem(STORE)) ?? {};
  } catch {
    return {}; // the browser's storage is switched off, or another program wrote the text
  }
}

const keyOf = (address) => `${live.chain?.id}:${address.toLowerCase()}`;

/** Learn the functions of all contracts that the user described on this chain. */
export function learnStored() {
  for (const [key, { abi }] of Object.entries(stored())) {
    if (key.startsWith(`${live.chain?.id}:`) && abi) {
      try {
        learn(parseAbi(abi));
      } catch {
        // written by another version
      }
    }
  }
}

/** The user's name of a contract, and the text of its ABI. */
export const described = (address) => stored()[keyOf(address)] ?? { name: "", abi: "" };

/** Keep a contract's name and the text of its ABI. An Error says what is wrong with the text. */
export function describe(address, name, abi) {
  const entries = abi.trim() ? parseAbi(abi) : [];
  learn(entries);
  const all = stored();
  all[keyOf(address)] = { name: name.trim(), abi };
  if (!name.trim() && !abi.trim()) delete all[keyOf(address)];
  localStorage.setItem(STORE, JSON.stringify(all));
  learned.dispatchEvent(new Event("names"));
  return entries;
}

/** The name of an address, or null. */
export function nameOf(address) {
  const lower = address.toLowerCase();
  return described(lower).name || accountNames.get(lower) || contractOf(lower)?.name
    || KNOWN_ADDRESSES[lower] || (impersonated.has(lower) ? "impersonated" : null);
}

/** All names of this chain: [name, address]. */
export function allNames() {
  const own = Object.entries(stored())
    .filter(([key, { name }]) => key.startsWith(`${live.chain?.id}:`) && name)
    .map(([key, { name }]) => [name, key.split(":")[1]]);
  const known = Object.entries(KNOWN_ADDRESSES).map(([address, name]) => [name, address]);
  return [...own, ...[...accountNames].map(([address, name]) => [name, address]), ...known];
}

/** The entries of a contract's ABI: the user's, else those of the node's files. */
export function abiOf(address) {
  if (!address) return [];
  try {
    const { abi } = described(address);
    if (abi) return parseAbi(abi);
  } catch {
    // kept by another version of the page
  }
  return contractOf(address)?.entries ?? [];
}

function fitting(entries, read) {
  for (const entry of entries) {
    try {
      return { entry, values: read(entry) };
    } catch {
      // another signature with the same hash, or malformed data
    }
  }
  return null;
}

/** A call's function and values, {entry, values}; null if it is not known. */
export function decodeInput(address, input) {
  if (!input || input.length < 10) return null;
  const selector = input.slice(0, 10);
  const own = abiOf(address).filter((e) => e.type === "function" && selectorOf(e) === selector);
  const common = (selectors.get(selector) ?? []).filter((entry) => entry.type === "function");
  return fitting([...own, ...common], (entry) => decode(entry.inputs, input.slice(10)));
}

/** An event and its values in order; null if it is not known. */
export function decodeLog({ topics: hashes, data }) {
  return fitting(topics.get(hashes[0]) ?? [], (entry) => {
    const indexed = entry.inputs.filter((input) => input.indexed);
    if (indexed.length !== hashes.length - 1) throw new Error("other topics");
    const rest = decode(entry.inputs.filter((input) => !input.indexed), data.slice(2));
    let at = 0;
    return entry.inputs.map((input) => {
      if (!input.indexed) return rest.shift();
      const topic = hashes[++at];
      const isHash = /^(string|bytes|tuple)$|\]$/.test(input.type);
      return isHash ? topic : decode([input], topic.slice(2))[0];
    });
  });
}

/** The reason of a revert: a text, a panic, an error of the contract, or its bytes. */
export function revertReason(data) {
  if (!data || data === "0x") return "reverted without a reason";
  const known = (selectors.get(data.slice(0, 10)) ?? []).filter((entry) => entry.type === "error");
  const found = fitting(known, (entry) => decode(entry.inputs, data.slice(10)));
  if (!found) return `reverted with ${data.length > 138 ? `${data.slice(0, 138)}…` : data}`;
  const { entry, values } = found;
  if (entry.name === "Error") return values[0];
  if (entry.name === "Panic") return PANICS[Number(values[0])] ?? `panic ${values[0]}`;
  return `${entry.name}(${values.join(", ")})`;
}

/** Why a call of a trace failed: the reason of its revert, or what halted it. */
export function failureOf({ error, output }) {
  return error === "execution reverted" ? revertReason(output) : error;
}

/** A short name of a call: its function, its selector, `create` or `ether`. */
export function methodName(transaction) {
  const input = transaction.input ?? "0x";
  if (!transaction.to) return "create";
  if (input === "0x") return "ether";
  const found = selectors.get(input.slice(0, 10))?.find((entry) => entry.type === "function");
  return found?.name ?? input.slice(0, 10);
}
