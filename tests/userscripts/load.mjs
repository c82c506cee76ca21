// Parts of the scripts under Node: `load(["config", "api"], {fetch})` gives every name that they declare at their top level.

import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const PARTS = fileURLToPath(new URL("../../userscripts/parts/", import.meta.url));

const CONFIG = `
const API_BASE = "https://books.example";
const WEB_BASE = "https://read.example";
const API_TOKEN = "${"c".repeat(64)}";
`;

export const ADAPTERS = readdirSync(`${PARTS}adapters`).sort().map((file) => `adapters/${file.slice(0, -3)}`);

export const LOGIC = ["config", "pages", ...ADAPTERS, "api", "progress", "store", "queue", "checks", "reading", "navigation", "main"];

/** The declarations of `parts` (paths below userscripts/parts, without .js), joined into one scope in that order.
 *  `globals` stand in for those of a browser: a part sees them and no others of their names. */
export function load(parts, globals = {}, library = "manga") {
  const source = parts.map((part) => part.endsWith(".css")
    ? `const ${part.slice(0, -4).toUpperCase()}_CSS = String.raw\`\n${readFileSync(PARTS + part, "utf8")}\`;`
    : readFileSync(`${PARTS}${part}.js`, "utf8"));
  const text = [`"use strict";${CONFIG}const LIBRARY = ${JSON.stringify(library)};`, ...source].join("\n");
  const names = [...text.matchAll(/^(?:async )?(?:function\*?|class|const|let) ([A-Za-z_$][\w$]*)/gm)].map((match) => match[1]);
  return new Function(...Object.keys(globals), `${text}\nreturn {${names.join(", ")}};`)(...Object.values(globals));
}
