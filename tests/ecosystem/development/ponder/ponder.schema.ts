import { onchainTable } from "ponder";

export const seen = onchainTable("seen", (t) => ({
  id: t.text().primaryKey(),
  kind: t.text().notNull(),
  block: t.integer().notNull(),
  value: t.text().notNull(),
}));
