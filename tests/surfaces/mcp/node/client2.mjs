// As client.mjs, with the client of 2.x, which speaks either era: `legacy`, `auto`.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [mode, url, ...names] = process.argv.slice(2);
const client = new Client({ name: "toolview-test", version: "1.0.0" }, { versionNegotiation: { mode } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const results = {};
for (const named of names.filter((name) => name !== "slow")) {
  const [, name, given] = named.match(/^([^=]*)=?(.*)$/s);
  try {
    results[name] = await client.callTool({ name, arguments: JSON.parse(given || "{}") });
  } catch (error) {
    results[name] = { thrown: error.message, code: error.code };
  }
}
const heard = [];
if (names.includes("slow")) {
  const who = { who: `client-${process.pid}` };
  let released;
  const onprogress = ({ progress }) => {
    if (heard.push(progress) === 1) released = client.callTool({ name: "release", arguments: who });
  };
  results.slow = await client.callTool({ name: "slow", arguments: who }, { onprogress });
  await released;
}
const cards = {};
if (client.getServerCapabilities().resources) {
  for (const { uri } of (await client.listResources()).resources) {
    cards[uri] = (await client.readResource({ uri })).contents[0];
  }
}
const said = { version: client.getNegotiatedProtocolVersion(), instructions: client.getInstructions() };
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), results, heard, cards, ...said }));
await client.close();
