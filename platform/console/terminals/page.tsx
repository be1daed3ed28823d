/** All terminals, or one. */
import { route } from "../shell/routes.ts";
import { Terminals } from "./list.tsx";
import { Terminal } from "./terminal.tsx";
import { Unknown } from "./unknown.tsx";

export function Page() {
  const { path, query } = route.value;
  if (path[0]) return <Terminal key={path[0]} uid={path[0]} />;
  return query.get("unknown") ? <Unknown /> : <Terminals />;
}
