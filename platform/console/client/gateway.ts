/** The gateway over HTTP: one call for each action, typed by the platform's own description (`/openapi.json`). */
import type { components } from "../generated/api";

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

/** A refusal: `code` is the gateway's, `info` says what was wrong. */
export class GatewayError extends Error {
  readonly code: number;
  readonly info: string;
  readonly status: number;
  /** What is answered beside, such as the errors of a whole import. */
  readonly result: unknown;

  constructor(code: number, info: string, status: number, result?: unknown) {
    super(info);
    this.name = "GatewayError";
    this.code = code;
    this.info = info;
    this.status = status;
    this.result = result;
  }
}

/** Nobody answered, or what answered is no gateway. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause));
    this.name = "Unreachable";
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
  result?: unknown;
  total_records?: number;
  commands?: string[];
}

/** Actions whose result is curves, by key. */
export type CurveAction = "get_mosaic_chart" | "get_wall_chart";

/** A curve, oldest point first; times in milliseconds since 1970, UTC. */
export interface Columns {
  times: number[];
  values: number[];
}

const COLUMNS = "application/vnd.terrazzo.columns";

/** Calls actions. */
export class Gateway {
  private readonly base: string;
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
    const response = await this.ask(`apiproxy/api/${action}`, fields, COLUMNS, signal);
    if (response.headers.get("Content-Type") !== COLUMNS) {
      const { result } = await opened(response, signal);
      return (result as { data: Record<string, Columns> }).data;
    }
    try {
      return readColumns(await response.arrayBuffer());
    } catch (error) {
      throw signal?.aborted ? error : new Unreachable(error);
    }
  }

  /** Uploads a file; its record. */
  async upload(file: File, signal?: AbortSignal): Promise<{ uid: string; name: string; url: string }> {
    const path = `object/api/v1/file/upload?${new URLSearchParams({ name: file.name }).toString()}`;
    const { result } = await opened(await this.ask(path, file, "application/json", signal), signal);
    return result as { uid: string; name: string; url: string };
  }

  private async envelope(path: string, fields: object | undefined, signal?: AbortSignal): Promise<AnyEnvelope> {
    return opened(await this.ask(path, fields, "application/json", signal), signal);
  }

  private async ask(path: string, fields: object | undefined, accept: string, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = this.token
      ? { Authorization: `Bearer ${this.token}` }
      : { "Terrazzo-Session": "cookie" };
    headers["Accept"] = accept;
    const limit = AbortSignal.timeout(this.timeoutMs);
    const init: RequestInit = { headers, signal: signal ? AbortSignal.any([signal, limit]) : limit };
    if (fields !== undefined) {
      const isFile = fields instanceof Blob;
      headers["Content-Type"] = isFile ? "application/octet-stream" : "application/json";
      init.method = "POST";
      init.body = isFile ? fields : JSON.stringify(fields);
    }
    try {
      return await fetch(this.base + path, init);
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Unreachable(error);
    }
  }
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
  if (envelope.code !== 200) throw new GatewayError(envelope.code, envelope.info ?? "", response.status, envelope.result);
  return envelope;
}

/** Curves out of `application/vnd.terrazzo.columns`. */
export function readColumns(buffer: ArrayBuffer): Record<string, Columns> {
  const length = new DataView(buffer).getUint32(8, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 16, length))) as { columns: { key: string; points: number }[] };
  const found: Record<string, Columns> = {};
  let at = 16 + length;
  for (const { key, points } of head.columns) {
    const [times, values] = [new Float64Array(buffer, at, points), new Float64Array(buffer, at + 8 * points, points)];
    found[key] = { times: Array.from(times), values: Array.from(values) };
    at += 16 * points;
  }
  return found;
}

/** A record of a list's result. */
export type RowOf<R> = R extends (infer T)[] ? T : R extends { data: (infer T)[] } ? T : never;
