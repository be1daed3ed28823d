/** Names of states as one line of text: `0=Off|关; 1=On|开`. */
export type States = Record<string, { label_en?: string; label_cn?: string }>;

export function statesText(states: States): string {
  return Object.entries(states)
    .map(([value, { label_en = "", label_cn = "" }]) => `${value}=${label_en}${label_cn ? `|${label_cn}` : ""}`)
    .join("; ");
}

/** Reads such a line; null where it is none. */
export function readStates(text: string): States | null {
  const found: States = {};
  for (const part of text.split(/[;；]/).map((each) => each.trim()).filter(Boolean)) {
    const at = part.indexOf("=");
    if (at <= 0) return null;
    const [english = "", chinese = ""] = part.slice(at + 1).split("|", 2).map((each) => each.trim());
    if (!english && !chinese) return null;
    found[part.slice(0, at).trim()] = { ...(english ? { label_en: english } : {}), ...(chinese ? { label_cn: chinese } : {}) };
  }
  return found;
}
