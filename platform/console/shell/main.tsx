/** Starts the console. */
import { render } from "preact";
import { App } from "./app.tsx";
import { check, keepSession, session } from "./api.ts";
import { usePreferences } from "./preferences.ts";
import { followRoutes, readRoute, route } from "./routes.ts";
import { followSearchKeys } from "./search.tsx";
import { followTitle } from "./title.ts";

usePreferences();
followRoutes();
followTitle();
followSearchKeys();
keepSession();
const isWall = route.value.page === "wall";
addEventListener("hashchange", () => {
  if ((readRoute(location.hash).page === "wall") !== isWall) location.reload(); // whom it asks, and as whom, is another from the start
});
if (isWall) {
  document.body.replaceChildren(); // the page came with the login, which a wall has no use for
} else {
  if (document.querySelector("main.login")) session.value = null; // the page came with the form: whoever asked has no session
  void check();
}
render(<App />, document.body);
