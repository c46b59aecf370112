// Tests viem's actions for the OP stack: fees, deposits, withdrawals.
import { createPublicClient, createWalletClient, defineChain, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import {
  chainConfig,
  getWithdrawals,
  publicActionsL1,
  publicActionsL2,
  walletActionsL1,
  walletActionsL2,
} from "viem/op-stack";
import { NOBODY, main, privateKey, program, url } from "./common.mjs";

const PORTAL = "0x00000000000000000000000000000000000000f0";
const L1 = { id: 900, name: "L1", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 } };
const chain = defineChain({
  ...chainConfig,
  id: 31337,
  sourceId: L1.id,
  name: "fastevm",
  nativeCurrency: L1.nativeCurrency,
  rpcUrls: { default: { http: [url] } },
  contracts: { ...chainConfig.contracts, portal: { [L1.id]: { address: PORTAL } } },
});
const account = privateKeyToAccount(privateKey);
const from = account.address;
const options = { chain, transport: http(url), pollingInterval: 50 };
const node = createPublicClient(options).extend(publicActionsL2());
const below = createPublicClient(options).extend(publicActionsL1());
const wallet = createWalletClient({ account, ...options }).extend(walletActionsL2());
const receipt = (hash, more) => node.waitForTransactionReceipt({ hash, ...more });
const one = { account, to: NOBODY, value: 1n };
const counter = [
  { type: "function", name: "count", inputs: [], outputs: [], stateMutability: "nonpayable" },
];
const call = { abi: counter, address: NOBODY, functionName: "count", account };

// Makes the deposit that the portal on L1 would log, with the simulated L1.
const deposit = ({ to, mint, value, gas, data, isCreation }) =>
  node.request({
    method: "fastevm_deposit",
    params: [
      {
        from,
        to: isCreation ? null : to,
        mint: `0x${(mint ?? 0n).toString(16)}`,
        value: `0x${(value ?? mint ?? 0n).toString(16)}`,
        gas: `0x${gas.toString(16)}`,
        data: data ?? "0x",
      },
    ],
  });

program("pay and see the fee", async () => {
  const { status, l1Fee, l1GasPrice, l1BaseFeeScalar } = await receipt(await wallet.sendTransaction(one));
  return [status, l1Fee > 0n, l1GasPrice > 0n, l1BaseFeeScalar];
});
program("fees of L1", async () => [
  (await node.getL1BaseFee()) > 0n,
  (await node.estimateL1Gas(one)) > 0n,
  (await node.estimateL1Fee(one)) > 0n,
  await node.estimateOperatorFee(one),
]);
program("fees in all", async () => {
  const [fee, gas] = await Promise.all([node.estimateTotalFee(one), node.estimateTotalGas(one)]);
  return [fee > (await node.estimateL1Fee(one)), gas > 21_000n];
});
program("fees of a contract", async () => [
  (await node.estimateContractL1Fee(call)) > 0n,
  (await node.estimateContractL1Gas(call)) > 0n,
  (await node.estimateContractTotalFee(call)) > 0n,
  (await node.estimateContractTotalGas(call)) > 0n,
]);
program("deposit", async () => {
  const before = await node.getBalance({ address: NOBODY, blockTag: "pending" });
  const { request } = await node.buildDepositTransaction({ mint: 5n, to: NOBODY, account });
  const { status, type, l1Fee } = await receipt(await deposit(request));
  return [status, type, l1Fee, (await node.getBalance({ address: NOBODY, blockTag: "pending" })) - before];
});
program("deposit a contract", async () => {
  const data = "0x635f5fa0005f526004601cf3";
  const { request } = await node.buildDepositTransaction({ isCreation: true, data, account });
  const { contractAddress } = await receipt(await deposit(request));
  return node.getCode({ address: contractAddress, blockTag: "pending" });
});
program("what a block begins with", async () => {
  const { transactions } = await node.getBlock({ blockNumber: 1n, includeTransactions: true });
  const { type, mint, sourceHash, isSystemTx } = transactions[0];
  return [type, mint, sourceHash.length, isSystemTx];
});
program("call the portal of L1", async () => {
  const L1Wallet = createWalletClient({ account, chain, transport: http(url) }).extend(walletActionsL1());
  const { request } = await node.buildDepositTransaction({ mint: 5n, to: NOBODY, account });
  const hash = await L1Wallet.depositTransaction({ request, targetChain: chain, portalAddress: PORTAL });
  await receipt(hash);
  const { input, value } = await node.getTransaction({ hash });
  return [input.slice(0, 10), value];
});
// viem simulates the withdrawal on L1 as the zero address, which has 1 wei here.
program("withdraw", async () => {
  const { request } = await below.buildInitiateWithdrawal({ to: NOBODY, value: 1n, account });
  const hash = await wallet.initiateWithdrawal({ account, request });
  const found = await receipt(hash, { confirmations: 2 });
  const [withdrawal] = getWithdrawals(found);
  const output = { l2BlockNumber: found.blockNumber };
  const proof = await node.buildProveWithdrawal({ withdrawal, output, account });
  const block = await node.getBlock({ blockNumber: found.blockNumber });
  return [
    request.value,
    withdrawal.value,
    withdrawal.sender === from,
    proof.withdrawalProof.length > 0,
    proof.outputRootProof.messagePasserStorageRoot === block.withdrawalsRoot,
  ];
});
await main();
