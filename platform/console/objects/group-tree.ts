/** Groups as a tree: `North / Hall 2` is a level below `North`, whether that is a group itself or only in names. */

export interface Group {
  id: number;
  name: string;
}

export interface Branch {
  /** What stands on it: the last level of its path. */
  name: string;
  /** All levels, with the separator. */
  path: string;
  /** The group of just this path; without one it is only a level of other names. */
  group: Group | null;
  branches: Branch[];
}

export const SEPARATOR = " / ";

/** The levels of a group's name; one with a level that says nothing is one level. */
function levelsOf(name: string): string[] {
  const levels = name.trim().split(/\s+/).join(" ").split(SEPARATOR);
  return levels.some((each) => !each || /(^| )\/( |$)/.test(each)) ? [name.trim()] : levels;
}

/** A group's name as a path: its levels with the separator. */
export function pathOf(name: string): string {
  return levelsOf(name).join(SEPARATOR);
}

/** The tree of all groups, each level by name. Two groups of one path are two branches. */
export function treeOf(groups: readonly Group[]): Branch[] {
  const roots: Branch[] = [];
  const known = new Map<string, Branch>();
  const grow = (levels: readonly string[], group: Group | null): Branch => {
    const made: Branch = { name: levels.at(-1) ?? "", path: levels.join(SEPARATOR), group, branches: [] };
    const above = levels.slice(0, -1);
    (above.length ? (known.get(above.join(SEPARATOR)) ?? grow(above, null)).branches : roots).push(made);
    if (!known.has(made.path)) known.set(made.path, made);
    return made;
  };
  for (const group of groups) {
    const levels = levelsOf(group.name);
    const found = known.get(levels.join(SEPARATOR));
    if (found && !found.group) found.group = group;
    else grow(levels, group);
  }
  sort(roots);
  return roots;
}

function sort(branches: Branch[]): void {
  branches.sort((one, other) => one.name.localeCompare(other.name, undefined, { numeric: true }));
  for (const each of branches) sort(each.branches);
}

/** All branches, each before those below it. */
export function allOf(branches: readonly Branch[]): Branch[] {
  return branches.flatMap((each) => [each, ...allOf(each.branches)]);
}

/** How an address names a branch: its group's id, else its path behind a slash. */
export function keyOf(branch: Branch): string {
  return branch.group ? String(branch.group.id) : `/${branch.path}`;
}

/** The branch that an address names. */
export function branchOf(branches: readonly Branch[], key: string): Branch | undefined {
  return allOf(branches).find((each) => keyOf(each) === key);
}

/** The ids of the groups of a branch and of all below it. */
export function groupIds(branch: Branch): number[] {
  return allOf([branch]).flatMap((each) => (each.group ? [each.group.id] : []));
}

/** Whether a branch is another one or stands above it. */
export function isAbove(branch: Branch, path: string): boolean {
  return path === branch.path || path.startsWith(branch.path + SEPARATOR);
}

/** New names of a branch's groups when its path becomes another one: those below go with it. */
export function renamed(branch: Branch, path: string): Group[] {
  return allOf([branch]).flatMap(({ group, path: own }) => (group ? [{ id: group.id, name: path + own.slice(branch.path.length) }] : []));
}
