/** What a terminal sent and could not be opened or decoded: as it came, why, and when. */
import type { Result } from "terrazzo-client";
import { Card, Name } from "../parts/basics.tsx";
import { call } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { serverText } from "../words/server-text.ts";
import { t } from "../words/words.ts";
import { bytesText } from "./bytes.ts";
import { Came } from "./came.tsx";
import { w } from "./words.ts";

type Reject = Result<"get_reject_list">["data"][number];

const SHOWN = 10;
const EVERY_MS = 10_000; // no live frame tells of them
const MOST_CHARS = 2_000;

/** Nothing while there are none: most terminals never have any. */
export function Rejects({ uid }: { uid: string }) {
  const { data } = useLoad((abort) => call("get_reject_list", { terminal_id: uid, page_size: SHOWN }, abort), [uid], EVERY_MS);
  if (!data?.data.length) return null;
  const more = data.total_records - data.data.length;
  return (
    <Card title={t(w.rejects)}>
      <p class="dim">{t(w.rejectsAre)}</p>
      <ul class="messages rejects">
        {data.data.map((each, i) => (
          <OneReject key={`${each.time}-${each.topic}-${i}`} reject={each} />
        ))}
      </ul>
      {more > 0 && <p class="dim">{t(w.andMore, { n: more })}</p>}
    </Card>
  );
}

function OneReject({ reject }: { reject: Reject }) {
  return (
    <Came topic={reject.topic} time={reject.time}>
      <span class="is-bad">
        <Name text={serverText(reject.reason, reject.told)} />
      </span>
      <pre dir="auto">{cut(reject.text) ?? bytesText(reject.payload)}</pre>
    </Came>
  );
}

function cut(text: string | null): string | null {
  return text && text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)}…` : text;
}
