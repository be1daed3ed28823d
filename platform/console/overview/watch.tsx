/** What needs a person, followed on every page and in tabs that nobody looks at: a count in the menu and the title, a sound where somebody wants one. */
import { effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Result } from "terrazzo-client";
import { call } from "../shell/api.ts";
import { useLive } from "../shell/hooks.ts";
import { HOME, route } from "../shell/routes.ts";
import { needed } from "../shell/title.ts";
import { chime, isLoud } from "./sound.tsx";

const LOOKED_AT_MS = 10_000; // what happens together is read once
const HIDDEN_MS = 30_000;

/** How many things there are to do. */
export function waiting({ terminals, events, labels, commands, quotas, tasks }: Result<"get_attention">): number {
  const stopped = terminals.away + terminals.silent + terminals.refused;
  return stopped + events.count + labels.count + commands.expired + quotas.length + (tasks?.length ?? 0);
}

/** Shows nothing. */
export function Watch() {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const read = async () => {
    timer.current = undefined;
    if (isOverviewSeen()) return; // which reads it all, and says so
    try {
      needed.value = waiting(await call("get_attention", { entries: 1 }));
    } catch {
      return; // a lost connection is told of; the next frame or healing reads again
    }
  };
  const soon = () => {
    timer.current ??= setTimeout(() => void read(), document.hidden ? HIDDEN_MS : LOOKED_AT_MS);
  };
  useLive({ kinds: ["attention"] }, soon, soon);
  useEffect(() => {
    void read();
    const stop = followRises();
    return () => {
      clearTimeout(timer.current);
      stop();
    };
  }, []);
  return null;
}

function isOverviewSeen(): boolean {
  return route.value.page === HOME && !document.hidden;
}

/** A sound with each rise, from the first count on. */
function followRises(): () => void {
  let before: number | null = null;
  return effect(() => {
    const now = needed.value;
    if (before !== null && now !== null && now > before && isLoud.peek()) chime();
    before = now ?? before;
  });
}
