/** Objects: what they are, what they say, and what can be told them. */
import { route } from "../shell/routes.ts";
import { ObjectList } from "./list.tsx";
import { ObjectPage } from "./object.tsx";

export function Page() {
  const id = route.value.path[0];
  return id ? <ObjectPage key={id} id={id} /> : <ObjectList />;
}
