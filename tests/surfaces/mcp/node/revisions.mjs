// The revisions of the protocol that the two TypeScript clients know and shake hands on.
import * as client from "@modelcontextprotocol/client";
import * as sdk from "@modelcontextprotocol/sdk/types.js";

console.log(JSON.stringify({ client: client.SUPPORTED_PROTOCOL_VERSIONS, sdk: sdk.SUPPORTED_PROTOCOL_VERSIONS }));
