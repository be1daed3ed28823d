/** What a terminal may publish and subscribe to, by its record: the broker decides by the same (docs/terminals.md). */

export interface Allowed {
  /** Topics, with all levels below them. */
  publish: string[];
  /** Filters. */
  subscribe: string[];
}

interface Permissions {
  uid: string;
  access: string;
  topic: string;
}

const CHANNELS = ["r", "a", "v", "p", "i", "n"];

/** Reads `access` and `topic` of a record. */
export function allowedOf({ uid, access, topic }: Permissions): Allowed {
  const isAll = topic.trim() === "all";
  const channels = isAll ? CHANNELS : partOf(topic, "pub");
  const filters = isAll ? [`g/${uid}/#`] : partOf(topic, "sub");
  return {
    publish: access === "sub" ? [] : channels.map((channel) => `g/${uid}/${channel}`),
    subscribe: access === "pub" ? [] : [`p2p/${uid}`, ...filters],
  };
}

/** `r,a` of `pub:r,a;sub:g/#`. */
function partOf(topic: string, verb: string): string[] {
  const part = topic.split(";").find((each) => each.trim().startsWith(`${verb}:`));
  return (part ?? "").trim().slice(verb.length + 1).split(",").map((each) => each.trim()).filter(Boolean);
}
