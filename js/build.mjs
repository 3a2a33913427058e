// Builds all that the browser runs, with the licences of what is in it; `node build.mjs [FOLDER OF THE PACKAGE]`.
//
// src/main.js   → faces/notebook/widgets/static/  the panels, for a page without the extension
// src/web.js    → faces/server/static/            the stand-alone page
// lab/src/      → labextension/             JupyterLab's extension: bundled by esbuild, wrapped by @jupyterlab/builder
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { problems } from "./lint.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "..", "healkit");
const common = { absWorkingDir: here, format: "esm", target: "es2022", charset: "utf8", minify: true, legalComments: "none", logLevel: "warning", metafile: true };

/** The packages whose files are in a bundle, by their names, with what their licence is. */
function licences({ inputs }) {
  const found = new Map();
  for (const path of Object.keys(inputs)) {
    const match = /^(?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path);
    if (match) found.set(match[1], licence(join(here, match[0]), match[1]));
  }
  return [...found.keys()].sort().map((name) => found.get(name));
}

function licence(folder, name) {
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} ${version} has no licence file`);
  return { name, versionInfo: version, licenseId: license, extractedText: readFileSync(join(folder, file), "utf8").trim() };
}

const rule = `\n${"-".repeat(80)}\n\n`;
const written = ({ name, versionInfo, licenseId, extractedText }) => `${name} ${versionInfo} (${licenseId})\n\n${extractedText}\n`;

/** One file of all that an entry needs, and the licences of the packages in it; returns the file. */
async function bundle(entry, folder, name) {
  mkdirSync(folder, { recursive: true });
  const { metafile } = await build({ ...common, entryPoints: [entry], bundle: true, loader: { ".css": "text" }, outfile: join(folder, name) });
  writeFileSync(join(folder, "LICENSES.txt"), `${name} contains these packages.\n${rule}${licences(metafile).map(written).join(rule)}`);
  return readFileSync(join(folder, name));
}

/** The extension, with the panels of that hash. What JupyterLab shares (lab/core/package.json) is not in it. */
async function lab(hash) {
  const folder = join(here, "lab");
  const shared = Object.keys(JSON.parse(readFileSync(join(folder, "core", "package.json"), "utf8")).dependencies);
  rmSync(join(folder, "lib"), { recursive: true, force: true });
  const { metafile } = await build({ ...common, entryPoints: ["lab/src/index.ts"], bundle: true, loader: { ".css": "text", ".py": "text" }, splitting: true, outdir: join(folder, "lib"), chunkNames: "[name]-[hash]", external: shared, define: { PANELS_HASH: JSON.stringify(hash) } });
  const builder = join(folder, "node_modules", "@jupyterlab", "builder", "lib", "build-labextension.js");
  execFileSync(process.execPath, [builder, "--core-path", join(folder, "core"), folder], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  const target = join(out, "labextension");
  rmSync(target, { recursive: true, force: true });
  cpSync(join(folder, "out"), target, { recursive: true });
  cpSync(join(folder, "install.json"), join(target, "install.json"));
  writeFileSync(join(target, "static", "third-party-licenses.json"), `${JSON.stringify({ packages: licences(metafile) }, null, 2)}\n`);
}

const refused = problems();
if (refused.length) throw new Error(refused.join("\n"));

const widgets = join(out, "faces", "notebook", "widgets", "static");
const panels = await bundle("src/main.js", widgets, "panels.js");
await build({ ...common, entryPoints: ["src/loader.js"], outfile: join(widgets, "loader.js") });
const page = join(out, "faces", "server", "static");
await bundle("src/web.js", page, "web.js");
await build({ ...common, entryPoints: ["src/web.css"], outfile: join(page, "web.css") });
cpSync(join(here, "src", "index.html"), join(page, "index.html"));
await lab(createHash("sha256").update(panels).digest("hex").slice(0, 16)); // as panel.py does
