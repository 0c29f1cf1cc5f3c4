// Reads [[schema, [value, ...]], ...] and prints, for each, whether the TypeScript SDK's validator takes each value.
import { readFileSync } from "node:fs";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv";

const verdicts = JSON.parse(readFileSync(0, "utf8")).map(([schema, values]) => {
  const validate = new AjvJsonSchemaValidator().getValidator(schema);
  return values.map((value) => validate(value).valid);
});
process.stdout.write(JSON.stringify(verdicts));
