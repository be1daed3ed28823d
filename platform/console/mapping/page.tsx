/** Mapping and control tables: all of them, and an editor of each. */
import { route } from "../shell/routes.ts";
import { TableEditor } from "./editor.tsx";
import { TableList } from "./list.tsx";

export function Page() {
  const [kind, uid] = route.value.path;
  if (uid && (kind === "mapping" || kind === "control")) return <TableEditor key={`${kind} ${uid}`} kind={kind} uid={uid} />;
  return <TableList />;
}
