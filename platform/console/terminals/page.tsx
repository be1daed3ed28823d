import { Head } from "../parts/basics.tsx";
import { titles } from "../shell/pages.ts";
import { t } from "../words/words.ts";
export function Page() { return <Head title={t(titles.terminals)} />; }
