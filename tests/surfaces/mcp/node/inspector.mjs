// Inspector's command line once for each call, in one process: `legacy` or `modern`; the last line that it prints tells what came of each.
import { readFileSync } from "node:fs";
import { runCli } from "./node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js";

const [era, url, scratch, ...names] = process.argv.slice(2);
const results = {};
for (const named of names.filter((name) => name !== "slow")) {
  const [, name, given] = named.match(/^([^=]*)=?(.*)$/s);
  const output = `${scratch}/${Object.keys(results).length}.json`;
  const command = ["--server-url", url, "--transport", "http", "--protocol-era", era, "--format", "json", "-q"];
  const call = ["--method", "tools/call", "--tool-name", name, "--tool-args-json", given || "{}", "--output", output];
  try {
    await runCli(["node", "inspector", ...command, ...call]);
    results[name] = JSON.parse(readFileSync(output, "utf8"));
  } catch (error) {
    results[name] = { thrown: error.message, code: error.exitCode };
  }
}
process.exitCode = 0;
console.log(JSON.stringify({ results }));
