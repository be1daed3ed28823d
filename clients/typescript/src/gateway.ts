/** The gateway over HTTP: one call for each action, typed by the platform's own description (`/openapi.json`). */
import type { components } from "./generated/api.d.ts";
import type { Telling } from "./sending.ts";

type Schemas = components["schemas"];
type AnswerKey = Extract<keyof Schemas, `${string}.answer`>;

/** The names of all actions. */
export type Action = AnswerKey extends `${infer A}.answer` ? A : never;
/** What an action takes. */
export type Fields<A extends Action> = `${A}.fields` extends keyof Schemas
  ? Omit<Schemas[`${A}.fields`], "actionid" | "strict">
  : Record<string, never>;
type Envelope<A extends Action> = `${A}.answer` extends keyof Schemas ? Schemas[`${A}.answer`] : never;
/** What an action answers. */
export type Result<A extends Action> = Envelope<A> extends { result: infer R } ? R : never;

/** Why something is refused, for programs: which sentence of the platform's, and what differs in it. */
export interface Reason {
  code: string;
  parameters: Readonly<Record<string, string | number | boolean | Reason | readonly Reason[]>>;
  /** What it is about, where the text names it. */
  field?: string;
}

/** A refusal: `code` is the gateway's, `info` says what was wrong, `reason` says the same to programs. */
export class GatewayError extends Error {
  readonly code: number;
  readonly info: string;
  readonly status: number;
  readonly reason: Reason | undefined;
  /** What is answered beside, such as the errors of a whole import. */
  readonly result: unknown;
  /** Seconds after which to ask again, where the platform says so. */
  readonly retryAfterS: number | undefined;

  constructor(code: number, info: string, status: number, result?: unknown, reason?: Reason, retryAfterS?: number) {
    super(info);
    this.name = "GatewayError";
    this.code = code;
    this.info = info;
    this.status = status;
    this.result = result;
    this.reason = reason;
    this.retryAfterS = retryAfterS;
  }
}

/** Nobody answered, or what answered is no gateway: a request that changes something may have been carried out. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.name = "Unreachable";
  }
}

/** There was no connection: the request never left. Browsers don't tell this from a connection that was lost. */
export class NotSent extends Unreachable {
  constructor(cause: unknown) {
    super(cause);
    this.name = "NotSent";
  }
}

export const NOT_AUTHENTICATED = 10402;
export const NOT_PERMITTED = 10403;
export const NO_RECORD = 10404;

export interface GatewayOptions {
  /** The platform's address with its path, ending in `/`; without one it is the page's own. */
  base?: string;
  /** An access token or API key; without one a page's session is used, which is a cookie that no script reads. */
  token?: string;
  /** Milliseconds after which a call is given up. */
  timeoutMs?: number;
}

/** A page of a list, and how many records there are in all. */
export interface Page<R> {
  rows: R[];
  total: number;
}

interface AnyEnvelope {
  code: number;
  info?: string;
  reason?: Reason;
  result?: unknown;
  total_records?: number;
  commands?: string[];
}

/** How far an import is: `send` counts bytes, `check` and `write` rows. */
export interface ImportStep {
  stage: "send" | "read" | "check" | "write";
  done: number;
  total: number;
}

export interface ImportOptions {
  /** `create` takes new records only, and is what is done without it. */
  mode?: "create" | "upsert";
  /** Only says what would be done. */
  isDry?: boolean;
  onStep?: (step: ImportStep) => void;
}

/** What can be imported from a file. */
export type Importable = Extract<Action, `import_${string}`> extends `import_${infer E}` ? E : never;

/** Actions whose result is curves, by key. */
export type CurveAction = "get_mosaic_chart" | "get_wall_chart";

/** A curve, oldest point first; times in milliseconds since 1970, UTC. */
export interface Columns {
  times: number[];
  values: number[];
  /** The newest number before the range, where that was asked for (`before`) and the curve begins later. */
  before?: { time: number; value: number };
}

const IMPORT_QUIET_MS = 600_000; // imports of a company take turns

const COLUMNS = "application/vnd.terrazzo.columns";

const NO_CONNECTION = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]; // Node.js says so

/** Calls actions. */
export class Gateway {
  protected readonly base: string;
  private readonly token: string | undefined;
  private readonly timeoutMs: number;

  constructor(options: GatewayOptions = {}) {
    this.base = options.base ?? "";
    this.token = options.token;
    this.timeoutMs = options.timeoutMs ?? 60_000;
  }

