// FOR DEMONSTRATIONS ONLY: a wallet whose keys are on the server and public.
//
// It behaves like an injected wallet (EIP-1193, announced with EIP-6963), so that the pages treat all
// wallets alike. Never use it in a real shop.

import { clock, countdown, element, short } from "./dom.js";
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
    const typedData = JSON.parse(text);
    const shop = await get("/api/shop");
    const { title, verb, content } = inWords(typedData, shop);
    await agreed(title, verb, content, raw(typedData));
    const answer = await post("/demo-wallet/sign", { account, typedData });
    return answer.signature;
  }
}

/** Describes a message for the user: who pays whom how much, and until when. */
function inWords({ primaryType, domain, message }, { symbol, decimals, name }) {
  const row = (title, ...value) => [element("dt", { textContent: title }), element("dd", {}, ...value)];
  const chain = row("On", `chain ${domain.chainId}, token ${domain.name} `, short(domain.verifyingContract));
  if (primaryType === "CancelAuthorization") {
    return {
      title: "Cancel this payment for good?",
      verb: "Cancel it",
      content: element("div", {},
        element("p", {}, "After this the shop cannot collect the payment any more. It costs you nothing."),
        element("dl", { className: "terms" }, ...row("Your account", short(message.authorizer)),
          ...row("Payment", short(message.nonce)), ...chain)),
    };
  }
  const amount = `${money(message.value, decimals)} ${symbol}`;
  const permit = primaryType === "Permit"; // for a contract of the shop, with an inclusive deadline
  const until = permit ? Number(message.deadline) + 1 : Number(message.validBefore);
  return {
    title: `Allow a payment of ${amount}?`,
    verb: "Sign",
    content: element("div", {},
      element("p", { className: "sum" }, amount),
      element("dl", { className: "terms" },
        ...row("To", permit ? `${name}'s collector ` : `${name} `, short(permit ? message.spender : message.to)),
        ...row("From", "your account ", short(permit ? message.owner : message.from)),
        ...row("Until", `${clock(until)}, ends `, countdown(until)),
        ...row("How often", "once, exactly this amount"),
        ...chain),
      element("p", { className: "hint" }, "Signing moves nothing and costs nothing.")),
  };
}

/** Returns the message exactly as it is signed. */
function raw({ primaryType, message }) {
  const rows = Object.entries(message).flatMap(([name, value]) => [
    element("dt", { textContent: name }),
    element("dd", {}, element("code", { textContent: value })),
  ]);
  return element("details", {}, element("summary", {}, `As it is signed: ${primaryType}`),
    element("dl", { className: "terms" }, ...rows));
}

/** Formats token units as a decimal amount. */
function money(units, decimals) {
  const digits = units.padStart(decimals + 1, "0");
  const part = digits.slice(-decimals).replace(/0+$/, "").padEnd(2, "0");
  return `${digits.slice(0, -decimals)}.${part}`;
}

function failure(code, message) {
  return Object.assign(new Error(message), { code });
}

/** Resolves to the form's values if the user agrees; otherwise throws a wallet's error 4001. */
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
