import assert from "node:assert/strict";
import { test } from "node:test";
import { allOf, type Branch, branchOf, groupIds, isAbove, keyOf, pathOf, renamed, treeOf } from "../objects/group-tree.ts";

const named = (...names: string[]) => names.map((name, i) => ({ id: i + 1, name }));
const shape = (branches: readonly Branch[]): unknown[] => branches.map((each) => [each.name, each.group?.id ?? null, ...shape(each.branches)]);

test("levels of names are levels of the tree", () => {
  const tree = treeOf(named("North", "North / Hall 10", "North / Hall 2", "South / Hall 1 / Line", "Alone"));
  assert.deepEqual(shape(tree), [
    ["Alone", 5],
    ["North", 1, ["Hall 2", 3], ["Hall 10", 2]],
    ["South", null, ["Hall 1", null, ["Line", 4]]],
  ]);
});

test("a slash without blanks, and levels that are empty, are part of a name", () => {
  for (const name of ["A/C units", "/", " / ", "a /  / b", "", "/ a", "a /"]) {
    assert.equal(pathOf(name), name.trim());
    assert.equal(allOf(treeOf(named(name))).length, 1, name);
  }
  assert.equal(pathOf(" a  /  b "), "a / b");
});

test("a level that comes before its own group, and groups of one name, are all there", () => {
  const tree = treeOf(named("a / b", "a", "a", "a / b"));
  assert.deepEqual(shape(tree), [
    ["a", 2, ["b", 1], ["b", 4]],
    ["a", 3],
  ]);
  assert.equal(new Set(allOf(tree).map(keyOf)).size, 4);
});

test("names of whatever kind make a tree with each of them once", () => {
  const names = ["__proto__", "constructor / toString", "<b> / \u202e", "a".repeat(64), " / / / ", "x / x / x / x", "/x", "x/"];
  const tree = treeOf(named(...names));
  assert.deepEqual(allOf(tree).flatMap((each) => each.group ?? []).map(({ id }) => id).sort(), names.map((_, i) => i + 1));
  for (const each of allOf(tree)) assert.equal(branchOf(tree, keyOf(each)), each);
});

test("a branch has the groups below it, and takes them along when it is renamed", () => {
  const tree = treeOf(named("North", "North / Hall 2", "North / Hall 2 / Line", "Northern"));
  const north = branchOf(tree, "1") as Branch;
  assert.deepEqual(groupIds(north).sort(), [1, 2, 3]);
  assert.deepEqual(renamed(north, "East / North"), [
    { id: 1, name: "East / North" },
    { id: 2, name: "East / North / Hall 2" },
    { id: 3, name: "East / North / Hall 2 / Line" },
  ]);
  assert.ok(isAbove(north, "North / Hall 2") && isAbove(north, "North") && !isAbove(north, "Northern"));
});
