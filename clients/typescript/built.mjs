// Before npm packs: what is packed has to be there, and no older than what it is made of.
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

const here = import.meta.dirname;
const sources = readdirSync(join(here, "src"), { recursive: true }).filter((name) => name.endsWith(".ts"));
const newest = Math.max(...sources.map((name) => statSync(join(here, "src", name)).mtimeMs));
const built = ["dist/index.js", "dist/node.js", "dist/generated/api.d.ts", "LICENSE"].map((name) => join(here, name));
const isFresh = built.every((file) => existsSync(file)) && statSync(built[0]).mtimeMs >= newest;
if (!isFresh) {
  process.stderr.write("dist/ is missing or older than src/: python clients/typescript/build_client.py\n");
  process.exitCode = 1;
}
