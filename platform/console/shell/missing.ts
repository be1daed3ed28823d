/** What is said when a lost connection is back: how long it was away, and what does not come afterwards. Loaded then. */
import type { clock as platformClock } from "./clock.ts";
import type { close as closeNote, show as showNote } from "./toasts.tsx";
import type { Pair, t as toText } from "../words/words.ts";

/** Given, as whoever loads this has them: what this imports would come in pieces of its own with the first page. */
interface Given {
  t: typeof toText;
  clock: Pick<typeof platformClock, "ago">;
  show: typeof showNote;
  close: typeof closeNote;
}

const w = {
  once: ["The connection is back. It was lost from {from} to {to}.", "连接已恢复。中断时间：{from} 至 {to}。"],
  often: ["The connection is back. It was lost {n} times between {from} and {to}.", "连接已恢复。{from} 至 {to} 期间中断了 {n} 次。"],
  missing: [
    "What is shown was read again, and all that was stored meanwhile is there. Missing is what only counts while somebody looks: rates of that time, and what a live trace has let go.",
    "显示的内容已重新读取，期间存储的数据都在。缺失的只有仅在查看时才有的内容：该时段的速率，以及实时跟踪已丢弃的报文。",
  ],
} satisfies Record<string, Pair>;

const TIME = "HH:MM:SS".length;
let told = { note: 0, from: "", times: 0 };

/** One note for all times until somebody closes it: a connection that comes and goes would bury everything else. */
export function tellMissing(since: string, { t, clock, show, close }: Given): void {
  const { from, times } = close(told.note) ? told : { from: since.slice(-TIME), times: 0 };
  const said = { n: times + 1, from, to: clock.ago(0).slice(-TIME) };
  told = { note: show(t(times ? w.often : w.once, said), t(w.missing), false, true), from, times: said.n };
}
