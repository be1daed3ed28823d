// The page at /docs, made from /openapi.json: an index, one entry at a time, and a form to try it.

import { Schemas } from "/docs/schema.js";

takeTheme();

const GATEWAY = "/apiproxy/api";
const TOKEN = "terrazzo-token";
const by = (id) => document.getElementById(id);

// Light or dark as the system has it, unless somebody chose in the console.
function takeTheme() {
  try {
    const chosen = localStorage.getItem("terrazzo-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // a browser that keeps nothing
  }
}

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

// Entries: {key, title, summary, role, aliases, fields, method, path, request, result, example, group}
function entriesOf(api, schemas) {
  const actions = api["x-actions"].map((action) => ({
    key: action.name,
    title: action.name,
    summary: action.summary,
    role: action.role,
    aliases: action.aliases,
    request: action.request,
    fields: schemas.fields(action.request).filter(({ name }) => !["action", "actionid", "strict"].includes(name)),
    result: schemas.resolve(action.answer).properties.result,
    example: action.example,
    path: GATEWAY,
    group: "Actions",
  }));
  return [...actions, ...Object.entries(api.paths).flatMap(([path, methods]) => pathEntries(path, methods, schemas))];
}

function pathEntries(path, methods, schemas) {
  if (path === GATEWAY || path.startsWith(`${GATEWAY}/`)) return [];
  return Object.entries(methods).map(([method, operation]) => {
    const body = operation.requestBody?.content["application/json"]?.schema;
    const fields = body ? schemas.fields(body) : (operation.parameters ?? []).map((each) => parameterField(each, schemas));
    const answered = operation.responses["200"]?.content;
    return {
      key: `${method.toUpperCase()} ${path}`,
      title: `${method.toUpperCase()} ${path}`,
      summary: operation.summary,
      note: operation.description,
      open: operation.security.every((each) => !Object.keys(each).length), // none is asked for
      fields,
      request: body,
      result: answered ? resultOf(Object.values(answered)[0].schema, schemas) : { type: "nothing" },
      method: method.toUpperCase(),
      path,
      group: operation.tags[0] === "operators" ? "For operators" : "Component paths",
    };
  });
}

function parameterField(parameter, schemas) {
  const [field] = schemas.fields({ properties: { [parameter.name]: parameter.schema } });
  return { ...field, required: parameter.required };
}

function resultOf(schema, schemas) {
  const found = schemas.resolve(schema.oneOf ? schema.oneOf[0] : schema);
  return schema.oneOf ? found.properties.result ?? { properties: {} } : found;
}

class Page {
  constructor(api) {
    this.api = api;
    this.schemas = new Schemas(api);
    this.entries = entriesOf(api, this.schemas);
    by("version").textContent = api.info.version;
    by("filter").addEventListener("input", () => this.showIndex());
    by("login").addEventListener("submit", (event) => this.logIn(event));
    by("paste").addEventListener("submit", (event) => this.useToken(event));
    addEventListener("hashchange", () => this.showEntry());
    if (matchMedia("(max-width: 48rem)").matches) by("index-fold").open = false;
    this.showAccount();
    this.showEntry();
  }

  get token() {
    return sessionStorage.getItem(TOKEN) ?? "";
  }

  get wanted() {
    return decodeURIComponent(location.hash.slice(1));
  }

  showIndex() {
    const words = by("filter").value.toLowerCase().split(/\s+/);
    const found = this.entries.filter((entry) => {
      const text = `${entry.title} ${entry.summary} ${(entry.aliases ?? []).join(" ")}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const items = found.flatMap((entry, at) => [
      found[at - 1]?.group === entry.group ? null : make("li", { class: "group" }, entry.group),
      make("li", {}, this.linkTo(entry)),
    ]);
    by("index").replaceChildren(...items.filter(Boolean));
    by("none").hidden = found.length > 0;
    if (by("filter").value) by("index-fold").open = true;
  }

  linkTo(entry) {
    const current = entry.key === this.wanted ? "page" : null;
    return make("a", { href: `#${encodeURIComponent(entry.key)}`, "aria-current": current }, entry.title);
  }

  showEntry() {
    const entry = this.entries.find((each) => each.key === this.wanted);
    document.title = entry ? `${entry.title} · Terrazzo API` : "Terrazzo API";
    by("main").replaceChildren(...(entry ? this.entryParts(entry) : this.overviewParts()));
    this.showIndex();
    if (entry) {
      by("main").focus({ preventScroll: true });
      scrollTo(0, matchMedia("(max-width: 48rem)").matches ? by("main").offsetTop - 60 : 0);
      by("index").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
    }
  }

  overviewParts() {
    const rows = this.entries.map((entry) =>
      make("tr", {}, make("td", {}, this.linkTo(entry)), make("td", {}, entry.summary), make("td", {}, roleOf(entry))),
    );
    const head = make("thead", {}, row("th", "", "", "Role"));
    return [
      make("h1", {}, "Terrazzo API"),
      make("div", { class: "about" }, ...paragraphs(this.api.info.description)),
      make("h2", {}, "Actions and paths"),
      make("table", { class: "overview" }, head, make("tbody", {}, ...rows)),
    ];
  }

  entryParts(entry) {
    const facts = entry.note ?? (entry.role ? `Role: ${entry.role}.` : "Needs no role.");
    const aliases = entry.aliases?.length ? ` Also: ${entry.aliases.join(", ")}.` : "";
    return [
      make("h1", {}, entry.title),
      make("p", {}, `${entry.summary}.`),
      make("p", { class: "facts" }, ...marked(facts + aliases)),
      make("h2", {}, entry.method === "GET" ? "Parameters" : "Fields"),
      fieldTable(entry.fields),
      make("h2", {}, "Result"),
      make("pre", {}, this.schemas.shape(entry.result)),
      ...this.exampleParts(entry),
      make("h2", {}, "Try it"),
      this.tryForm(entry),
    ];
  }

  exampleParts(entry) {
    if (!entry.example) return [];
    return [
      make("h2", {}, "Example"),
      make("pre", {}, pretty(entry.example.request)),
      make("pre", {}, pretty(entry.example.answer)),
    ];
  }

  tryForm(entry) {
    const says = make("p", { class: "says", role: "status" });
    const answer = make("pre", { hidden: true });
    const inputs = entry.method === "GET" ? parameterInputs(entry.fields) : [this.bodyInput(entry)];
    const send = make("button", {}, "Send");
    const onsubmit = async (event) => {
      event.preventDefault();
      send.disabled = true;
      await this.send(entry, event.target, says, answer);
      send.disabled = false;
    };
    const group = make("div", { class: entry.method === "GET" ? "parameters" : "" }, ...inputs);
    return make("form", { onsubmit, id: "try" }, group, send, says, answer);
  }

  bodyInput(entry) {
    const request = entry.example?.request ?? this.schemas.sketch(entry.request);
    const input = make("textarea", { name: "body", spellcheck: "false" });
    input.value = pretty(request);
    input.rows = Math.min(input.value.split("\n").length + 1, 24);
    return make("label", {}, "Request", input);
  }

  async send(entry, form, says, answer) {
    const began = performance.now();
    try {
      const given = new FormData(form);
      const got = await this.ask(entry, given);
      const took = Math.round(performance.now() - began);
      const body = got.body;
      const good = got.status === 200 && (body?.code ?? 200) === 200;
      says.className = `says ${good ? "good" : "bad"}`;
      says.textContent = `HTTP ${got.status}${body?.code == null ? "" : `, code ${body.code}`}, ${took} ms`;
      answer.textContent = typeof body === "string" ? body : pretty(body);
      answer.hidden = false;
      if (body?.resp === "login" && body.code === 200) this.setToken(body.result.token, body.result.username);
    } catch (error) {
      says.className = "says bad";
      says.textContent = error.message;
      answer.hidden = true;
    }
  }

  ask(entry, given) {
    if (entry.method !== "GET") return this.fetch(entry.path, entry.method ?? "POST", JSON.stringify(JSON.parse(given.get("body"))));
    const query = new URLSearchParams([...given].filter(([, value]) => value !== ""));
    return this.fetch(query.size ? `${entry.path}?${query}` : entry.path, "GET");
  }

  async fetch(path, method, body) {
    const headers = body === undefined ? {} : { "Content-Type": "application/json" };
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    const response = await fetch(path, { method, headers, body });
    const text = await response.text();
    const json = (response.headers.get("Content-Type") ?? "").startsWith("application/json");
    return { status: response.status, body: json ? JSON.parse(text) : text };
  }

  async logIn(event) {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.target));
    const { body } = await this.fetch(GATEWAY, "POST", JSON.stringify({ action: "login", ...given }));
    if (body.code !== 200) {
      by("account-says").textContent = body.info;
      return;
    }
    event.target.reset();
    this.setToken(body.result.token, body.result.username);
    by("account").open = false;
  }

  useToken(event) {
    event.preventDefault();
    this.setToken(event.target.token.value.trim().replace(/^Bearer /i, ""), "with a token");
    event.target.reset();
    by("account").open = false;
  }

  setToken(token, who) {
    sessionStorage.setItem(TOKEN, token);
    sessionStorage.setItem(`${TOKEN}-of`, token ? who : "");
    by("account-says").textContent = "";
    this.showAccount();
  }

  showAccount() {
    by("who").textContent = this.token ? `Logged in: ${sessionStorage.getItem(`${TOKEN}-of`)}` : "Log in";
  }
}

function roleOf(entry) {
  if (entry.role !== undefined) return entry.role ?? "–";
  return entry.open ? "–" : /Role: (\w+)/.exec(entry.note ?? "")?.[1] ?? "";
}

function row(tag, ...cells) {
  return make("tr", {}, ...cells.map((cell) => make(tag, {}, cell)));
}

function fieldTable(fields) {
  if (!fields.length) return make("p", { class: "facts" }, "None.");
  const rows = fields.map((field) =>
    make(
      "tr",
      {},
      make("td", { class: "name" }, field.name),
      make("td", {}, field.type),
      make("td", {}, field.required ? make("span", { class: "required" }, "required") : defaultOf(field)),
      make("td", {}, field.description ?? ""),
    ),
  );
  const head = make("thead", {}, row("th", "Name", "Type", "Default", "Meaning"));
  return make("div", { class: "scroll" }, make("table", { class: "fields" }, head, make("tbody", {}, ...rows)));
}

function defaultOf(field) {
  return field.default === null ? "" : JSON.stringify(field.default);
}

function parameterInputs(fields) {
  return fields.map((field) => {
    const input = make("input", { name: field.name, placeholder: field.default === null ? "" : `${field.default}` });
    input.required = field.required;
    return make("label", {}, field.name, input);
  });
}

// Text with `code` and **bold**, in paragraphs.
function paragraphs(text) {
  return text.split("\n\n").map((part) => make("p", {}, ...marked(part.replaceAll("\n", " "))));
}

function marked(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith("`")) return make("code", {}, part.slice(1, -1));
    return part.startsWith("**") ? make("strong", {}, part.slice(2, -2)) : part;
  });
}

function pretty(value) {
  return JSON.stringify(value, null, 2);
}

async function begin() {
  const response = await fetch("/openapi.json");
  if (!response.ok) throw new Error(`/openapi.json: HTTP ${response.status}`);
  new Page(await response.json());
}

begin().catch((error) => by("main").replaceChildren(make("p", { class: "says bad" }, error.message)));
