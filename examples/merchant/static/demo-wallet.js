// FOR DEMONSTRATIONS ONLY: a wallet whose keys are on the server and known to everybody.
//
// It behaves as an injected wallet does (EIP-1193, announced by EIP-6963), so that the pages have one
// path for all wallets. A shop that is no demonstration leaves this file out.

import { element } from "./dom.js";
import { confirmed } from "./page.js";
import { get, post } from "./server.js";

class DemoWallet {
  #accounts = null;
  #chosen = null;

  async request({ method, params = [] }) {
    switch (method) {
      case "eth_chainId":
        return (await this.#load()).chainId;
      case "eth_accounts":
        return this.#chosen ? [this.#chosen] : [];
      case "eth_requestAccounts":
        return [await this.#choose()];
      case "eth_signTypedData_v4":
        return this.#sign(...params);
      default:
        throw failure(4200, `the test wallet has no ${method}`);
    }
  }

  async #load() {
    this.#accounts ??= await get("/demo-wallet/accounts");
    return this.#accounts;
  }

  async #choose() {
    const { accounts } = await this.#load();
    const choices = accounts.map(({ name, address }, index) =>
      element(
        "label",
        { className: "choice" },
        element("input", { type: "radio", name: "account", value: address, checked: index === 0 }),
        element("span", {}, element("strong", {}, name), element("code", {}, address)),
      ),
    );
    const form = await agreed("Which account?", "Connect", element("fieldset", {},
      element("legend", { textContent: "Accounts of the test wallet" }), ...choices));
    this.#chosen = form.get("account");
    return this.#chosen;
  }

  async #sign(account, text) {
    const { primaryType, domain, message } = JSON.parse(text);
    const rows = Object.entries(message).flatMap(([name, value]) => [
      element("dt", { textContent: name }),
      element("dd", {}, element("code", { textContent: value })),
    ]);
    await agreed(`Sign ${primaryType}?`, "Sign", element("div", {},
      element("p", { textContent: `For ${domain.name} on chain ${domain.chainId}.` }),
      element("dl", { className: "terms" }, ...rows)));
    const told = await post("/demo-wallet/sign", { account, typedData: JSON.parse(text) });
    return told.signature;
  }
}

function failure(code, message) {
  return Object.assign(new Error(message), { code });
}

/** The form's values once the reader agreed; throws what a wallet throws if not. */
async function agreed(title, verb, ...content) {
  const notice = element("p", {
    className: "notice",
    textContent: "Test wallet: demonstration only",
  });
  const choices = { title, verb, refusal: "Decline", className: "wallet" };
  const form = await confirmed(choices, notice, ...content);
  if (!form) throw failure(4001, "the user declined");
  return form;
}

const provider = new DemoWallet();
const icon = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>";
const info = Object.freeze({
  uuid: "5f2c0c5e-6d5b-4a5e-9d52-3f0f7e3f8f11",
  name: "Test wallet (demonstration)",
  icon,
  rdns: "demo-wallet.invalid",
});
const announce = () =>
  window.dispatchEvent(
    new CustomEvent("eip6963:announceProvider", { detail: Object.freeze({ info, provider }) }),
  );

window.ethereum ??= provider;
window.addEventListener("eip6963:requestProvider", announce);
announce();
