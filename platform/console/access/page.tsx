/** Who may log in, and with what: users, companies, API keys, claim keys, failed logins. */
import { Head } from "../parts/basics.tsx";
import { Tabs } from "../parts/list.tsx";
import { may, session } from "../shell/api.ts";
import { titles } from "../shell/pages.ts";
import { route } from "../shell/routes.ts";
import { t } from "../words/words.ts";
import { ApiKeys } from "./api-keys.tsx";
import { ClaimKeys } from "./claim-keys.tsx";
import { Companies } from "./companies.tsx";
import { Failures } from "./failures.tsx";
import { Users } from "./users.tsx";
import { w } from "./words.ts";

export function Page() {
  const isSuper = !!session.value?.is_super;
  const all = [
    { id: "users", title: w.users, isSeen: may("admin"), show: Users },
    { id: "companies", title: w.companies, isSeen: isSuper, show: Companies },
    { id: "api-keys", title: w.apiKeys, isSeen: true, show: ApiKeys },
    { id: "claim-keys", title: w.claimKeys, isSeen: may("admin"), show: ClaimKeys },
    { id: "failures", title: w.failures, isSeen: may("admin"), show: Failures },
  ];
  const seen = all.filter((each) => each.isSeen);
  const shown = seen.find((each) => each.id === route.value.path[0]) ?? seen[0];
  const Shown = shown?.show;
  return (
    <>
      <Head title={t(titles.access)} />
      <Tabs label={t(titles.access)} base="access" tabs={seen.map((each) => [each.id, t(each.title)] as const)} />
      {Shown && <Shown key={shown.id} />}
    </>
  );
}
