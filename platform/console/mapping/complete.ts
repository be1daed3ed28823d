/** What can be typed next: points for sources, codes and functions for expressions. */
export interface Choice {
  text: string;
  /** Said beside it: the last value, or a label. */
  note: string;
}

export interface Completion {
  /** Which part of the text is replaced. */
  from: number;
  to: number;
  choices: Choice[];
}

const MOST = 12;
const WORD = /(?:\{[^{}]*|[\p{L}_][\p{L}\p{N}_]*)$/u;
const NAME = /^[\p{L}_][\p{L}\p{N}_]*$/u;
const FUNCTIONS = ["abs(", "min(", "max(", "round(", "floor(", "ceil(", "sqrt(", "log(", "exp(", "bit("];

/** A whole cell: those that contain what is typed, those that begin with it first. */
export function completeCell(text: string, choices: readonly Choice[]): Completion {
  return { from: 0, to: text.length, choices: best(text, choices) };
}

/** The word before the caret of an expression; a code that is no name stands in braces. */
export function completeExpression(text: string, caret: number, codes: readonly Choice[]): Completion {
  const word = WORD.exec(text.slice(0, caret))?.[0] ?? "";
  const from = caret - word.length;
  const names = codes.map((each) => ({ ...each, text: NAME.test(each.text) ? each.text : `{${each.text}}` }));
  const all = [...names, ...FUNCTIONS.map((each) => ({ text: each, note: "" }))];
  return { from, to: caret, choices: word ? best(word.replace(/^\{/, ""), all) : [] };
}

/** The text with a choice put in, and where the caret is then. */
export function completed(text: string, found: Completion, choice: Choice): { text: string; caret: number } {
  const before = text.slice(0, found.from) + choice.text;
  return { text: before + text.slice(found.to), caret: before.length };
}

function best(typed: string, choices: readonly Choice[]): Choice[] {
  const wanted = typed.trim().toLowerCase();
  const rank = (each: Choice): number => {
    const at = each.text.toLowerCase().replace(/^\{/, "").indexOf(wanted);
    return at < 0 && each.note.toLowerCase().includes(wanted) ? 10_000 : at;
  };
  const found = choices.map((each) => ({ each, at: rank(each) })).filter(({ each, at }) => at >= 0 && each.text !== typed);
  return found.sort((a, b) => a.at - b.at).slice(0, MOST).map(({ each }) => each);
}

/** The points of messages of an object's terminals, each with its last value. */
export function pointsOf(messages: readonly { terminal_id: string; points: unknown }[], terminals: readonly string[]): Choice[] {
  const found = new Map<string, string>();
  for (const { terminal_id, points } of messages) {
    const place = terminals.indexOf(terminal_id) + 1;
    if (place > 0) for (const [name, value] of flat(points, "")) found.set(`$AdapterID-${place}.${name}`, value);
  }
  return [...found].map(([text, note]) => ({ text, note })).sort((a, b) => (a.text < b.text ? -1 : 1));
}

function* flat(points: unknown, prefix: string): Generator<[string, string]> {
  if (typeof points !== "object" || points === null || Array.isArray(points)) return;
  for (const [name, value] of Object.entries(points)) {
    if (typeof value === "object" && value !== null) yield* flat(value, `${prefix}${name}.`);
    else yield [prefix + name, JSON.stringify(value).slice(0, 60)];
  }
}
