// Builds the bundle, the loader and the licences of what is bundled; `node build.mjs [FOLDER]`.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "..", "healkit", "notebook", "widgets", "static");
const common = { absWorkingDir: here, format: "esm", target: "es2022", charset: "utf8", minify: true, legalComments: "none" };

/** The packages whose files are in the bundle, by the longest `node_modules` path. */
function packages(inputs) {
  const names = new Set();
  for (const path of Object.keys(inputs)) {
    const match = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path);
    if (match) names.add(match[1]);
  }
  return [...names].sort();
}

function licence(name) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} ${version} has no licence file`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
}

mkdirSync(out, { recursive: true });
const { metafile } = await build({ ...common, entryPoints: ["src/main.js"], bundle: true, outfile: join(out, "panels.js"), loader: { ".css": "text" }, metafile: true, logLevel: "warning" });
await build({ ...common, entryPoints: ["src/loader.js"], outfile: join(out, "loader.js"), logLevel: "warning" });
const rule = `\n${"-".repeat(80)}\n\n`;
writeFileSync(join(out, "LICENSES.txt"), `panels.js contains these packages.\n${rule}${packages(metafile.inputs).map(licence).join(rule)}`);
