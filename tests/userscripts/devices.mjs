// A server with the rules of API-011 to API-048 that a script meets, and devices that speak to it.

import { load } from "./load.mjs";

export const parts = load(["config", "pages", "api", "progress", "store", "queue"], { structuredClone: (value) => new Map([...value].map(([key, { at, marker }]) => [key, { at, marker: { ...marker } }])) });

export function randomFrom(seed) {
  let state = seed;
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  return { random, below: (most) => Math.floor(random() * most), one: (list) => list[Math.floor(random() * list.length)] };
}

export class Server {
  rows = new Map();
  clock = 1;
  puts = [];

  put(key, text, advance) {
    const body = JSON.parse(text);
    this.puts.push({ key, body, advance });
    const stored = this.rows.get(key);
    const row = stored ? { ...stored } : {
      key, site: key.split(":")[0], series_id: key.slice(key.indexOf(":") + 1), title: body.title ?? "", series_url: body.series_url ?? "", cover: "",
      last_chapter: "", last_chapter_num: 0, last_chapter_url: "", favorite: false, latest_chapter: "", latest_chapter_num: null,
      updated_at: ++this.clock, status: "reading", kind: body.kind ?? "manga", finished: false,
    };
    const number = body.last_chapter_num;
    if (number != null && (!stored || !advance || number >= row.last_chapter_num)) {
      if (stored && number !== row.last_chapter_num) row.updated_at = ++this.clock;
      Object.assign(row, { last_chapter_num: number, last_chapter: body.last_chapter || `Chapter ${number}`, last_chapter_url: body.last_chapter_url || "" });
    }
    if (body.favorite != null) row.favorite = body.favorite;
    if (body.status) row.status = body.status;
    if (body.latest_chapter_num != null) Object.assign(row, { latest_chapter_num: body.latest_chapter_num, latest_chapter: body.latest_chapter });
    this.rows.set(key, row);
    return { status: 200, body: { ...row }, error: "" };
  }

  remove(key) {
    this.rows.delete(key);
    return { status: 204, body: null, error: "" };
  }

  list() {
    return { status: 200, body: [...this.rows.values()].map((row) => ({ ...row })), error: "" };
  }

  /** The api of a device that is always heard, unless `answer` says otherwise: a function of a call's name. */
  api(answer = () => null) {
    const call = async (name, ...values) => answer(name, ...values) ?? this[name](...values);
    return { list: () => call("list"), put: (...values) => call("put", ...values), remove: (...values) => call("remove", ...values) };
  }
}

export class Storage {
  items = new Map();
  limit = Infinity;

  getItem(name) {
    return this.items.get(name) ?? null;
  }

  setItem(name, value) {
    if (value.length > this.limit) throw new Error("QuotaExceededError");
    this.items.set(name, String(value));
  }

  removeItem(name) {
    this.items.delete(name);
  }
}

export function device({ api, storage = new Storage(), site = "asura", alone = parts.createAlone(), now = () => 1000, using = parts }) {
  const store = using.createStore(storage, site);
  const changes = { count: 0 };
  const queue = using.createQueue({ store, api, alone, now, changed: () => (changes.count += 1) });
  return { store, queue, storage, changes, row: (key) => store.rows().get(key), marker: (key) => store.queue().get(key)?.marker };
}

export function chapter(seriesId, number, site = "asura") {
  return {
    type: "chapter", site, seriesId, key: `${site}:${seriesId}`, title: `The ${seriesId}`, seriesUrl: `https://asurascans.com/comics/${seriesId}`,
    chapterNum: number, chapterLabel: number === null ? "" : `Chapter ${number}`, chapterUrl: `https://asurascans.com/comics/${seriesId}/chapter/${number}`,
  };
}

export const bookmark = (it, page) => it.queue.save(page.key, (row) => parts.bookmarked(row, page, 1000));
export const readChapter = (it, page) => it.queue.save(page.key, (row) => row && parts.readOn(row, page, 1000));
export const override = (it, key, number) => it.queue.save(key, (row) => row && parts.overridden(row, number, null, 1000), { manual: true });
export const archive = (it, key, status = "archived") => it.queue.save(key, (row) => row && { ...row, status }, { status: true });
export const star = (it, key, favorite) => it.queue.save(key, (row) => row && { ...row, favorite, favorite_unsent: true });