  /** An action's result; throws GatewayError or Unreachable. */
  async call<A extends Action>(action: A, fields: Fields<A>, signal?: AbortSignal): Promise<Result<A>> {
    const envelope = await this.envelope(`apiproxy/api/${action}`, fields, signal);
    return envelope.result as Result<A>;
  }

  /** A page of an action that lists, however it says how many there are. */
  async page<A extends Action>(action: A, fields: Fields<A>, signal?: AbortSignal): Promise<Page<RowOf<Result<A>>>> {
    const envelope = await this.envelope(`apiproxy/api/${action}`, fields, signal);
    const result = envelope.result as unknown[] | { data: unknown[]; total_records?: number };
    if (Array.isArray(result)) return { rows: result as RowOf<Result<A>>[], total: envelope.total_records ?? result.length };
    return { rows: result.data as RowOf<Result<A>>[], total: result.total_records ?? result.data.length };
  }

  /** Sends commands; the uids by which the journal and live frames name them. */
  async command<A extends Action>(action: A, fields: Fields<A>, signal?: AbortSignal): Promise<string[]> {
    return (await this.envelope(`apiproxy/api/${action}`, fields, signal)).commands ?? [];
  }

  /** The result of a component path, as `GET` where there are no `fields`. */
  async path(path: string, query: Record<string, string> = {}, fields?: object, signal?: AbortSignal): Promise<unknown> {
    const search = new URLSearchParams(query).toString();
    const envelope = await this.envelope(search ? `${path}?${search}` : path, fields, signal);
    return envelope.result;
  }

  /** The curves of an action that makes some, by key: as arrays of numbers over the wire, which take no parsing. */
  async curves(action: CurveAction, fields: Fields<CurveAction>, signal?: AbortSignal): Promise<Record<string, Columns>> {
    const path = `apiproxy/api/${action}`;
    return this.attempt(path, signal, async () => {
      const response = await this.ask(path, fields, COLUMNS, signal);
      if (response.headers.get("Content-Type") !== COLUMNS) {
        const { result } = await opened(response, signal);
        const { data, before } = result as { data: Record<string, Columns>; before?: Before };
        return withBefore(data, before);
      }
      try {
        return readColumns(await response.arrayBuffer());
      } catch (error) {
        throw signal?.aborted ? error : new Unreachable(error);
      }
    });
  }

  /** A file that a path makes, such as `export/mosaic/7`; throws GatewayError where it is refused. */
  async download(path: string, query: Record<string, string> = {}, signal?: AbortSignal): Promise<Blob> {
    const search = new URLSearchParams(query).toString();
    return this.attempt(path, signal, async () => {
      const response = await this.ask(search ? `${path}?${search}` : path, undefined, "*/*", signal);
      if (response.headers.get("Content-Type")?.startsWith("application/json") && !response.headers.has("Content-Disposition")) await opened(response, signal);
      try {
        return await response.blob();
      } catch (error) {
        throw signal?.aborted ? error : new Unreachable(error);
      }
    });
  }

  /** Uploads a file; its record. `onSent` hears of the bytes that have left. */
  async upload(file: File, signal?: AbortSignal, onSent: (bytes: number) => void = () => undefined): Promise<{ uid: string; name: string; url: string }> {
    const path = `object/api/v1/file/upload?${new URLSearchParams({ name: file.name }).toString()}`;
    const { result } = await this.attempt(path, signal, async () => opened(await this.tell(path, file, { onSent }, signal), signal));
    return result as { uid: string; name: string; url: string };
  }

  /** Imports a file of records (CSV, JSON, JSON lines), all or none; the report. A refusal has the report as its `result`. */
  async importFile<E extends Importable>(entity: E, file: Blob, { mode = "create", isDry = false, onStep }: ImportOptions = {}, signal?: AbortSignal): Promise<Result<`import_${E}`>> {
    const query = { mode, dry_run: isDry ? "1" : "0", progress: "1" };
    const path = `bulk/${entity}?${new URLSearchParams(query).toString()}`;
    const telling = {
      quietMs: IMPORT_QUIET_MS,
      onSent: (bytes: number) => onStep?.({ stage: "send", done: bytes, total: file.size }),
      onText: (text: string) => {
        const step = lastStep(text);
        if (step) onStep?.(step);
      },
    };
    const { result } = await this.attempt(path, signal, async () => {
      const response = await this.tell(path, file, telling, signal);
      const lines = (await response.text()).trimEnd().split("\n"); // the last is the envelope
      return opened(new Response(lines.at(-1) ?? "", { status: response.status, headers: response.headers }), signal);
    });
    return result as Result<`import_${E}`>;
  }

