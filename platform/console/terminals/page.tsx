/** All terminals, or one; those that are unknown; their configurations. */
import { route } from "../shell/routes.ts";
import { Configurations } from "./configurations.tsx";
import { Terminals } from "./list.tsx";
import { Terminal } from "./terminal.tsx";
import { Unknown } from "./unknown.tsx";

export function Page() {
  const { path, query } = route.value;
  if (path[0]) return <Terminal key={path[0]} uid={path[0]} />;
  const configurations = query.get("configurations");
  if (configurations) return <Configurations uid={configurations === "1" ? "" : configurations} />;
  return query.get("unknown") ? <Unknown /> : <Terminals />;
}
