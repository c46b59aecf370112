import { ponder } from "ponder:registry";
import { seen } from "ponder:schema";

function keep(kind: string, value: (event: any) => unknown) {
  return async ({ event, context }: any) => {
    const block = Number(event.block.number);
    await context.db.insert(seen).values({ id: event.id, kind, block, value: String(value(event)) });
  };
}

ponder.on("Every:block", keep("block", (event) => event.block.hash));
ponder.on("Token:Transfer", keep("event", (event) => event.args.value));
ponder.on("Token.transfer()", keep("call", (event) => event.args[1]));
ponder.on("Payer:transfer:from", keep("payment", (event) => event.transfer.value));
ponder.on("Payer:transaction:from", keep("transaction", (event) => event.transaction.hash));
