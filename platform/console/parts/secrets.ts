/** What is secret among what one types: it is never kept, not even in the tab. */

const NAMES = /(^|_)(password|pin|secret|token|key|keys)$/i;
const IN_ADDRESS = /\/\/[^/\s]*@/;

/** Whether a field is for secrets, by its kind or name. */
export function isSecret({ name, kind }: { name: string; kind?: string | undefined }): boolean {
  return kind === "password" || NAMES.test(name);
}

/** The values that may be kept: no secrets, and no addresses with a password in them. */
export function withoutSecrets(values: Readonly<Record<string, string>>, fields: readonly { name: string; kind?: string | undefined }[]): Record<string, string> | undefined {
  const open = new Set(fields.filter((each) => !isSecret(each)).map(({ name }) => name));
  const kept = Object.entries(values).filter(([name, value]) => open.has(name) && !IN_ADDRESS.test(value));
  return kept.length ? Object.fromEntries(kept) : undefined;
}

const COLUMN = /(^|[\s,;|"'{])(password|pin|secret|token)["']?\s*([,;|:\t]|$)/i;

/** Whether rows that somebody imports may have secrets in them: a column or a key is named so. */
export function hasSecrets(text: string): boolean {
  const head = /^[\s\ufeff]*[[{]/.test(text) ? text : (text.trimStart().split(/\r?\n/, 1)[0] ?? "");
  return COLUMN.test(head);
}
