// Compiles the tests that are named and runs them: Node.js 20 knows no types.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const folder = mkdtempSync(join(import.meta.dirname, "..", "generated", "tests-"));
try {
  await build({ entryPoints: process.argv.slice(2), bundle: true, external: ["typescript"], platform: "node", format: "esm", outdir: folder, outExtension: { ".js": ".mjs" }, jsx: "automatic", jsxImportSource: "preact", logLevel: "warning" });
  const files = process.argv.slice(2).map((file) => join(folder, file.replace(/^.*\//, "").replace(/\.ts$/, ".mjs")));
  process.exitCode = spawnSync(process.execPath, ["--test", "--test-reporter=dot", ...files], { stdio: "inherit" }).status ?? 1;
} finally {
  rmSync(folder, { recursive: true });
}
