/** Starts the console. */
import { render } from "preact";
import { App } from "./app.tsx";
import { check, keepSession } from "./api.ts";
import { usePreferences } from "./preferences.ts";
import { followRoutes, route } from "./routes.ts";
import { followSearchKeys } from "./search.tsx";

usePreferences();
followRoutes();
followSearchKeys();
keepSession();
if (route.value.page !== "wall") void check();
render(<App />, document.body);
