/** Dashboards: all of them, one to look at, and its editor. */
import { route } from "../shell/routes.ts";
import { Editor } from "./editor.tsx";
import { DashboardList } from "./list.tsx";
import { View } from "./view.tsx";

export function Page() {
  const uid = route.value.path[0];
  if (!uid) return <DashboardList />;
  return route.value.query.has("edit") ? <Editor key={uid} uid={uid} /> : <View key={uid} uid={uid} />;
}
