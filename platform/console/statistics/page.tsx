/** Statistics, calculations and balances: their scripts, and what came of them as curves. */
import { Head } from "../parts/basics.tsx";
import { Tabs } from "../parts/list.tsx";
import { titles } from "../shell/pages.ts";
import { route } from "../shell/routes.ts";
import { t } from "../words/words.ts";
import { BalanceResults } from "./balances.tsx";
import { ScriptList } from "./list.tsx";
import { Results } from "./results.tsx";
import { KINDS } from "./scripts.ts";

export function Page() {
  const [first, uid] = route.value.path;
  const { id: kind, title } = KINDS.find((each) => each.id === first) ?? KINDS[0];
  if (uid) return kind === "balance" ? <BalanceResults key={uid} uid={uid} /> : <Results key={uid} kind={kind} uid={uid} />;
  return (
    <>
      <Head title={t(titles.statistics)} />
      <Tabs label={t(titles.statistics)} base="statistics" tabs={KINDS.map((each) => [each.id, t(each.title)] as const)} />
      <ScriptList key={kind} kind={kind} label={t(title)} base={["statistics", kind]} />
    </>
  );
}
