/**
 * A dashboard's `script`: pages by name, widgets on a grid. What is changed is what is asked for; fields that nobody here
 * knows stay as they are, in their places.
 */

/** An object of JSON. */
export type Json = Record<string, unknown>;

/** A variable of an object that a widget shows; without `objectId` that of the page. */
export interface WidgetValue {
  objectId: string;
  code: string;
}

/** Columns from the left, rows from the top, and how many of each. */
export interface Place {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** A widget as it is drawn; `index` is its place in the page's `data`. */
export interface Widget {
  index: number;
  type: string;
  name: string;
  place: Place;
  values: WidgetValue[];
  attribute: Json;
}

/** A page as it is drawn; `key` is its name in the script. */
export interface DashboardPage {
  key: string;
  name: string;
  columns: number;
  rows: number;
  objectId: string;
  /** The uid of an uploaded picture on which the widgets stand: a site plan; empty: there is none. */
  picture: string;
  widgets: Widget[];
}

export const TYPES = ["crd", "vlu", "lin", "gag", "pie", "rad", "bar", "dzc", "aqi", "mxa", "scd", "ddc"] as const;

const COLUMNS_MAX = 96;
const PLAN_ROWS = 54; // cells of a picture of 16 to 9 are squares
const ROWS_MAX = 500;
const WIDGETS_MAX = 300;
const VALUES_MAX = 50;

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);
const text = (value: unknown): string => (typeof value === "string" || typeof value === "number" ? String(value) : "");
const whole = (value: unknown, least: number, most: number, otherwise: number): number => {
  const number = Math.round(Number(value));
  return Number.isFinite(number) && value !== null && value !== "" ? Math.min(most, Math.max(least, number)) : otherwise;
};

/** The pages of a script, those of `Dashboard-<n>` in the order of their numbers, then the others. */
export function readPages(script: unknown): DashboardPage[] {
  if (!isObject(script)) return [];
  const keys = Object.keys(script).filter((key) => isObject(script[key]));
  const number = (key: string): number => Number(/^Dashboard-(\d+)$/.exec(key)?.[1] ?? Infinity);
  keys.sort((a, b) => (number(a) === number(b) ? 0 : number(a) - number(b)));
  return keys.map((key) => readPage(key, script[key] as Json));
}

function readPage(key: string, page: Json): DashboardPage {
  const socket = isObject(page["webSocket"]) ? page["webSocket"] : {};
  const columns = whole(page["col"], 1, COLUMNS_MAX, 24);
  const rows = whole(page["row"], 1, ROWS_MAX, 12);
  const data = Array.isArray(page["data"]) ? page["data"].slice(0, WIDGETS_MAX) : [];
  const widgets = data.flatMap((each, index) => (isObject(each) ? [readWidget(index, each, columns)] : []));
  return { key, name: text(page["name"]) || key, columns, rows, objectId: text(socket["objectId"]), picture: readPicture(page["picture"]), widgets };
}

function readPicture(value: unknown): string {
  const uid = text(value);
  return /^[\w-]{1,64}$/.test(uid) ? uid : "";
}

function readWidget(index: number, widget: Json, columns: number): Widget {
  const xys = isObject(widget["xys"]) ? widget["xys"] : {};
  const [left, top] = Array.isArray(xys["pos"]) ? xys["pos"] : [];
  const [width, height] = Array.isArray(xys["len"]) ? xys["len"] : [];
  const attribute = isObject(widget["attribute"]) ? widget["attribute"] : {};
  const place = {
    left: whole(left, 0, columns - 1, 0),
    top: whole(top, 0, ROWS_MAX, 0),
    width: whole(width, 1, columns, Math.min(columns, 6)),
    height: whole(height, 1, ROWS_MAX, 3),
  };
  place.left = Math.min(place.left, columns - place.width);
  return { index, type: text(widget["type"]), name: text(widget["name"]), place, values: readValues(attribute, widget), attribute };
}

/** `attribute.values`; where there are none, one variable named like the widget. */
function readValues(attribute: Json, widget: Json): WidgetValue[] {
  if (Array.isArray(attribute["values"])) {
    return attribute["values"]
      .slice(0, VALUES_MAX)
      .flatMap((each) => (isObject(each) && text(each["code"]) ? [{ objectId: text(each["objectId"]), code: text(each["code"]) }] : []));
  }
  const name = text(widget["name"]);
  return name ? [{ objectId: "", code: name }] : [];
}

