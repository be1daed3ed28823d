/** Whatever is typed outlives a reload: each state that a field writes is a draft, or stands below with the reason why it is none. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import ts from "typescript";

const HERE = process.cwd();
const WRITES = /^on(Input|Change)$/;

function sources(): [name: string, source: ts.SourceFile][] {
  const found: [string, ts.SourceFile][] = [];
  for (const folder of readdirSync(HERE, { withFileTypes: true })) {
    if (!folder.isDirectory() || ["node_modules", "generated", "tests"].includes(folder.name)) continue;
    for (const file of readdirSync(join(HERE, folder.name))) {
      if (!file.endsWith(".tsx")) continue;
      const name = `${folder.name}/${file}`;
      found.push([name, ts.createSourceFile(name, readFileSync(join(HERE, name), "utf-8"), ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX)]);
    }
  }
  return found;
}

/** Each state of `useState` that the handler of a field writes, as `file.tsx name`. */
function typedStates(): string[] {
  return sources().flatMap(([name, source]) => ofFile(source).map((state) => `${name} ${state}`)).sort();
}

/** Fields without a handler, which a form would read only when it is sent: what is typed in them is in no state. */
function fieldsWithout(source: ts.SourceFile): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isJsxSelfClosingElement(node) || ts.isJsxOpeningElement(node)) {
      const attributes = node.attributes.properties;
      const names = attributes.map((each) => (ts.isJsxAttribute(each) ? each.name.getText() : "..."));
      if (/^(input|select|textarea)$/.test(node.tagName.getText()) && !names.some((name) => WRITES.test(name) || name === "readOnly" || name === "...")) found.push(node.getText().slice(0, 80));
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** A component's states, and what its functions call. */
function ofFile(source: ts.SourceFile): string[] {
  const found = new Set<string>();
  const visit = (node: ts.Node, scope: Scope): void => {
    const inner = ts.isFunctionLike(node) ? declaredIn(node, scope) : scope;
    if (ts.isJsxAttribute(node) && WRITES.test(node.name.getText()) && node.initializer) for (const state of writtenBy(node.initializer, inner, new Set())) found.add(state);
    ts.forEachChild(node, (child) => visit(child, inner));
  };
  visit(source, new Map());
  return [...found];
}

/** What a name means: the state that a setter writes, or a function of the component. */
type Scope = Map<string, { state: string } | { body: ts.Node; scope: Scope } | null>;

function declaredIn(node: ts.SignatureDeclaration, outer: Scope): Scope {
  const scope: Scope = new Map(outer);
  for (const parameter of node.parameters) namesOf(parameter.name).forEach((name) => scope.set(name, null));
  const body = "body" in node ? (node.body as ts.Node | undefined) : undefined;
  if (!body || !ts.isBlock(body)) return scope;
  for (const statement of body.statements) {
    if (!ts.isVariableStatement(statement)) continue;
    for (const { name, initializer } of statement.declarationList.declarations) {
      if (!initializer) continue;
      const isState = ts.isCallExpression(initializer) && initializer.expression.getText() === "useState";
      if (ts.isArrayBindingPattern(name)) {
        const [value, setter] = namesOf(name);
        if (isState && value) scope.set(setter ?? "", { state: value });
        else namesOf(name).forEach((each) => scope.set(each, null));
      } else if (ts.isIdentifier(name)) scope.set(name.text, ts.isFunctionLike(initializer) ? { body: initializer, scope } : null);
    }
  }
  return scope;
}

function namesOf(name: ts.BindingName): string[] {
  if (ts.isIdentifier(name)) return [name.text];
  return name.elements.flatMap((each) => (ts.isBindingElement(each) ? namesOf(each.name) : [""]));
}

/** The states that an expression writes, itself or by the functions that it names. */
function writtenBy(node: ts.Node, scope: Scope, seen: Set<ts.Node>): string[] {
  if (seen.has(node)) return [];
  seen.add(node);
  const found: string[] = [];
  if (ts.isIdentifier(node)) {
    const meant = scope.get(node.text);
    if (meant && "state" in meant) found.push(meant.state);
    else if (meant) found.push(...writtenBy(meant.body, meant.scope, seen));
  }
  ts.forEachChild(node, (child) => void found.push(...writtenBy(child, scope, seen)));
  return found;
}

const FOUND = "a search of what is there: nothing is made of it but what is chosen";
const SECRET = "a secret, or what stands beside one";
const CHOICE = "a choice of one click, of what is done next";
const STATE = "not what is typed, but what becomes of it";

/** States that fields write and that no reload brings back, each with the reason. */
const EXCUSED: Readonly<Record<string, string>> = {
  "commands/sending.tsx isWaiting": "a consent: it is given when the command is sent",
  "dashboards/editor.tsx history": "kept by useKept, with the name and what it was made of",
  "dashboards/editor.tsx name": "kept by useKept",
  "dashboards/form.tsx code": CHOICE,
  "dashboards/form.tsx narrow": STATE,
  "dashboards/form.tsx objectId": CHOICE,
  "dashboards/form.tsx text": FOUND,
  "dashboards/picture.tsx isBusy": STATE,
  "events/events.tsx text": "it stands in the link",
  "events/events.tsx turn": STATE,
  "events/labels.tsx chosen": CHOICE,
  "login/account.tsx fresh": SECRET,
  "login/account.tsx old": SECRET,
  "login/account.tsx repeat": SECRET,
  "login/other.tsx code": SECRET,
  "login/other.tsx password": SECRET,
  "login/other.tsx username": SECRET,
  "login/page.tsx code": SECRET,
  "login/page.tsx password": SECRET,
  "login/page.tsx username": SECRET,
  "login/second-factor.tsx code": SECRET,
  "login/second-factor.tsx password": SECRET,
  "mapping/file-buttons.tsx wrong": STATE,
  "mapping/grid.tsx text": FOUND,
  "mapping/replay.tsx left": CHOICE,
  "mapping/variables.tsx typed": "as long as it can't be read: what can be is in the draft of the table",
  "objects/files.tsx at": STATE,
  "objects/list.tsx text": "it stands in the link",
  "parts/forms.tsx error": STATE,
  "parts/forms.tsx isBusy": STATE,
  "shell/search.tsx text": FOUND,
  "terminals/bulk.tsx isAll": CHOICE,
  "terminals/import.tsx mode": CHOICE,
  "terminals/list.tsx text": "it stands in the link",
  "terminals/messages.tsx isRaw": CHOICE,
  "terminals/terminal.tsx isSecure": CHOICE,
  "terminals/trace.tsx kind": CHOICE,
  "terminals/trace.tsx minutes": CHOICE,
};

test("what is typed is a draft, or is excused", () => {
  const excused = Object.keys(EXCUSED).sort();
  assert.deepEqual(typedStates().filter((each) => !excused.includes(each)), [], "goes through useDraft (shell/drafts.ts), or has an excuse here");
  assert.deepEqual(excused.filter((each) => !typedStates().includes(each)), [], "has an excuse and is not there any more");
});

test("a state that a field writes by a function of a function is found", () => {
  const text = `function Part() {
    const [typed, setTyped] = useState("");
    const [other, setOther] = useState("");
    const [kept] = useState(1);
    const { value, set } = useDraft("x", "");
    const change = (text: string): void => setTyped(text);
    const more = (event: Event): void => change(event.type);
    return <p onClick={() => setOther("")}><input onInput={more} /><input onChange={(event) => set(event.currentTarget.value)} /></p>;
  }`;
  assert.deepEqual(ofFile(ts.createSourceFile("part.tsx", text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX)), ["typed"]);
});

test("a field that writes nothing is not read by what it happens to hold", () => {
  const without = sources().flatMap(([name, source]) => fieldsWithout(source).map((field) => `${name} ${field}`));
  assert.deepEqual(without, []);
});
