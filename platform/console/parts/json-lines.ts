/** A value as lines of indented JSON; what is short and has nothing within it stays on one line. */

export type TokenKind = "name" | "text" | "number" | "word" | "mark";

export interface Token {
  kind: TokenKind;
  text: string;
}

export interface Line {
  depth: number;
  tokens: Token[];
}

const MOST_LINES = 1_000;
const MOST_DEPTH = 40;
const MOST_CHARS = 2_000; // of a text
const IN_LINE = 72; // characters of an array or object on one line

/** The lines of a value, and whether there are more than are told. */
export function jsonLines(value: unknown): { lines: Line[]; isCut: boolean } {
  const lines: Line[] = [];
  const isCut = !write(lines, { depth: 0, tokens: [] }, value, "");
  return { lines, isCut };
}

/** Writes a value behind what its first line has already; false where there is no more room. */
function write(lines: Line[], first: Line, value: unknown, ending: string): boolean {
  if (lines.length >= MOST_LINES) return false;
  const inLine = tokensOf(value, first.depth);
  if (inLine) {
    lines.push({ ...first, tokens: [...first.tokens, ...inLine, ...mark(ending)] });
    return true;
  }
  const isArray = Array.isArray(value);
  const all = isArray ? value.map((each) => [null, each] as const) : Object.entries(value as object);
  lines.push({ ...first, tokens: [...first.tokens, ...mark(isArray ? "[" : "{")] });
  for (const [i, [name, each]] of all.entries()) {
    const tokens = name === null ? [] : [nameToken(name), ...mark(": ")];
    if (!write(lines, { depth: first.depth + 1, tokens }, each, i < all.length - 1 ? "," : "")) return false;
  }
  lines.push({ depth: first.depth, tokens: mark((isArray ? "]" : "}") + ending) });
  return true;
}

/** On one line; nothing where it has more than one level or is too long for it. */
function tokensOf(value: unknown, depth: number): Token[] | null {
  if (typeof value !== "object" || value === null) return [scalar(value)];
  const isArray = Array.isArray(value);
  const all: [string | null, unknown][] = isArray ? value.map((each): [null, unknown] => [null, each]) : Object.entries(value);
  if (!all.length) return mark(isArray ? "[]" : "{}");
  if (depth >= MOST_DEPTH) return [{ kind: "word", text: "…" }];
  if (!isArray && depth === 0) return null; // the points of a message stand below each other
  if (all.length > IN_LINE || all.some(([, each]) => typeof each === "object" && each !== null)) return null;
  const tokens = all.flatMap(([name, each], i) => [...mark(i ? ", " : ""), ...(name === null ? [] : [nameToken(name), ...mark(": ")]), scalar(each)]);
  const found = [...mark(isArray ? "[" : "{ "), ...tokens, ...mark(isArray ? "]" : " }")];
  return found.reduce((n, each) => n + each.text.length, 0) <= IN_LINE ? found : null;
}

function mark(text: string): Token[] {
  return text ? [{ kind: "mark", text }] : [];
}

function nameToken(name: string): Token {
  return { kind: "name", text: cut(JSON.stringify(name)) };
}

function scalar(value: unknown): Token {
  if (typeof value === "string") return { kind: "text", text: cut(JSON.stringify(value)) };
  if (typeof value === "number") return { kind: "number", text: String(value) };
  return { kind: "word", text: String(value) };
}

function cut(text: string): string {
  return text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)}…` : text;
}
