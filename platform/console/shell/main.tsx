/** Starts the console. */
import { render } from "preact";
import { App } from "./app.tsx";
import { check, keepSession, session } from "./api.ts";
import { usePreferences } from "./preferences.ts";
import { followRoutes, route } from "./routes.ts";
import { followSearchKeys } from "./search.tsx";
import { followTitle } from "./title.ts";

usePreferences();
followRoutes();
followTitle();
followSearchKeys();
keepSession();
if (route.value.page === "wall") {
  document.body.replaceChildren(); // the page came with the login, which a wall has no use for
} else {
  if (document.querySelector("main.login")) session.value = null; // the page came with the form: whoever asked has no session
  void check();
}
render(<App />, document.body);
