import assert from "node:assert/strict";
import { test } from "node:test";
import { attach, detach, type FileAsk, type FileRecord, ownAddress, readFiles, type StoredFile } from "../objects/attached.ts";
import { byConfiguration } from "../terminals/counted.ts";

const file = (uid: string): StoredFile => ({ uid, name: `${uid}.txt`, url: `/object/api/v1/file/download/${uid}` });

/** A platform with file records, and one object that names one of them or none. */
function platform(records: FileRecord[], fileId: number | null) {
  const object = { id: 7, name: "x".repeat(80), file_id: fileId };
  const ask: FileAsk = {
    pathPage: async <R>(_: string, query: Record<string, string>) => {
      const wanted = query["where_and"] ? Number((JSON.parse(query["where_and"]) as [string, string, number][])[0]?.[2]) : null;
      const rows = records.filter((each) => wanted === null || each.id === wanted).reverse();
      return { rows: rows as R[], total: rows.length };
    },
    send: async (name, fields) => {
      const given = fields as { id: number; file: StoredFile[]; file_id: number; name: string };
      if (name.endsWith("file/add")) {
        assert.ok(given.name.length <= 64);
        records.push({ id: records.length + 1, file: given.file }, { id: records.length + 2, file: [file("other")] });
      }
      if (name.endsWith("file/edit")) for (const each of records) if (each.id === given.id) each.file = given.file;
      if (name.endsWith("object/edit")) object.file_id = given.file_id;
      return {};
    },
  };
  return { object, ask };
}

test("the first files make a record, which the object names though another one came at the same time", async () => {
  const { object, ask } = platform([], null);
  await attach(ask, object, [file("a"), file("b")]);
  assert.equal(object.file_id, 1);
  assert.deepEqual(await readFiles(ask, 1), [file("a"), file("b")]);
});

test("more files come behind those that are there, and one goes alone", async () => {
  const { object, ask } = platform([{ id: 1, file: [file("a")] }], 1);
  await attach(ask, object, [file("b")]);
  await detach(ask, 1, "a");
  assert.deepEqual(await readFiles(ask, 1), [file("b")]);
});

test("a record that is gone is made anew", async () => {
  const { object, ask } = platform([{ id: 1, file: [] }], 9);
  assert.equal(await readFiles(ask, 9), null);
  await attach(ask, object, [file("a")]);
  assert.deepEqual([object.file_id, await readFiles(ask, 2)], [2, [file("a")]]);
});

test("only what the platform keeps is followed", () => {
  assert.equal(ownAddress("/object/api/v1/file/download/ab-1"), "object/api/v1/file/download/ab-1");
  assert.equal(ownAddress("object/api/v1/file/download/ab-1"), "object/api/v1/file/download/ab-1");
  for (const each of ["//evil.example/object/api/v1/file/download/a", "https://evil.example/object/api/v1/file/download/a", "javascript:alert(1)", "../x", "", null, undefined, 5]) {
    assert.equal(ownAddress(each), null, String(each));
  }
});

test("terminals are counted by configuration, and it is known whether that is all of them", () => {
  const rows = [{ config_id: "a" }, { config_id: "b" }, { config_id: "a" }, { config_id: null }];
  assert.deepEqual([...byConfiguration(rows, 4).counts], [["a", 2], ["b", 1]]);
  assert.deepEqual([byConfiguration(rows, 4).isCut, byConfiguration(rows, 5).isCut], [false, true]);
});
