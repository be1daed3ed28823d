/** The page's one gateway and one live connection, and the session behind both. */
import { computed, signal } from "@preact/signals";
import { type Action, type Columns, type Fields, Gateway, GatewayError, type Importable, type ImportOptions, Live, type LiveState, NOT_AUTHENTICATED, type Page, type Result, type RowOf, Unreachable } from "terrazzo-client";
import { clock } from "./clock.ts";
import { work } from "./work.ts";

export type Session = Result<"get_session">;
export type Role = "viewer" | "operator" | "admin";

const KEEP_MS = 300_000; // a session in use is renewed as often; it may stay unused for longer
const AGAIN_MS = 2_000; // between two looks whether the platform is there again
const RANKS: Record<Role, number> = { viewer: 1, operator: 2, admin: 3 };

let plain = new Gateway();

/** Whose session it is; null: nobody's; undefined: not known yet. */
export const session = signal<Session | null | undefined>(undefined);
/** The session has ended while the page was in use: who logs in again goes on. */
export const hasExpired = signal(false);
/** Whether the last request reached the platform. */
export const isReachable = signal(true);
export const liveState = signal<LiveState>("idle");
/** Rises when the connection is back: what is shown may be old. */
export const healed = signal(0);
/** The platform serves another console than this one. */
export const isOutdated = signal(false);
export const isLost = computed(() => liveState.value === "lost" || !isReachable.value);

let waiting: (() => void)[] = [];
let wasLost = false;
let asking: ReturnType<typeof setTimeout> | undefined;

const connection = new Live({
  url: () => new URL("apiproxy/api", document.baseURI).href.replace(/^http/, "ws"),
  onState(state) {
    liveState.value = state;
    if (state === "lost" && !wasLost) {
      wasLost = true;
      void check();
    } else if (state === "open" && wasLost) {
      wasLost = false;
      isReachable.value = true;
      healed.value += 1;
      void lookForUpgrade();
    }
  },
});

/** Subscribes to what happens. */
export let live: Pick<Live, "subscribe" | "settled" | "prepare" | "retry" | "restart"> = connection;
let wallKey = "";

/** Whether this page is a wall's: it has a link's key, and no session. */
export function isWall(): boolean {
  return wallKey !== "";
}

/** From here on the page shows what a wall's link shows. */
export function enterWall(key: string, follow: (gateway: Gateway, onTry: (error: unknown) => void) => Pick<Live, "subscribe">): void {
  wallKey = key;
  plain = new Gateway({ token: key });
  const onTry = (error: unknown): void => void (isReachable.value = !(error instanceof Unreachable));
  const feed = follow(plain, onTry);
  live = { subscribe: (wanted, listener) => feed.subscribe(wanted, listener), settled: () => Promise.resolve(), prepare: () => undefined, retry: () => undefined, restart: () => undefined };
}

/** An action's result. Where the session has ended, it waits until somebody has logged in again. */
export function call<A extends Action>(action: A, fields: Fields<A>, abort?: AbortSignal): Promise<Result<A>> {
  return inSession(() => plain.call(action, fields, abort));
}

/** Curves of an object's variables, by code. */
export function curves(fields: Fields<"get_mosaic_chart">, abort?: AbortSignal): Promise<Record<string, Columns>> {
  return inSession(() => plain.curves(isWall() ? "get_wall_chart" : "get_mosaic_chart", fields, abort));
}

/** A file that a path makes. */
export function download(name: string, query: Record<string, string>): Promise<Blob> {
  return inSession(() => plain.download(name, query));
}

/** Uploads a file, and shows how much of it has left; where it is stopped, what `isStop` knows is thrown. */
export function upload(file: File): Promise<{ uid: string; name: string; url: string }> {
  return work(file.name, (tell, abort) => inSession(() => plain.upload(file, abort, (bytes) => tell(bytes, file.size))));
}

/** Imports a file of records, and shows how far it is; its report. */
export function importFile<E extends Importable>(entity: E, file: Blob, name: string, options: Pick<ImportOptions, "mode" | "isDry">): Promise<Result<`import_${E}`>> {
  return work(name, (tell, abort) =>
    inSession(() => plain.importFile(entity, file, { ...options, onStep: ({ stage, done, total }) => tell(done, total, stage !== "send") }, abort)),
  );
}

