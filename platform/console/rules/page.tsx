/** Rules that tell somebody, and what was told. */
import { Head } from "../parts/basics.tsx";
import { Tabs } from "../parts/list.tsx";
import { may } from "../shell/api.ts";
import { titles } from "../shell/pages.ts";
import { route } from "../shell/routes.ts";
import { t } from "../words/words.ts";
import { Messages } from "./messages.tsx";
import { Rules } from "./rules.tsx";
import { w } from "./words.ts";

export function Page() {
  const isMessages = route.value.path[0] === "messages" && may("operator");
  const tabs = [["rules", t(w.rules)] as const, ...(may("operator") ? [["messages", t(w.messages)] as const] : [])];
  return (
    <>
      <Head title={t(titles.rules)} />
      <Tabs label={t(titles.rules)} base="rules" tabs={tabs} />
      {isMessages ? <Messages /> : <Rules />}
    </>
  );
}
