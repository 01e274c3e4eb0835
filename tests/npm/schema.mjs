// Checks JSON files against a JSON schema: schema.mjs SCHEMA FILE... Prints what is wrong, a line each; status 1 then.
import { readFileSync } from "node:fs";
import Ajv from "ajv";

const [schema, ...files] = process.argv.slice(2);
const validate = new Ajv({ strict: false, allErrors: false }).compile(JSON.parse(readFileSync(schema, "utf8")));
for (const file of files) {
        if (!validate(JSON.parse(readFileSync(file, "utf8")))) {
                console.log(`${file}: ${JSON.stringify(validate.errors)}`);
                process.exitCode = 1;
        }
}