/** The object of a value on a page that is shown for `shown`: what is the page's own object is that one. */
export function objectOf(value: WidgetValue, page: DashboardPage, shown: string): string {
  const own = value.objectId || page.objectId;
  return shown && own === page.objectId ? shown : own;
}

function withPage(script: Json, key: string, change: (page: Json) => Json): Json {
  return { ...script, [key]: change(isObject(script[key]) ? script[key] : {}) };
}

function withWidget(script: Json, key: string, index: number, change: (widget: Json) => Json): Json {
  return withPage(script, key, (page) => {
    const data = Array.isArray(page["data"]) ? page["data"] : [];
    return { ...page, data: data.map((each: unknown, at) => (at === index && isObject(each) ? change(each) : each)) };
  });
}

/** The script with a widget in another place. */
export function placeWidget(script: Json, key: string, index: number, place: Place): Json {
  return withWidget(script, key, index, (widget) => ({
    ...widget,
    xys: { ...(isObject(widget["xys"]) ? widget["xys"] : {}), pos: [place.left, place.top], len: [place.width, place.height] },
  }));
}

/** What can be said of a widget beside its place; undefined stays as it is. */
export interface WidgetChange {
  type?: string;
  name?: string;
  attribute?: Json;
}

/** The script with a widget that is otherwise; attributes are added to those that it has. */
export function changeWidget(script: Json, key: string, index: number, change: WidgetChange): Json {
  return withWidget(script, key, index, (widget) => ({
    ...widget,
    ...(change.type === undefined ? {} : { type: change.type }),
    ...(change.name === undefined ? {} : { name: change.name }),
    ...(change.attribute ? { attribute: { ...(isObject(widget["attribute"]) ? widget["attribute"] : {}), ...change.attribute } } : {}),
  }));
}

/** The script with a widget more, as the last. */
export function addWidget(script: Json, key: string, type: string, name: string, place: Place): Json {
  const xys = { pos: [place.left, place.top], len: [place.width, place.height] };
  const made = { type, name, theme: "light", xys, attribute: { values: [] } };
  return withPage(script, key, (page) => ({ ...page, data: [...(Array.isArray(page["data"]) ? page["data"] : []), made] }));
}

/** The script without a widget. */
export function removeWidget(script: Json, key: string, index: number): Json {
  return withPage(script, key, (page) => ({ ...page, data: (Array.isArray(page["data"]) ? page["data"] : []).filter((_each, at) => at !== index) }));
}

/** The script with another picture under a page's widgets, on a finer grid; empty: without one. */
export function setPicture(script: Json, key: string, uid: string): Json {
  return withPage(script, key, (page) => {
    const others = Object.fromEntries(Object.entries(page).filter(([name]) => name !== "picture"));
    return uid ? { ...others, picture: uid, col: COLUMNS_MAX, row: PLAN_ROWS } : others;
  });
}

/** What can be said of a page; undefined stays as it is. */
export interface PageChange {
  name?: string;
  columns?: number;
  rows?: number;
  /** The page's own object; empty: none. */
  objectId?: string;
}

/** The script with a page that is otherwise. */
export function changePage(script: Json, key: string, change: PageChange): Json {
  return withPage(script, key, (page) => ({
    ...page,
    ...(change.name === undefined ? {} : { name: change.name }),
    ...(change.columns === undefined ? {} : { col: whole(change.columns, 1, COLUMNS_MAX, 24) }),
    ...(change.rows === undefined ? {} : { row: whole(change.rows, 1, ROWS_MAX, 12) }),
    ...(change.objectId === undefined ? {} : { webSocket: { ...(isObject(page["webSocket"]) ? page["webSocket"] : {}), objectId: change.objectId } }),
  }));
}

/** The script without a page. */
export function removePage(script: Json, key: string): Json {
  return Object.fromEntries(Object.entries(script).filter(([name]) => name !== key));
}

/** The script with a page more, and the page's key. */
export function addPage(script: Json, name: string): [Json, string] {
  const numbers = Object.keys(script).map((key) => Number(/^Dashboard-(\d+)$/.exec(key)?.[1] ?? 0));
  const key = `Dashboard-${Math.max(0, ...numbers) + 1}`;
  const page = { name, tag: "", col: 24, row: 14, screenWidth: 1920, screenHeight: 1080, dataType: "mosaic", data: [], webSocket: { url: "", projectId: "1", objectId: "" } };
  return [{ ...script, [key]: page }, key];
}
