// Browser wallets: discovered with EIP-6963 or window.ethereum, used with EIP-1193.

const REJECTED = 4001;
const UNKNOWN_CHAIN = 4902;
const found = new Map(); // id -> {name, provider}

window.addEventListener("eip6963:announceProvider", (event) => {
  const { info, provider } = event.detail;
  found.set(info.uuid, { name: info.name, provider });
});

/** Returns all available wallets as [id, {name, provider}]. */
export function wallets() {
  window.dispatchEvent(new Event("eip6963:requestProvider"));
  const announced = [...found.values()].some(({ provider }) => provider === window.ethereum);
  if (window.ethereum && !announced) {
    found.set("injected", { name: "Browser wallet", provider: window.ethereum });
  }
  return [...found];
}

/** A connected account of a wallet on the shop's chain. */
export class Wallet {
  constructor(provider, account) {
    this.provider = provider;
    this.account = account;
  }

  /** Requests an account, and switches the wallet to the shop's chain if needed. */
  static async connect(provider, chain) {
    const [account] = await asked(provider, "eth_requestAccounts");
    if (!account) throw new Error("The wallet returned no account.");
    await onChain(provider, chain);
    return new Wallet(provider, account);
  }

  /** Returns the payer's signature of typed data as 0x-hex. */
  sign(typedData) {
    return asked(this.provider, "eth_signTypedData_v4", [this.account, JSON.stringify(typedData)]);
  }
}

async function onChain(provider, chain) {
  const current = await asked(provider, "eth_chainId");
  if (Number(current) === Number(chain.chainId)) return;
  const change = { method: "wallet_switchEthereumChain", params: [{ chainId: chain.chainId }] };
  try {
    await provider.request(change);
  } catch (error) {
    if (error?.code !== UNKNOWN_CHAIN) throw readable(error);
    await asked(provider, "wallet_addEthereumChain", [chain]);
  }
}

async function asked(provider, method, params = []) {
  try {
    return await provider.request({ method, params });
  } catch (error) {
    throw readable(error);
  }
}

function readable(error) {
  if (error?.code === REJECTED) return new Error("You declined in the wallet. Nothing was signed.");
  return new Error(`The wallet says: ${error?.message ?? "no reason given"}`);
}
