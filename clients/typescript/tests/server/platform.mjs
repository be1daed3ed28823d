// What the tests against a started platform share; TERRAZZO_URL and TERRAZZO_PASSWORD say where it is.
import { createServer as createHttp } from "node:http";
import { connect, createServer } from "node:net";

export const url = process.env.TERRAZZO_URL;
export const credentials = { username: "admin", password: process.env.TERRAZZO_PASSWORD };

/** Stands between a client and the platform; can cut every connection, and can leave them open and pass nothing on. */
export async function relay() {
  const pairs = new Set();
  const target = new URL(url);
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    const pair = { near, far, isFrozen: false };
    pairs.add(pair);
    for (const [from, to] of [[near, far], [far, near]]) {
      from.on("data", (data) => pair.isFrozen || to.write(data));
      from.on("error", () => undefined);
      from.on("close", () => {
        pairs.delete(pair);
        to.destroy();
      });
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = () => pairs.forEach(({ near }) => near.destroy());
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    cut,
    freeze: () => pairs.forEach((pair) => (pair.isFrozen = true)),
    close: () => {
      server.close();
      cut();
    },
  };
}

/** Answers as a list of `[status, envelope, headers]` says, each once; `null` ends the connection. What was asked is kept. */
export async function stub(answers) {
  const asked = [];
  const server = createHttp((request, response) => {
    let text = "";
    request.on("data", (data) => (text += data));
    request.on("end", () => {
      asked.push({ action: request.url.split("/").at(-1), fields: JSON.parse(text || "{}"), headers: request.headers });
      const answer = answers.shift();
      if (!answer) return request.socket.destroy();
      const [status, envelope, headers = {}] = answer;
      response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(envelope));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${server.address().port}`, asked, close };
}

/** A port where nobody is. */
export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
