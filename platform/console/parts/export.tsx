/** A button that takes a list away as a file; it says how far it is, and can be stopped. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Page } from "terrazzo-client";
import { exportList } from "../shell/download.ts";
import { tell, tellError } from "../shell/toasts.tsx";
import { t, words } from "../words/words.ts";

const w = words({
  csv: ["CSV", "CSV"],
  stop: ["{n} of {total}: stop", "{n} / {total}：停止"],
  done: ["{n} {n|row|rows} in {name}", "{name} 中有 {n} 行"],
});

interface Props<R> {
  name: string;
  columns: readonly (keyof R & string)[];
  read: (index: number, size: number, abort: AbortSignal) => Promise<Page<R>>;
}

export function ExportButton<R extends Record<string, unknown>>({ name, columns, read }: Props<R>) {
  const [progress, setProgress] = useState<{ n: number; total: number } | null>(null);
  const work = useRef<AbortController | null>(null);
  useEffect(() => () => work.current?.abort(), []);
  const go = async () => {
    if (work.current) return work.current.abort();
    const abort = (work.current = new AbortController());
    setProgress({ n: 0, total: 0 });
    try {
      const n = await exportList(name, columns, read, (rows, total) => setProgress({ n: rows, total }), abort.signal);
      tell(t(w.done, { n, name }));
    } catch (error) {
      if (!abort.signal.aborted) tellError(error);
    } finally {
      work.current = null;
      setProgress(null);
    }
  };
  return <button onClick={() => void go()}>{progress ? t(w.stop, progress) : t(w.csv)}</button>;
}
