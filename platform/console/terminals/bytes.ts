/** Bytes that are no text, as they are looked at: two digits each, and what of them is ASCII beside. */

const A_LINE = 16;
const MOST = 512;

/** Base64 as lines of `0000  80 a4 ...  ..`, the first of them; empty where there is nothing. */
export function bytesText(base64: string): string {
  const bytes = Uint8Array.from(atob(base64.slice(0, Math.ceil(MOST / 3) * 4)), (each) => each.charCodeAt(0)).subarray(0, MOST);
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += A_LINE) {
    const some = [...bytes.subarray(at, at + A_LINE)];
    const digits = some.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const signs = some.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(4, "0")}  ${digits.padEnd(3 * A_LINE - 1)}  ${signs}`);
  }
  if (sizeOf(base64) > MOST) lines.push("…");
  return lines.join("\n");
}

function sizeOf(base64: string): number {
  return (base64.length / 4) * 3 - (base64.match(/=*$/)?.[0].length ?? 0);
}
