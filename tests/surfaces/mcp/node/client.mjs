// Connects as any TypeScript client of SDK 1.x does, lists the tools and calls each that is named; prints what came of it.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, ...names] = process.argv.slice(2);
const client = new Client({ name: "toolview-test", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools(); // compiles every outputSchema
const results = {};
for (const named of names.filter((name) => name !== "slow")) {
  const [, name, given] = named.match(/^([^=]*)=?(.*)$/s); // `tool` or `tool={"its": "arguments"}`
  try {
    results[name] = await client.callTool({ name, arguments: JSON.parse(given || "{}") }); // validates structuredContent
  } catch (error) {
    results[name] = { thrown: error.message, code: error.code };
  }
}
const heard = [];
if (names.includes("slow")) {
  // Its answer comes once it was released, which is done when the first note of progress is heard.
  const who = { who: `sdk-${process.pid}` };
  let released;
  const onprogress = ({ progress }) => {
    if (heard.push(progress) === 1) released = client.callTool({ name: "release", arguments: who });
  };
  results.slow = await client.callTool({ name: "slow", arguments: who }, undefined, { onprogress });
  await released;
}
const cards = {};
if (client.getServerCapabilities().resources) {
  for (const { uri } of (await client.listResources()).resources) {
    cards[uri] = (await client.readResource({ uri })).contents[0];
  }
}
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), results, heard, cards }));
await client.close();
