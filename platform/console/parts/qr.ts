/**
 * QR codes of texts (ISO/IEC 18004): bytes in UTF-8, error correction M, versions 1 to 20. Knows no page.
 * A code is a square of modules, true for dark ones; the quiet zone of four modules is the drawer's.
 */

/** Of error correction M, by version: codewords of correction in a block, and how many blocks. */
const CORRECTION: readonly (readonly [perBlock: number, blocks: number])[] = [
  [10, 1], [16, 1], [26, 1], [18, 2], [24, 2], [16, 4], [18, 4], [22, 4], [22, 5], [26, 5],
  [30, 5], [22, 8], [22, 9], [24, 9], [24, 10], [28, 10], [28, 11], [26, 13], [26, 14], [26, 16],
];
const LEVEL_M = 0;
const BYTE_MODE = 4;

/** The code of a text; null: it is longer than the largest version holds (666 bytes). */
export function qrOf(text: string): boolean[][] | null {
  const bytes = new TextEncoder().encode(text);
  const version = CORRECTION.findIndex((_each, at) => dataCodewords(at + 1) * 8 >= 4 + lengthBits(at + 1) + bytes.length * 8) + 1;
  if (!version) return null;
  const codewords = interleaved(dataOf(bytes, version), version);
  const codes = Array.from({ length: 8 }, (_, mask) => drawn(version, codewords, mask));
  return codes.reduce((best, each) => (penaltyOf(each) < penaltyOf(best) ? each : best));
}

/** Modules for data, error correction and a rest of up to seven, which is left light. */
function rawModules(version: number): number {
  const aligned = version > 1 ? Math.floor(version / 7) + 2 : 0;
  const patterns = aligned ? (25 * aligned - 10) * aligned - 55 : 0;
  return (16 * version + 128) * version + 64 - patterns - (version >= 7 ? 36 : 0);
}

function dataCodewords(version: number): number {
  const [perBlock, blocks] = CORRECTION[version - 1] as [number, number];
  return Math.floor(rawModules(version) / 8) - perBlock * blocks;
}

const lengthBits = (version: number): number => (version < 10 ? 8 : 16);

/** Mode, length, bytes, end, and what fills the rest. */
function dataOf(bytes: Uint8Array, version: number): number[] {
  const bits: number[] = [];
  const put = (value: number, count: number) => {
    for (let at = count - 1; at >= 0; at -= 1) bits.push((value >>> at) & 1);
  };
  put(BYTE_MODE, 4);
  put(bytes.length, lengthBits(version));
  for (const each of bytes) put(each, 8);
  const most = dataCodewords(version) * 8;
  put(0, Math.min(4, most - bits.length));
  put(0, (8 - (bits.length % 8)) % 8);
  for (let pad = 0xec; bits.length < most; pad ^= 0xec ^ 0x11) put(pad, 8);
  return Array.from({ length: most / 8 }, (_, at) => bits.slice(at * 8, at * 8 + 8).reduce((sum, bit) => sum * 2 + bit, 0));
}

/** The product in the field of 256 elements of QR codes. */
function times(one: number, other: number): number {
  let product = 0;
  for (let bit = 7; bit >= 0; bit -= 1) {
    product = (product << 1) ^ ((product >>> 7) * 0x11d);
    product ^= ((other >>> bit) & 1) * one;
  }
  return product;
}

/** The remainder of data by the generator of so many codewords. */
function correctionOf(data: readonly number[], count: number): number[] {
  const divisor = new Array<number>(count).fill(0);
  divisor[count - 1] = 1;
  for (let root = 1, i = 0; i < count; i += 1, root = times(root, 2)) {
    for (let at = 0; at < count; at += 1) divisor[at] = times(divisor[at] ?? 0, root) ^ (divisor[at + 1] ?? 0);
  }
  const rest = new Array<number>(count).fill(0);
  for (const each of data) {
    const factor = each ^ (rest.shift() ?? 0);
    rest.push(0);
    divisor.forEach((coefficient, at) => (rest[at] = (rest[at] ?? 0) ^ times(coefficient, factor)));
  }
  return rest;
}

/** Blocks with their correction, a codeword of each in turn. */
function interleaved(data: readonly number[], version: number): number[] {
  const [perBlock, blocks] = CORRECTION[version - 1] as [number, number];
  const short = Math.floor(data.length / blocks);
  const shortBlocks = blocks - (data.length % blocks);
  const parts: number[][] = [];
  for (let at = 0, i = 0; i < blocks; i += 1) {
    const length = short + (i < shortBlocks ? 0 : 1);
    parts.push(data.slice(at, at + length));
    at += length;
  }
  const all: number[] = [];
  for (let at = 0; at <= short; at += 1) for (const part of parts) if (at < part.length) all.push(part[at] as number);
  const corrections = parts.map((part) => correctionOf(part, perBlock));
  for (let at = 0; at < perBlock; at += 1) for (const each of corrections) all.push(each[at] as number);
  return all;
}

/** Where the middles of alignment patterns lie. */
export function alignmentsOf(version: number): number[] {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const step = Math.floor((version * 8 + count * 3 + 5) / (count * 4 - 4)) * 2;
  const last = version * 4 + 10;
  return [6, ...Array.from({ length: count - 1 }, (_, i) => last - (count - 2 - i) * step)];
}

