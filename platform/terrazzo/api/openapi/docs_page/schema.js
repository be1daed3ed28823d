// Reads JSON schemas of the OpenAPI document for people.

export class Schemas {
  constructor(api) {
    this.parts = api.components.schemas;
  }

  resolve(schema = {}) {
    return schema.$ref ? this.parts[schema.$ref.split("/").pop()] : schema;
  }

  // The fields of an object: name, type, whether it is required, default, description.
  fields(schema) {
    const object = this.resolve(schema);
    const required = new Set(object.required ?? []);
    return Object.entries(object.properties ?? {}).map(([name, field]) => {
      const found = this.resolve(field);
      return {
        name,
        type: this.type(field),
        required: required.has(name),
        default: found.default ?? null,
        description: field.description ?? found.description ?? choices(found, "description"),
      };
    });
  }

  // A type in a few words, with its range.
  type(schema) {
    const found = this.resolve(schema);
    if ("const" in found) return JSON.stringify(found.const);
    if (found.enum) return found.enum.map((each) => JSON.stringify(each)).join(" | ");
    const options = found.anyOf ?? found.oneOf;
    if (options) return [...new Set(options.map((each) => this.type(each)))].filter((each) => each !== "null").join(" or ");
    if (found.type === "array") return isSaid(found.items) ? `array of ${this.type(found.items)}` : "array";
    return (found.type ?? "any JSON") + range(found);
  }

  // The shape of a result, indented like the JSON that it describes.
  shape(schema, indent = "") {
    const found = this.resolve(schema);
    const inner = `${indent}  `;
    if (found.type === "array" && isSaid(found.items)) return `[${this.shape(found.items, indent)}, …]`;
    if (!found.properties) return this.orNull(found);
    const lines = Object.entries(found.properties).map(([name, field]) => `${inner}"${name}": ${this.shape(field, inner)}`);
    return lines.length ? `{\n${lines.join(",\n")}\n${indent}}` : "{}";
  }

  orNull(found) {
    const options = found.anyOf ?? [];
    return this.type(found) + (options.some((each) => each.type === "null") ? " or null" : "");
  }

  // A request with nothing but what is required, for what has no example.
  sketch(schema) {
    const object = this.resolve(schema);
    const wanted = Object.entries(object.properties ?? {}).filter(([name]) => (object.required ?? []).includes(name));
    return Object.fromEntries(wanted.map(([name, field]) => [name, this.value(field)]));
  }

  value(schema) {
    const found = this.resolve(schema);
    if (found.default != null) return found.default;
    if (found.enum) return found.enum[0];
    if (found.anyOf) return this.value(found.anyOf[0]);
    return { integer: found.minimum ?? 0, number: 0, boolean: false, array: [], object: {} }[found.type] ?? "";
  }
}

function choices(found, name) {
  return (found.anyOf ?? []).map((each) => each[name]).find(Boolean) ?? "";
}

function range(schema) {
  const low = schema.minimum ?? schema.minLength;
  const high = schema.maximum ?? schema.maxLength;
  if (high == null || high >= 2 ** 31 - 1) return "";
  const unit = schema.type === "string" ? " characters" : "";
  return low == null ? ` up to ${high}${unit}` : ` ${low}..${high}${unit}`;
}

// Whether a schema says anything: that of an array's items may be empty.
function isSaid(schema) {
  return schema !== undefined && Object.keys(schema).length > 0;
}
