// api: the appliance's own answers. Nothing but this file sends the credential, and only to API_BASE.

function createApi(fetch) {
  /** {status, body, error}: status 0 when there was no answer, `body` what the JSON held, `error` what the server said. */
  async function ask(method, path, body) {
    try {
      const response = await fetch(API_BASE + path, {
        method,
        body,
        headers: { Authorization: `Bearer ${API_TOKEN}`, ...(body && { "Content-Type": "application/json" }) },
        credentials: "omit",
        cache: method === "GET" ? "no-cache" : "no-store", // the browser asks with the list's ETag by itself
        redirect: "error",
        referrerPolicy: "no-referrer",
        signal: AbortSignal.timeout(REQUEST_MS),
      });
      const text = await response.text();
      const json = parseJson(text);
      return { status: response.status, body: json, error: oneLine(json?.error).slice(0, 200) };
    } catch {
      return { status: 0, body: null, error: "" };
    }
  }

  return {
    list: () => ask("GET", "/bookmarks"),
    put: (key, body, advance) => ask("PUT", `/bookmarks/${encodeURIComponent(key)}${advance ? "?advance=1" : ""}`, body),
    remove: (key) => ask("DELETE", `/bookmarks/${encodeURIComponent(key)}`),
  };
}
