// A window, its document and its clock, as far as the scripts look at them.

import { load, LOGIC } from "./load.mjs";
import { page } from "./page.mjs";
import { Server, Storage } from "./devices.mjs";

export class Browser {
  time = 1_700_000_000_000;
  timers = new Map();
  made = 0;
  states = [];
  fetched = [];
  online = true;

  constructor({ address, content = {}, server = new Server(), storage = new Storage(), navigationApi = true, library = "manga" }) {
    Object.assign(this, { server, storage, navigationApi });
    this.events = new EventTarget();
    this.documentEvents = new EventTarget();
    this.navigationEvents = new EventTarget();
    this.location = new URL(address);
    this.document = this.show(content);
    const setInterval = (work, every) => {
      const again = () => (this.later(again, every), work());
      this.later(again, every);
    };
    this.parts = load(LOGIC, { setTimeout: (...call) => this.later(...call), clearTimeout: (id) => this.timers.delete(id), setInterval }, library);
  }

  /** Other content in the same document. */
  show(content) {
    const target = this.document ?? {
      visibilityState: "visible",
      addEventListener: (...listener) => this.documentEvents.addEventListener(...listener),
      removeEventListener: (...listener) => this.documentEvents.removeEventListener(...listener),
    };
    const { title, querySelector, querySelectorAll } = page(content);
    return Object.assign(target, { title, querySelector, querySelectorAll });
  }

  /** What a page's own router does: the address first, and the content after it, or not. */
  move(path, content) {
    this.location = new URL(path, this.location);
    if (this.navigationApi) this.navigationEvents.dispatchEvent(new Event("currententrychange"));
    if (content) this.show(content);
  }

  happen(type, fields = {}, isTrusted = true) {
    const event = Object.defineProperty(Object.assign(new Event(type), fields), "isTrusted", { value: isTrusted });
    const listeners = { visibilitychange: 1, scroll: 1, wheel: 1, touchmove: 1, keydown: 1 };
    // A dispatched event is never a trusted one, so the listeners get one that says so of itself.
    (type in listeners ? this.documentEvents : this.events).dispatchEvent(event);
  }

  env() {
    const browser = this;
    return {
      window: {
        get location() { return browser.location; },
        navigator: { get onLine() { return browser.online; } },
        navigation: this.navigationApi ? this.navigationEvents : undefined,
        addEventListener: (...listener) => this.events.addEventListener(...listener),
      },
      document: this.document,
      storage: this.storage,
      locks: undefined,
      fetch: (address, options) => this.fetch(String(address), options),
      parseHtml: (html) => page(JSON.parse(html)),
      now: () => this.time,
      createPanel: (given) => {
        this.panel = given;
        return { render: (state) => this.states.push(state) };
      },
    };
  }

  later(work, delay = 0) {
    this.timers.set(++this.made, { at: this.time + delay, work });
    return this.made;
  }

  pages = new Map(); // address -> what a fetch of it gives, for `page`

  async fetch(address, options) {
    this.fetched.push([address, options]);
    if (!address.startsWith("https://books.example/")) {
      const content = this.pages.get(address);
      return { ok: content !== undefined, status: content ? 200 : 404, url: content?.url ?? address, text: async () => JSON.stringify(content ?? {}) };
    }
    if (!this.online) throw new TypeError("Failed to fetch");
    const { pathname, search } = new URL(address);
    const key = decodeURIComponent(pathname.replace("/bookmarks", "").slice(1));
    const answer = options.method === "GET" ? this.server.list() : options.method === "PUT" ? this.server.put(key, options.body, search === "?advance=1") : this.server.remove(key);
    return { status: answer.status, text: async () => JSON.stringify(answer.body) };
  }

  async start() {
    this.parts.start(this.env());
    await this.pass(0);
    return this;
  }

  /** `ms` go by, with everything that was to happen in them. */
  async pass(ms) {
    const end = this.time + ms;
    await settled();
    for (;;) {
      const next = [...this.timers].filter(([, { at }]) => at <= end).sort((a, b) => a[1].at - b[1].at || a[0] - b[0])[0];
      if (!next) break;
      this.timers.delete(next[0]);
      this.time = Math.max(this.time, next[1].at);
      next[1].work();
      await settled();
    }
    this.time = end;
  }

  get state() {
    return this.states.at(-1);
  }
}

async function settled() {
  for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate);
}