const MASKS: readonly ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0,
  (_x, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

function drawn(version: number, codewords: readonly number[], mask: number): boolean[][] {
  const size = version * 4 + 17;
  const code = Array.from({ length: size }, () => new Array<boolean>(size).fill(false));
  const isTaken = Array.from({ length: size }, () => new Array<boolean>(size).fill(false));
  const set = (x: number, y: number, isDark: boolean): void => {
    const [row, taken] = [code[y], isTaken[y]];
    if (!row || !taken || x < 0 || x >= size) return;
    row[x] = isDark;
    taken[x] = true;
  };
  drawPatterns(version, size, set);
  drawFormat(size, mask, set);
  let bit = 0;
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let i = 0; i < size; i += 1) {
      for (const x of [right, right - 1]) {
        const y = ((right + 1) & 2) === 0 ? size - 1 - i : i;
        if (isTaken[y]?.[x]) continue;
        const isOn = (((codewords[bit >>> 3] ?? 0) >>> (7 - (bit & 7))) & 1) === 1;
        (code[y] as boolean[])[x] = isOn !== (MASKS[mask] as (x: number, y: number) => boolean)(x, y);
        bit += 1;
      }
    }
  }
  return code;
}

type Set_ = (x: number, y: number, isDark: boolean) => void;

/** Finders, timing, alignment, and the version where there is one. */
function drawPatterns(version: number, size: number, set: Set_): void {
  for (let at = 0; at < size; at += 1) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]] as const) {
    for (let dy = -4; dy <= 4; dy += 1) for (let dx = -4; dx <= 4; dx += 1) set(x + dx, y + dy, ![2, 4].includes(Math.max(Math.abs(dx), Math.abs(dy))));
  }
  const places = alignmentsOf(version);
  const last = places.length - 1;
  places.forEach((x, i) =>
    places.forEach((y, j) => {
      if ((i === 0 && j === 0) || (i === 0 && j === last) || (i === last && j === 0)) return;
      for (let dy = -2; dy <= 2; dy += 1) for (let dx = -2; dx <= 2; dx += 1) set(x + dx, y + dy, Math.max(Math.abs(dx), Math.abs(dy)) !== 1);
    }),
  );
  if (version < 7) return;
  let rest = version;
  for (let i = 0; i < 12; i += 1) rest = (rest << 1) ^ ((rest >>> 11) * 0x1f25);
  const bits = (version << 12) | rest;
  for (let i = 0; i < 18; i += 1) {
    const [a, b] = [size - 11 + (i % 3), Math.floor(i / 3)];
    set(a, b, ((bits >>> i) & 1) === 1);
    set(b, a, ((bits >>> i) & 1) === 1);
  }
}

/** The level and mask, twice. */
function drawFormat(size: number, mask: number, set: Set_): void {
  const data = (LEVEL_M << 3) | mask;
  let rest = data;
  for (let i = 0; i < 10; i += 1) rest = (rest << 1) ^ ((rest >>> 9) * 0x537);
  const bits = ((data << 10) | rest) ^ 0x5412;
  const on = (at: number): boolean => ((bits >>> at) & 1) === 1;
  for (let i = 0; i <= 5; i += 1) set(8, i, on(i));
  set(8, 7, on(6));
  set(8, 8, on(7));
  set(7, 8, on(8));
  for (let i = 9; i < 15; i += 1) set(14 - i, 8, on(i));
  for (let i = 0; i < 8; i += 1) set(size - 1 - i, 8, on(i));
  for (let i = 8; i < 15; i += 1) set(8, size - 15 + i, on(i));
  set(8, size - 8, true);
}

/** How hard a code is to read: long runs, blocks, what looks like a finder, too much of one kind. */
function penaltyOf(code: readonly (readonly boolean[])[]): number {
  const size = code.length;
  const columns = Array.from({ length: size }, (_, x) => code.map((row) => row[x] as boolean));
  let sum = 0;
  for (const line of [...code, ...columns]) {
    const text = line.map(Number).join("");
    for (const run of text.match(/0{5,}|1{5,}/g) ?? []) sum += run.length - 2;
    for (const each of ["00001011101", "10111010000"]) for (let at = text.indexOf(each); at >= 0; at = text.indexOf(each, at + 1)) sum += 40;
  }
  for (let y = 0; y + 1 < size; y += 1) {
    for (let x = 0; x + 1 < size; x += 1) {
      const here = code[y]?.[x];
      if (here === code[y]?.[x + 1] && here === code[y + 1]?.[x] && here === code[y + 1]?.[x + 1]) sum += 3;
    }
  }
  const dark = code.flat().filter(Boolean).length;
  return sum + Math.floor(Math.abs((dark * 20) / (size * size) - 10)) * 10;
}

/** One path of all dark modules, in a square of `size` units with the quiet zone around. */
export function qrPath(code: readonly (readonly boolean[])[]): string {
  return code.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x + QUIET},${y + QUIET}h1v1h-1z`] : []))).join("");
}

export const QUIET = 4;