  /** What a request is sent with to show who asks. */
  protected shown(): Record<string, string> {
    return this.token ? { Authorization: `Bearer ${this.token}` } : { "Terrazzo-Session": "cookie" };
  }

  /** Sends a request once; `Client` does so again where that is safe. */
  protected attempt<T>(_path: string, _signal: AbortSignal | undefined, send: () => Promise<T>): Promise<T> {
    return send();
  }

  private envelope(path: string, fields: object | undefined, signal?: AbortSignal): Promise<AnyEnvelope> {
    return this.attempt(path, signal, async () => opened(await this.ask(path, fields, "application/json", signal), signal));
  }

  /** Posts a file, and says how far it is. */
  private async tell(path: string, file: Blob, telling: Omit<Telling, "signal" | "quietMs"> & { quietMs?: number }, signal?: AbortSignal): Promise<Response> {
    const headers = { ...this.shown(), Accept: "application/json", "Content-Type": "application/octet-stream" };
    const { sendTold } = await import("./sending.ts");
    try {
      return await sendTold(this.base + path, headers, file, { quietMs: this.timeoutMs, ...telling, signal });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw isUnsent(error) ? new NotSent(error) : new Unreachable(error);
    }
  }

  private async ask(path: string, fields: object | undefined, accept: string, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { ...this.shown(), Accept: accept };
    const limit = AbortSignal.timeout(this.timeoutMs);
    const init: RequestInit = { headers, signal: signal ? AbortSignal.any([signal, limit]) : limit };
    if (fields !== undefined) {
      headers["Content-Type"] = "application/json";
      init.method = "POST";
      init.body = JSON.stringify(fields);
    }
    try {
      return await fetch(this.base + path, init);
    } catch (error) {
      if (signal?.aborted) throw error;
      throw isUnsent(error) ? new NotSent(error) : new Unreachable(error);
    }
  }
}

/** Whether an error of `fetch` says that there was no connection; of several addresses each has to. */
function isUnsent(error: unknown): boolean {
  const { cause } = error as { cause?: { code?: string; errors?: { code?: string }[] } };
  const causes = cause?.errors ?? [cause];
  return causes.every((each) => NO_CONNECTION.includes(each?.code ?? ""));
}

/** The envelope of an answer, which has to be one of success. */
async function opened(response: Response, signal?: AbortSignal): Promise<AnyEnvelope> {
  let envelope: AnyEnvelope;
  try {
    envelope = (await response.json()) as AnyEnvelope;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable(error);
  }
  if (typeof envelope.code !== "number") throw new Unreachable(`status ${response.status}`);
  if (envelope.code === 200) return envelope;
  const after = Number(response.headers.get("Retry-After") ?? NaN);
  const retryAfterS = after >= 0 ? after : undefined;
  throw new GatewayError(envelope.code, envelope.info ?? "", response.status, envelope.result, envelope.reason, retryAfterS);
}

/** The newest whole line of progress in an answer that is still coming. */
function lastStep(text: string): ImportStep | null {
  const start = text.lastIndexOf('{"progress":');
  const end = text.indexOf("\n", start);
  return start < 0 || end < 0 ? null : (JSON.parse(text.slice(start, end)) as { progress: ImportStep }).progress;
}

/** Curves out of `application/vnd.terrazzo.columns`. */
export function readColumns(buffer: ArrayBuffer): Record<string, Columns> {
  const length = new DataView(buffer).getUint32(8, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 16, length))) as { columns: { key: string; points: number }[]; before?: Before };
  const found: Record<string, Columns> = {};
  let at = 16 + length;
  for (const { key, points } of head.columns) {
    found[key] = { times: numbersAt(buffer, at, points), values: numbersAt(buffer, at + 8 * points, points) };
    at += 16 * points;
  }
  return withBefore(found, head.before);
}

type Before = Record<string, NonNullable<Columns["before"]>>;

function withBefore(curves: Record<string, Columns>, before: Before | undefined): Record<string, Columns> {
  for (const [key, found] of Object.entries(before ?? {})) if (curves[key]) curves[key].before = found;
  return curves;
}

/** A loop, since `Array.from` goes through an iterator: a fifth of the time for 50 curves of 2,000 points. */
function numbersAt(buffer: ArrayBuffer, at: number, count: number): number[] {
  const [from, to] = [new Float64Array(buffer, at, count), new Array<number>(count)];
  for (let index = 0; index < count; index += 1) to[index] = from[index] as number;
  return to;
}

/** A record of a list's result. */
export type RowOf<R> = R extends (infer T)[] ? T : R extends { data: (infer T)[] } ? T : never;
