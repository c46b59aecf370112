// Tests the effect of every function of hardhat-network-helpers, for Hardhat 2 and for Hardhat 3.
import assert from "node:assert/strict";

const STRANGER = "0x00000000000000000000000000000000000000c1";
const NOBODY = "0x00000000000000000000000000000000000000b0";
const ETHER = 10n ** 18n;

// helpers: the library. ask(method, ...params): sends a request through Hardhat's own provider.
export async function tellAll(helpers, ask) {
  const block = async (tag = "latest") => ask("eth_getBlockByNumber", tag, false);
  const [owner] = await ask("eth_accounts");
  const send = (from = owner) => ask("eth_sendTransaction", { from, to: NOBODY, value: "0x1" });
  // Waits for the receipt, because some nodes answer before they mine the transaction.
  const pay = async (from = owner) => {
    const hash = await send(from);
    while ((await ask("eth_getTransactionReceipt", hash)) === null);
    return hash;
  };
  const { time } = helpers;
  const cases = {
    mine: async () => {
      const before = await time.latestBlock();
      await helpers.mine();
      assert.equal(await time.latestBlock(), before + 1);
    },
    "mine many": async () => {
      const before = await time.latestBlock();
      await helpers.mine(1000);
      assert.equal(await time.latestBlock(), before + 1000);
    },
    "mine with an interval": async () => {
      const before = await time.latest();
      await helpers.mine(5, { interval: 60 });
      assert.equal((await time.latest()) - before >= 4 * 60, true);
      const last = await time.latestBlock();
      const stamp = async (number) => Number((await block(`0x${number.toString(16)}`)).timestamp);
      assert.equal((await stamp(last)) - (await stamp(last - 1)), 60);
    },
    mineUpTo: async () => {
      const aim = (await time.latestBlock()) + 7;
      await helpers.mineUpTo(aim);
      assert.equal(await time.latestBlock(), aim);
    },
    setBalance: async () => {
      await helpers.setBalance(STRANGER, 3n * ETHER);
      assert.equal(BigInt(await ask("eth_getBalance", STRANGER, "latest")), 3n * ETHER);
    },
    setCode: async () => {
      await helpers.setCode(STRANGER, "0x6001");
      assert.equal(await ask("eth_getCode", STRANGER, "latest"), "0x6001");
      await helpers.setCode(STRANGER, "0x");
    },
    setNonce: async () => {
      await helpers.setNonce(STRANGER, 42);
      assert.equal(await ask("eth_getTransactionCount", STRANGER, "latest"), "0x2a");
    },
    setStorageAt: async () => {
      await helpers.setStorageAt(STRANGER, 5, 7);
      assert.equal(BigInt(await ask("eth_getStorageAt", STRANGER, "0x5", "latest")), 7n);
    },
    getStorageAt: async () => {
      await helpers.setStorageAt(STRANGER, 6, 8);
      assert.equal(BigInt(await helpers.getStorageAt(STRANGER, 6)), 8n);
    },
    impersonateAccount: async () => {
      await helpers.setBalance(STRANGER, ETHER);
      await helpers.impersonateAccount(STRANGER);
      const { from } = await ask("eth_getTransactionByHash", await pay(STRANGER));
      assert.equal(from, STRANGER);
    },
    stopImpersonatingAccount: async () => {
      await helpers.setBalance(STRANGER, ETHER);
      await helpers.impersonateAccount(STRANGER);
      await helpers.stopImpersonatingAccount(STRANGER);
      await assert.rejects(send(STRANGER));
    },
    takeSnapshot: async () => {
      const snapshot = await helpers.takeSnapshot();
      const before = await time.latestBlock();
      await helpers.mine(3);
      await snapshot.restore();
      assert.equal(await time.latestBlock(), before);
    },
    "restore twice": async () => {
      const snapshot = await helpers.takeSnapshot();
      const balance = await ask("eth_getBalance", NOBODY, "latest");
      for (const _ of [1, 2]) {
        await pay();
        await snapshot.restore();
        assert.equal(await ask("eth_getBalance", NOBODY, "latest"), balance);
      }
    },
    loadFixture: async () => {
      let runs = 0;
      const fixture = async () => {
        runs += 1;
        await pay();
        return await time.latestBlock();
      };
      const first = await helpers.loadFixture(fixture);
      await helpers.mine(4);
      assert.equal(await helpers.loadFixture(fixture), first);
      assert.deepEqual([runs, await time.latestBlock()], [1, first]);
    },
    clearSnapshots: async () => {
      let runs = 0;
      const fixture = async () => {
        runs += 1;
      };
      await helpers.loadFixture(fixture);
      await helpers.clearSnapshots();
      await helpers.loadFixture(fixture);
      assert.equal(runs, 2);
    },
    setCoinbase: async () => {
      await helpers.setCoinbase(STRANGER);
      await helpers.mine();
      assert.equal((await block()).miner, STRANGER);
    },
    setBlockGasLimit: async () => {
      await helpers.setBlockGasLimit(29_000_001);
      await helpers.mine();
      assert.equal(Number((await block()).gasLimit), 29_000_001);
    },
    setNextBlockBaseFeePerGas: async () => {
      await helpers.setNextBlockBaseFeePerGas(7_000_000_000n);
      await helpers.mine();
      assert.equal(BigInt((await block()).baseFeePerGas), 7_000_000_000n);
    },
    setPrevRandao: async () => {
      await helpers.setPrevRandao(1234);
      await helpers.mine();
      assert.equal(BigInt((await block()).mixHash), 1234n);
    },
    dropTransaction: async () => {
      await ask("evm_setAutomine", false);
      try {
        const hash = await send();
        assert.equal(await helpers.dropTransaction(hash), true);
        assert.equal(await ask("eth_getTransactionByHash", hash), null);
      } finally {
        await ask("evm_setAutomine", true);
      }
    },
    "time.latest": async () => {
      assert.equal(await time.latest(), Number((await block()).timestamp));
    },
    "time.latestBlock": async () => {
      assert.equal(await time.latestBlock(), Number(await ask("eth_blockNumber")));
    },
    "time.increase": async () => {
      const before = await time.latest();
      assert.equal(await time.increase(3600), before + 3600);
      assert.equal(await time.latest(), before + 3600);
    },
    "time.increaseTo": async () => {
      const aim = (await time.latest()) + 10_000;
      await time.increaseTo(aim);
      assert.equal(await time.latest(), aim);
    },
    "time.setNextBlockTimestamp": async () => {
      const aim = (await time.latest()) + 500;
      await time.setNextBlockTimestamp(aim);
      await pay();
      assert.equal(await time.latest(), aim);
    },
    "time.setNextBlockTimestamp and an estimate": async () => {
      // TIMESTAMP PUSH0 MSTORE PUSH1 32 PUSH0 RETURN
      await helpers.setCode(STRANGER, "0x425f5260205ff3");
      const aim = (await time.latest()) + 700;
      await time.setNextBlockTimestamp(aim);
      assert.equal(Number(await ask("eth_call", { to: STRANGER }, "pending")), aim);
      await helpers.mine();
      await helpers.setCode(STRANGER, "0x");
    },
    "time.increase again and again": async () => {
      const before = await time.latest();
      for (const _ of [1, 2, 3]) await time.increase(time.duration.days(1));
      assert.equal(await time.latest(), before + 3 * 86_400);
    },
    "time.duration": async () => {
      assert.equal(Number(time.duration.weeks(1)), 7 * 86_400);
    },
    "a refused timestamp": async () => {
      await assert.rejects(time.setNextBlockTimestamp((await time.latest()) - 1));
    },
  };
  if (helpers.reset) {
    cases.reset = async () => {
      await pay();
      await helpers.reset();
      assert.equal(await time.latestBlock(), 0);
    };
  } else {
    cases["getStorageAt of a past block"] = async () => {
      const number = await time.latestBlock();
      await helpers.setStorageAt(STRANGER, 9, 1);
      await helpers.mine();
      assert.equal(BigInt(await helpers.getStorageAt(STRANGER, 9, "latest")), 1n);
      assert.equal(await time.latestBlock(), number + 1);
    };
  }
  for (const [name, run] of Object.entries(cases)) {
    let told = { name, value: true };
    try {
      await run();
    } catch (error) {
      told = { name, error: String(error.message ?? error) };
    }
    console.log(JSON.stringify(told));
  }
}
