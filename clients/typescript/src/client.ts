/** The platform's client: who asks, what is sent again, lists of any length, and what happens as it happens. */
import { type Action, type Fields, Gateway, GatewayError, NOT_AUTHENTICATED, type Result, type RowOf, Unreachable } from "./gateway.ts";
import { Frames } from "./frames.ts";
import { Live, type LiveKind, type LiveState, type Socket } from "./live.ts";
import { pauseMs, RETRIES, type Retries, sleep } from "./retries.ts";

export interface ClientOptions {
  /** The platform's address, with the path that a proxy may give it; a page's own where there is none. */
  url?: string;
  username?: string;
  password?: string;
  /** Asked for a code where the user has a second factor. */
  code?: () => string | Promise<string>;
  /** A token or an API key in place of user name and password. */
  token?: string;
  /** Milliseconds after which an answer is given up; 60,000 unless given. */
  timeoutMs?: number;
  retries?: Partial<Retries>;
  onLiveState?: (state: LiveState) => void;
  /** Of the live connection: see `LiveOptions`. */
  quietMs?: number;
  open?: (url: string) => Socket;
}

export interface LiveWanted {
  object_id?: string | number;
  terminal_id?: string | number;
  keys?: string[];
  /** The number after which to begin; from now on without it. */
  since?: number;
  /** Frames that may wait to be taken, before the subscription rests until they are; 1,000 unless given. */
  mostWaiting?: number;
  /** Ends the subscription. */
  signal?: AbortSignal;
}

const LOGIN = "apiproxy/api/login";
const AGAIN_MS = 1_000;
const LONGEST_MS = 30_000;

/** Logs in by itself, at the first request and when the token is over; shares one live connection. */
export class Client extends Gateway {
  /** The token in use; with an API key that key. */
  accessToken: string | undefined;
  private readonly options: ClientOptions;
  private username: string | undefined;
  private password: string | undefined;
  private readonly retries: Retries;
  private readonly connection: Live;
  private loggingIn: Promise<unknown> | undefined;
  private healing: Promise<void> | undefined;
  private readonly open = new Set<Frames>();
  private isClosed = false;

  constructor(options: ClientOptions = {}) {
    const base = addressOf(options.url);
    super({ base, timeoutMs: options.timeoutMs });
    this.options = options;
    this.accessToken = options.token;
    this.username = options.username;
    this.password = options.password;
    this.retries = { ...RETRIES, ...options.retries };
    this.connection = new Live({
      url: () => new URL("apiproxy/api", base || document.baseURI).href.replace(/^http/, "ws"),
      token: () => this.accessToken,
      onState: (state) => this.options.onLiveState?.(state),
      quietMs: options.quietMs,
      open: options.open,
    });
  }

  /** Logs in with these, which are used from now on; the user's record. Throws GatewayError. */
  async login(username = this.username, password = this.password): Promise<Result<"login">> {
    this.username = username;
    this.password = password;
    const fields = { username: username ?? "", password: password ?? "" };
    const { code } = this.options;
    let user: Result<"login">;
    try {
      user = await this.call("login", fields);
    } catch (error) {
      if (!code || !asksForCode(error)) throw error;
      user = await this.call("login", { ...fields, code: await code() });
    }
    this.accessToken = user.token;
    return user;
  }

  /** Ends the token, and forgets the credentials, so that nothing logs in again by itself. */
  async logout(): Promise<void> {
    await this.call("logout", {});
    this.accessToken = this.username = this.password = undefined;
  }

  /** Every record of an action that lists, page after page. */
  async *pages<A extends Action>(action: A, fields: Omit<Fields<A>, "page_index" | "page_size">, pageSize = 1_000, signal?: AbortSignal): AsyncGenerator<RowOf<Result<A>>, void, undefined> {
    let seen = 0;
    for (let index = 1; ; index++) {
      const { rows, total } = await this.page(action, { ...fields, page_index: index, page_size: pageSize } as unknown as Fields<A>, signal);
      yield* rows;
      seen += rows.length;
      if (rows.length < pageSize || seen >= total) return;
    }
  }

  /**
   * What happens, without end: frames, and gaps where some are missing. It goes on after lost connections and with a new
   * token. Its first `next` throws Unreachable or GatewayError where the platform can't be asked at all, or refuses.
   */
  live(kinds: LiveKind[], wanted: LiveWanted = {}): Frames {
    if (this.isClosed) throw new Error("the client is closed");
    const { since, mostWaiting, signal, ...of } = wanted;
    const end = (): void => void frames.return();
    const frames = new Frames(
      {
        live: this.connection,
        check: async () => void (await this.call("ping", {}, signal)), // a wrong address or token is said, and not tried for ever
        renew: () => this.heal(),
        onEnd: () => {
          this.open.delete(frames);
          signal?.removeEventListener("abort", end);
        },
      },
      { kinds, ...of },
      { since, mostWaiting },
    );
    this.open.add(frames);
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end);
    return frames;
  }

  /** Ends the live connection, and loops over what it brings; requests under way are not waited for. */
  close(): void {
    this.isClosed = true;
    for (const frames of [...this.open]) void frames.return();
    this.connection.close();
  }

  protected override shown(): Record<string, string> {
    if (this.accessToken) return { Authorization: `Bearer ${this.accessToken}` };
    return this.username === undefined ? super.shown() : {};
  }

  protected override async attempt<T>(path: string, signal: AbortSignal | undefined, send: () => Promise<T>): Promise<T> {
    if (path !== LOGIN && !this.accessToken && this.username !== undefined) await this.renew(undefined);
    let hasRenewed = path === LOGIN;
    for (let attempt = 1; ; attempt++) {
      const shown = this.accessToken;
      try {
        return await send();
      } catch (error) {
        if (!hasRenewed && this.username !== undefined && isEnded(error)) {
          hasRenewed = true;
          await this.renew(shown);
          continue;
        }
        const pause = pauseMs(this.retries, attempt, path, error);
        if (pause === undefined) throw error;
        await sleep(pause, signal);
      }
    }
  }

  /** A token other than `old`; who asks at the same time gets the same. */
  private async renew(old: string | undefined): Promise<void> {
    if (this.accessToken !== old) return;
    this.loggingIn ??= this.login().finally(() => {
      this.loggingIn = undefined;
    });
    await this.loggingIn;
  }

  private heal(): Promise<void> {
    this.healing ??= this.healed().finally(() => {
      this.healing = undefined;
    });
    return this.healing;
  }

  /** Logs in again, however long the platform is away, and connects anew: subscriptions go on where they were. */
  private async healed(): Promise<void> {
    if (this.username === undefined) throw new GatewayError(NOT_AUTHENTICATED, "the token is not valid any more", 200);
    for (let pause = AGAIN_MS; !this.isClosed; pause = Math.min(2 * pause, LONGEST_MS)) {
      try {
        await this.login();
        return this.connection.restart();
      } catch (error) {
        if (!(error instanceof Unreachable)) throw error;
        await sleep(pause);
      }
    }
  }
}

function addressOf(url: string | undefined): string {
  if (url === undefined) return "";
  const { protocol } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") throw new TypeError(`url: expected http://host:port or https://host:port, got ${url}`);
  return url.endsWith("/") ? url : `${url}/`;
}

function isEnded(error: unknown): boolean {
  return error instanceof GatewayError && error.code === NOT_AUTHENTICATED;
}

function asksForCode(error: unknown): boolean {
  const result = error instanceof GatewayError ? (error.result as { second_factor?: string } | undefined) : undefined;
  return result?.second_factor === "code";
}