/** A page of an action that lists. */
export function page<A extends Action>(action: A, fields: Fields<A>, abort?: AbortSignal): Promise<Page<RowOf<Result<A>>>> {
  return inSession(() => plain.page(action, fields, abort));
}

/** Sends commands; their uids. */
export function sendCommand<A extends "publish_object_command" | "publish_terminal_command">(action: A, fields: Fields<A>): Promise<string[]> {
  return inSession(() => plain.command(action, fields));
}

/** The result of a component path. */
export function path(name: string, query: Record<string, string>, abort?: AbortSignal): Promise<unknown> {
  return inSession(() => plain.path(name, query, undefined, abort));
}

/** Sends fields to a component path; its result. */
export function send(name: string, fields: object): Promise<unknown> {
  return inSession(() => plain.path(name, {}, fields));
}

/** A page of a component path that lists. */
export async function pathPage<R>(name: string, query: Record<string, string>, abort?: AbortSignal): Promise<Page<R>> {
  const found = (await path(name, query, abort)) as { data: R[]; total_records: number };
  return { rows: found.data, total: found.total_records };
}

/** What is asked for, once the page's subscriptions have begun: between what is read and what they tell nothing is missing. */
async function inSession<T>(ask: () => Promise<T>): Promise<T> {
  await live.settled();
  for (;;) {
    try {
      const found = await ask();
      isReachable.value = true;
      return found;
    } catch (error) {
      if (error instanceof Unreachable) lose();
      const isEnded = error instanceof GatewayError && error.code === NOT_AUTHENTICATED;
      if (!isEnded || !session.value) throw error;
      hasExpired.value = true;
      await new Promise<void>((resume) => waiting.push(resume));
    }
  }
}

/** Asks whose session this is. */
export async function check(): Promise<void> {
  try {
    const found = await plain.call("get_session", {});
    const before = session.value;
    isReachable.value = true;
    if (before && before.id !== found.id) location.reload(); // another user's page must not stay
    clock.set(found.now_us / 1_000, found.zone);
    session.value = found;
    hasExpired.value = false;
    live.prepare(); // while the page comes
    const resumed = waiting;
    waiting = [];
    for (const resume of resumed) resume();
  } catch (error) {
    if (error instanceof Unreachable) lose();
    else if (session.value) hasExpired.value = true;
    else session.value = null;
  }
}

/** Notes that a request didn't get through, and asks again: a WebSocket that stays open tells nobody that all is well. */
function lose(): void {
  isReachable.value = false;
  clearTimeout(asking);
  if (liveState.value !== "lost") asking = setTimeout(() => void check(), AGAIN_MS);
}

/** Logs in: the session is a cookie, which no script sees. Throws as `call` does. */
export async function login(username: string, password: string, code?: string): Promise<void> {
  await plain.call("login", { username, password, ...(code ? { code } : {}) });
  live.restart(); // as whoever this is now
  await check();
}

/** Ends the session, for all tabs. */
export async function logout(): Promise<void> {
  try {
    await plain.call("logout", {});
  } finally {
    location.hash = "";
    location.reload();
  }
}

/** Whether the user's role reaches another; `super`: whether the user sees all companies and the machine. */
export function may(role: Role | "super"): boolean {
  const who = session.value;
  if (role === "super") return !!who?.is_super;
  return !!who && (!!who.is_super || RANKS[who.role as Role] >= RANKS[role]);
}

/** Looks whether the platform has another console meanwhile. */
export async function lookForUpgrade(): Promise<void> {
  const own = document.querySelector<HTMLMetaElement>('meta[name="terrazzo-build"]')?.content;
  try {
    const text = await (await fetch("./", { cache: "no-cache" })).text();
    const found = /name="terrazzo-build" content="(\w+)"/.exec(text)?.[1];
    if (own && found && own !== found) isOutdated.value = true;
  } catch {
    lose();
  }
}

/** Keeps the session and looks for upgrades, while the page is looked at. */
export function keepSession(): void {
  setInterval(() => {
    if (document.hidden || !session.value) return;
    void check();
    void lookForUpgrade();
  }, KEEP_MS);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || !session.value) return;
    live.retry();
    void check();
  });
  addEventListener("online", () => {
    live.retry();
    if (session.value) void check();
  });
}
