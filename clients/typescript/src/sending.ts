/** Sending a file so that one hears how far it is: by XMLHttpRequest where there is one, since `fetch` tells nothing of what it sends. */

export interface Telling {
  /** Bytes that have left; where there is no XMLHttpRequest only once all have. */
  onSent?: (bytes: number) => void;
  /** The answer as far as it has come. */
  onText?: (text: string) => void;
  /** Milliseconds without anything sent or received after which it is given up. */
  quietMs: number;
  signal?: AbortSignal | undefined;
}

/** Posts a file; the answer, once all of it is there. Throws what `fetch` throws. */
export async function sendTold(url: string, headers: Record<string, string>, file: Blob, telling: Telling): Promise<Response> {
  telling.signal?.throwIfAborted();
  const stop = new AbortController();
  const abort = (): void => stop.abort(telling.signal?.reason);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const heard = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => stop.abort(new DOMException("nothing was sent or received", "TimeoutError")), telling.quietMs);
  };
  telling.signal?.addEventListener("abort", abort);
  heard();
  const told: Told = {
    stop: stop.signal,
    sent: (bytes) => (heard(), telling.onSent?.(bytes)),
    came: (text) => (heard(), telling.onText?.(text)),
  };
  try {
    return await (typeof XMLHttpRequest === "undefined" ? byFetch(url, headers, file, told) : byRequest(url, headers, file, told));
  } finally {
    clearTimeout(timer);
    telling.signal?.removeEventListener("abort", abort);
  }
}

interface Told {
  stop: AbortSignal;
  sent: (bytes: number) => void;
  came: (text: string) => void;
}

function byRequest(url: string, headers: Record<string, string>, file: Blob, told: Told): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => told.sent(Math.min(event.loaded, file.size));
    request.upload.onload = () => told.sent(file.size);
    request.onprogress = () => told.came(request.responseText);
    request.onload = () => resolve(new Response(request.responseText, { status: request.status, headers: headersOf(request.getAllResponseHeaders()) }));
    request.onerror = () => reject(new TypeError("the request did not get through"));
    request.onabort = () => reject(told.stop.reason as Error);
    told.stop.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

function headersOf(lines: string): Headers {
  const found = new Headers();
  for (const line of lines.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) found.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return found;
}

async function byFetch(url: string, headers: Record<string, string>, file: Blob, told: Told): Promise<Response> {
  const response = await fetch(url, { method: "POST", headers, body: file, signal: told.stop });
  told.sent(file.size);
  const decoder = new TextDecoder();
  let text = "";
  const reader = response.body?.getReader();
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
    text += decoder.decode(piece.value, { stream: true });
    told.came(text);
  }
  return new Response(text + decoder.decode(), { status: response.status, headers: response.headers });
}
