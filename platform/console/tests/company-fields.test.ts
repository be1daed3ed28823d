import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { companyFields, companySent, companyValues } from "../access/company-fields.ts";

const shown = (values: Record<string, string>) => companyFields().filter((each) => !each.isShown || each.isShown(values)).map((each) => each.name);

test("a new company has everything as the platform has it", () => {
  const sent = companySent({ ...companyValues(null), name: "Works" });
  equal(sent["is_available"], 1);
  equal(sent["limit_queued_bytes"], 0);
  equal(sent["retention_messages"], 0);
  equal("own_limits" in sent, false);
});

test("limits are shown once a company has one, and are sent as numbers", () => {
  const values = companyValues({ name: "Works", retention_events: 30, limit_rules: 5, limit_files: 0 });
  deepEqual(shown(values).includes("limit_answer_bytes"), true);
  const sent = companySent({ ...values, limit_files: "", limit_api_keys: "7" });
  deepEqual([sent["limit_rules"], sent["limit_files"], sent["limit_api_keys"], sent["retention_events"]], [5, 0, 7, 30]);
  equal(shown(companyValues({ name: "Works", limit_rules: 0 })).includes("limit_rules"), false);
});
