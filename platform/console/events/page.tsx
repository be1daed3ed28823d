/** Events and labels: what happened, and what people do about it. */
import { Head } from "../parts/basics.tsx";
import { titles } from "../shell/pages.ts";
import { link, route } from "../shell/routes.ts";
import { t } from "../words/words.ts";
import { Events } from "./events.tsx";
import { HandoverPart } from "./handover.tsx";
import { Labels } from "./labels.tsx";
import { Retainer, Retainers } from "./retainers.tsx";
import { w } from "./words.ts";

export function Page() {
  const [part = "", uid] = route.value.path;
  if (part === "retainers" && uid) return <Retainer key={uid} uid={uid} />;
  return (
    <>
      <Head title={t(titles.events)} />
      <nav class="tabs" aria-label={t(titles.events)}>
        <a href={link(["events"])} aria-current={part === "" ? "page" : undefined}>
          {t(w.events)}
        </a>
        <a href={link(["events", "labels"])} aria-current={part === "labels" ? "page" : undefined}>
          {t(w.labels)}
        </a>
        <a href={link(["events", "retainers"])} aria-current={part === "retainers" ? "page" : undefined}>
          {t(w.retainers)}
        </a>
        <a href={link(["events", "handover"])} aria-current={part === "handover" ? "page" : undefined}>
          {t(w.handover)}
        </a>
      </nav>
      {part === "labels" ? <Labels /> : part === "retainers" ? <Retainers /> : part === "handover" ? <HandoverPart /> : <Events />}
    </>
  );
}
