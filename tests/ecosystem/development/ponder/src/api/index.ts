import { Hono } from "hono";
import { db } from "ponder:api";
import schema from "ponder:schema";

const app = new Hono();
app.get("/seen", async (context) => context.json(await db.select().from(schema.seen)));
export default app;
