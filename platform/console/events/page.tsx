/** Events and labels: what happened, and what people do about it. */
import { Head } from "../parts/basics.tsx";
import { titles } from "../shell/pages.ts";
import { link, route } from "../shell/routes.ts";
import { t } from "../words/words.ts";
import { Events } from "./events.tsx";
import { Labels } from "./labels.tsx";
import { w } from "./words.ts";

export function Page() {
  const isLabels = route.value.path[0] === "labels";
  return (
    <>
      <Head title={t(titles.events)} />
      <nav class="tabs" aria-label={t(titles.events)}>
        <a href={link(["events"])} aria-current={isLabels ? undefined : "page"}>
          {t(w.events)}
        </a>
        <a href={link(["events", "labels"])} aria-current={isLabels ? "page" : undefined}>
          {t(w.labels)}
        </a>
      </nav>
      {isLabels ? <Labels /> : <Events />}
    </>
  );
}
