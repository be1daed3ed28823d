// What a program's compiler says of the package: compiled by a test, with and without Node.js' conditions, never run.
import { Client, type Frame, GatewayError, isGap, type Result } from "terrazzo-client";

const client = new Client({ url: "http://127.0.0.1:31507", username: "admin", password: "…" });

export async function typed(): Promise<void> {
  const terminal: Result<"get_terminal_item"> = await client.call("get_terminal_item", { uid: "t1" });
  const uid: string | undefined = terminal.uid;
  // @ts-expect-error: there is no such action
  await client.call("get_nothing", {});
  // @ts-expect-error: a page has a number
  await client.page("get_terminal_list", { page_size: "two" });
  // @ts-expect-error: a required field is missing
  await client.call("publish_terminal_command", {});
  for await (const each of client.pages("get_terminal_list", {})) {
    const found: string | undefined = each.uid;
    if (found === uid) break;
  }
  for await (const happened of client.live(["grid"], { terminal_id: "t1" })) {
    if (isGap(happened)) continue;
    const frame: Frame = happened;
    if (frame.kind === "grid") break;
  }
  try {
    await client.logout();
  } catch (error) {
    if (error instanceof GatewayError) throw new Error(`${error.code} ${error.info}`, { cause: error });
  }
}
