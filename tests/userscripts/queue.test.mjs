// Rows, storage and the queue, rule by rule.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { archive, bookmark, chapter, device, override, parts, readChapter, Server, star, Storage } from "./devices.mjs";
import { load } from "./load.mjs";

const KEY = "asura:one";
const QUEUE = "bmgr:manga:queue";
const CACHE = "bmgr:manga:cache";

/** A device that holds one Bookmark, and a way to set what its next calls are answered. */
async function holding(number = 10, options = {}) {
  const server = new Server();
  const answers = { next: null };
  const it = device({ api: server.api((...call) => (typeof answers.next === "function" ? answers.next(...call) : answers.next)), ...options });
  server.put(KEY, JSON.stringify({ title: "The one", series_url: "https://asurascans.com/comics/one", last_chapter_num: number }), false);
  await it.queue.refresh();
  server.puts.length = 0;
  return { ...it, server, answers, stored: () => server.rows.get(KEY) };
}

const fails = (status, error = "") => ({ status, body: null, error });

describe("Progress (USR-015)", () => {
  test("a chapter that is read goes with ?advance=1, a person's number without", async () => {
    const it = await holding(10);
    await readChapter(it, chapter("one", 12.5));
    await override(it, KEY, 3);
    assert.deepEqual(it.server.puts.map(({ body, advance }) => [body.last_chapter_num, advance]), [[12.5, true], [3, false]]);
    assert.equal(it.stored().last_chapter_num, 3);
    assert.equal(it.stored().last_chapter_url, "");
  });

  test("a chapter behind is offered as it is, kept nowhere, and the server's word is taken", async () => {
    const it = await holding(10);
    await it.queue.offer(it.row(KEY), chapter("one", 3));
    assert.deepEqual([it.server.puts[0].body.last_chapter_num, it.server.puts[0].advance], [3, true]);
    assert.equal(it.row(KEY).last_chapter_num, 10);
    it.server.rows.get(KEY).last_chapter_num = 2; // another device has set it back
    await it.queue.offer(it.row(KEY), chapter("one", 3));
    assert.equal(it.row(KEY).last_chapter_num, 3);
    it.answers.next = fails(0);
    await it.queue.offer(it.row(KEY), chapter("one", 2));
    assert.equal(it.store.queue().size, 0);
  });

  test("reading keeps the cached title and Series address, equal numbers take the page's address", () => {
    const row = parts.rowOf({ key: KEY, title: "Cached", series_url: "https://asurascans.com/comics/old", last_chapter_num: 12, updated_at: 5 });
    const read = parts.readOn(row, chapter("one", 12), 1000);
    assert.deepEqual([read.title, read.series_url, read.last_chapter_url, read.updated_at],
      ["Cached", "https://asurascans.com/comics/old", "https://asurascans.com/comics/one/chapter/12", 5]);
    assert.equal(parts.readOn(row, chapter("one", 11.9), 1000), null);
    assert.equal(parts.readOn(row, chapter("one", 13), 1000).updated_at, 1000);
  });

  test("a Bookmark by hand takes the page's word, else the cached row's, else the id", () => {
    const made = parts.bookmarked(undefined, { ...chapter("one", 12), title: "" }, 1000);
    assert.deepEqual([made.title, made.last_chapter_num, made.kind, made.status], ["one", 12, "manga", "reading"]);
    const cached = { ...made, title: "Cached", last_chapter_num: 7 };
    const series = { ...chapter("one", null), type: "series", title: "", seriesUrl: "", chapterUrl: "" };
    const again = parts.bookmarked(cached, series, 1000);
    assert.deepEqual([again.title, again.series_url, again.last_chapter_num], ["Cached", cached.series_url, 7]);
    assert.equal(parts.outgoing(parts.bookmarked(undefined, series, 1000), {}).last_chapter_num, undefined);
  });

  test("a person's number knows its address only on its own page", () => {
    const row = parts.rowOf({ key: KEY, last_chapter_num: 5, last_chapter_url: "https://asurascans.com/5" });
    const address = (page, number) => parts.overridden(row, number, page, 1000).last_chapter_url;
    assert.equal(address(chapter("one", 8), 8), chapter("one", 8).chapterUrl);
    assert.equal(address(chapter("one", null), 8), chapter("one", null).chapterUrl);
    assert.equal(address(chapter("one", 8), 9), "");
    assert.equal(address(chapter("two", 8), 8), "");
    assert.equal(address(null, 5), "https://asurascans.com/5");
  });
});

describe("the body of a PUT (USR-016)", () => {
  test("never a cover, a bucket only when this write changes it, nothing of the server's", async () => {
    const it = await holding();
    await readChapter(it, chapter("one", 11));
    await star(it, KEY, true);
    await archive(it, KEY);
    const bodies = it.server.puts.map(({ body }) => body);
    for (const body of bodies) {
      for (const name of ["cover", "finished", "updated_at", "latest_chapter", "latest_chapter_num", "favorite_unsent"]) assert.ok(!(name in body), name);
      assert.equal(body.kind, "manga");
    }
    assert.deepEqual(bodies.map((body) => [body.status, body.favorite]), [[undefined, undefined], [undefined, true], ["archived", undefined]]);
    assert.deepEqual(it.server.puts.map(({ advance }) => advance), [true, true, true]);
  });

  test("archiving keeps Progress; reading an archived Series leaves it archived", async () => {
    const it = await holding(10);
    await archive(it, KEY);
    await readChapter(it, chapter("one", 11));
    assert.deepEqual([it.stored().last_chapter_num, it.stored().status], [11, "archived"]);
  });

  test("a star that another device set is not undone by reading with an old list", async () => {
    const it = await holding(10);
    it.stored().favorite = true;
    await readChapter(it, chapter("one", 11));
    assert.equal(it.stored().favorite, true);
    assert.equal(it.row(KEY).favorite, true);
  });
});

describe("the queue (USR-018)", () => {
  test("work of days without a network arrives once, as one PUT", async () => {
    const it = await holding(10);
    it.answers.next = fails(0);
    await readChapter(it, chapter("one", 14));
    for (let visit = 0; visit < 40; visit++) await it.queue.refresh();
    await readChapter(it, chapter("one", 15));
    await archive(it, KEY);
    await readChapter(it, chapter("one", 15));
    assert.deepEqual(it.queue.state(), { state: "waiting", waiting: 1, oldestAt: 1000, unstored: false, givenUp: false, notice: "" });
    it.answers.next = null;
    await it.queue.refresh();
    assert.deepEqual(it.server.puts.map(({ body, advance }) => [body.last_chapter_num, body.status, advance]), [[15, "archived", true]]);
    assert.deepEqual([it.stored().last_chapter_num, it.stored().status], [15, "archived"]);
    assert.equal(it.queue.state().state, "saved");
  });

  test("sendStatus and manual stick until they are sent", async () => {
    const it = await holding(10);
    it.answers.next = fails(0);
    await archive(it, KEY);
    await override(it, KEY, 4);
    await readChapter(it, chapter("one", 5));
    const marker = it.marker(KEY);
    assert.deepEqual(Object.keys(marker), ["key", "op", "sendStatus", "manual", "attempts"]);
    assert.ok(marker.sendStatus && marker.manual);
    it.answers.next = null;
    await it.queue.refresh();
    assert.deepEqual(it.server.puts.map(({ body, advance }) => [body.last_chapter_num, body.status, advance]), [[5, "archived", false]]);
  });

  test("what is read while a person's number is under way does not travel as one", async () => {
    const it = await holding(10);
    let answer;
    it.answers.next = (name, ...values) => {
      if (name !== "put" || answer) return null;
      return new Promise((resolve) => (answer = () => resolve(it.server.put(...values))));
    };
    const edit = override(it, KEY, 4);
    await new Promise(setImmediate);
    const read = readChapter(it, chapter("one", 5));
    await new Promise(setImmediate);
    answer();
    await Promise.all([edit, read]);
    assert.deepEqual(it.server.puts.map(({ body, advance }) => [body.last_chapter_num, advance]), [[4, false], [5, true]]);
    assert.equal(it.store.queue().size, 0);
  });

  test("removed and made anew without a network: the server gets the new one, whole", async () => {
    const it = await holding(10);
    it.stored().favorite = true;
    it.answers.next = fails(0);
    await archive(it, KEY);
    await it.queue.remove(KEY);
    assert.equal(it.marker(KEY).op, "delete");
    assert.equal(it.row(KEY), undefined);
    await bookmark(it, chapter("one", 2));
    it.answers.next = null;
    await it.queue.refresh();
    assert.deepEqual([it.stored().last_chapter_num, it.stored().status, it.stored().favorite], [2, "reading", false]);
    await it.queue.remove(KEY);
    assert.equal(it.server.rows.size, 0);
  });

  test("400 gives up and says so; the server's word stands after the next list", async () => {
    const it = await holding(10);
    it.answers.next = (name) => (name === "put" ? fails(400, "title: must be shorter") : null);
    await readChapter(it, chapter("one", 11));
    assert.equal(it.store.queue().size, 0);
    assert.match(it.queue.state().notice, /The one.*title: must be shorter/);
    await it.queue.refresh();
    assert.equal(it.row(KEY).last_chapter_num, 10);
  });

  test("401 stops, keeps everything and asks for a new install", async () => {
    const it = await holding(10);
    it.answers.next = fails(401);
    await readChapter(it, chapter("one", 11));
    await bookmark(it, chapter("two", 1));
    assert.equal(it.queue.state().state, "signed-out");
    assert.equal(it.queue.state().waiting, 2);
    assert.equal(it.marker(KEY).attempts, 0);
    it.answers.next = fails(0);
    await it.queue.refresh();
    assert.equal(it.queue.state().state, "signed-out");
    it.answers.next = null;
    await it.queue.refresh();
    assert.equal(it.queue.state().state, "saved");
  });

  test("ten answers that are failures are enough: it is kept, said, and tried when a person asks", async () => {
    const it = await holding(10);
    let asked = 0;
    it.answers.next = (name) => (name === "put" ? ((asked += 1), fails(500)) : null);
    await readChapter(it, chapter("one", 11));
    for (let visit = 0; visit < 20; visit++) await it.queue.refresh();
    assert.equal(asked, 10);
    assert.equal(it.row(KEY).last_chapter_num, 11);
    assert.equal(it.queue.state().waiting, 1);
    assert.match(it.queue.state().notice, /try again/);
    assert.deepEqual(load(["config", "panel"]).panelRules.notices({ sync: it.queue.state() }, "").map(([, way]) => way), ["retry"]);
    it.answers.next = null;
    await it.queue.retry();
    assert.equal(it.stored().last_chapter_num, 11);
    assert.deepEqual(it.queue.state(), { state: "saved", waiting: 0, oldestAt: 0, unstored: false, givenUp: false, notice: "" });
  });

  test("one Series that fails does not hold up another; a server that is away does", async () => {
    const it = await holding(10);
    it.answers.next = (name, key) => (name === "put" && key === KEY ? fails(500) : null);
    await readChapter(it, chapter("one", 11));
    await bookmark(it, chapter("two", 1));
    assert.deepEqual([...it.store.queue().keys()], [KEY]);
    let asked = 0;
    it.answers.next = () => ((asked += 1), fails(503));
    await bookmark(it, chapter("three", 1));
    assert.equal(asked, 1);
  });

  test("a success that is not the row is none", async () => {
    const it = await holding(10);
    it.answers.next = (name) => (name === "put" ? { status: 200, body: "<html>hotel login</html>", error: "" } : null);
    await readChapter(it, chapter("one", 11));
    assert.equal(it.marker(KEY).attempts, 1);
  });

  test("the answer to a PUT becomes the row", async () => {
    const it = await holding(10);
    it.stored().title = "As the server has it";
    it.stored().finished = true;
    await readChapter(it, chapter("one", 11));
    assert.deepEqual([it.row(KEY).title, it.row(KEY).finished, it.row(KEY).updated_at], ["As the server has it", true, it.stored().updated_at]);
  });

  test("what waits lies over the list that comes, and only as far as it goes", async () => {
    const it = await holding(10);
    it.answers.next = (name) => (name === "list" ? null : fails(0));
    await readChapter(it, chapter("one", 11));
    await bookmark(it, chapter("two", 1));
    Object.assign(it.stored(), { last_chapter_num: 20, favorite: true, latest_chapter_num: 30 });
    await it.queue.refresh();
    assert.deepEqual([it.row(KEY).last_chapter_num, it.row(KEY).favorite, it.row(KEY).latest_chapter_num], [20, true, 30]);
    assert.equal(it.row("asura:two").last_chapter_num, 1);
    await it.queue.remove(KEY);
    await it.queue.refresh();
    assert.equal(it.row(KEY), undefined);
  });

  test("another Site's Series waits in this tab's memory, and the panel is told so", async () => {
    const it = await holding(10);
    it.server.put("comix:x", JSON.stringify({ title: "X" }), false);
    await it.queue.refresh();
    it.answers.next = fails(0);
    await archive(it, "comix:x");
    assert.equal(it.storage.getItem(QUEUE) ?? "[]", "[]");
    assert.equal(it.queue.state().unstored, true);
    it.answers.next = null;
    await it.queue.refresh();
    assert.equal(it.server.rows.get("comix:x").status, "archived");
    assert.equal(it.queue.state().unstored, false);
  });

  test("keys of another Site that the page wrote into storage are not sent", async () => {
    const it = await holding(10);
    const forged = ["comix:x", KEY].map((key) => [1, { key, op: "delete", sendStatus: 0, manual: 0, attempts: 0 }]);
    it.storage.setItem(QUEUE, JSON.stringify(forged));
    it.server.put("comix:x", JSON.stringify({ title: "X" }), false);
    await it.queue.refresh();
    assert.deepEqual([...it.server.rows.keys()], ["comix:x"]);
    assert.equal(it.row("comix:x").title, "X");
  });
});

describe("storage (USR-019, USR-014)", () => {
  test("three names under the Library's prefix, and the credential in none", async () => {
    const it = await holding(10);
    it.answers.next = fails(0);
    await readChapter(it, chapter("one", 11));
    it.store.writeLastChecked(new Map([[KEY, 5]]));
    assert.deepEqual([...it.storage.items.keys()].sort(), [CACHE, "bmgr:manga:lastchecked", QUEUE]);
    assert.ok(![...it.storage.items.values()].some((text) => text.includes("c".repeat(64))));
    const novel = load(["config", "pages", "progress", "store", "queue"], {}, "novel");
    assert.equal(novel.PREFIX, "bmgr:novel:");
  });

  test("a row without a kind is manga, and a Library shows its own alone", () => {
    const rows = [{ key: "asura:a" }, { key: "novelfull:b", kind: "novel" }];
    assert.deepEqual([...parts.rowsOf(rows).keys()], ["asura:a"]);
    const novel = load(["config", "pages", "progress", "store"], {}, "novel");
    assert.deepEqual([...novel.rowsOf(rows).keys()], ["novelfull:b"]);
  });

  test("whatever the page writes there, nothing but rows, markers and times comes out", () => {
    const hostile = [
      "null", "7", '"x"', "{}", "[[[]]]", "[null,7,{},[]]", "{", '[{"key":7}]', '[{"key":"nocolon"}]', '{"__proto__":{"polluted":1}}',
      '[{"key":"asura:x","__proto__":{"polluted":1},"constructor":"y","op":"put"}]', `[{"key":"asura:${"x".repeat(700)}","op":"put"}]`,
      '[{"key":"asura:x","op":"eval","attempts":-5}]', '[[1e400,{"key":"asura:x","op":"put","manual":"yes","sendStatus":{},"attempts":"many"}]]',
    ];
    for (const text of hostile) {
      const storage = new Storage();
      for (const name of ["cache", "queue", "lastchecked"]) storage.setItem(`bmgr:manga:${name}`, text);
      const it = device({ api: new Server().api(), storage });
      for (const row of it.store.rows().values()) assert.deepEqual(Object.keys(row).length, 16);
      for (const { at, marker } of it.store.queue().values()) {
        assert.ok(["put", "delete"].includes(marker.op));
        for (const number of [at, marker.sendStatus, marker.manual, marker.attempts]) assert.ok(Number.isSafeInteger(number) && number >= 0);
      }
      for (const time of it.store.lastChecked().values()) assert.ok(Number.isSafeInteger(time));
      it.queue.state();
      assert.equal({}.polluted, undefined);
    }
  });

  test("a row's addresses are web addresses and its cover is ours", () => {
    const row = parts.rowOf({ key: KEY, series_url: "javascript:alert(1)", last_chapter_url: "data:text/html,x", cover: "https://books.example.evil/covers/x", last_chapter_num: NaN, favorite: "yes", status: "x", updated_at: "7" });
    assert.deepEqual([row.series_url, row.last_chapter_url, row.cover, row.last_chapter_num, row.favorite, row.status, row.updated_at], ["", "", "", 0, false, "reading", 0]);
    assert.equal(parts.rowOf({ key: KEY, cover: "https://books.example/covers/a.webp" }).cover, "https://books.example/covers/a.webp");
  });

  test("where storage is full, what waits stays in the tab and the panel is told; nothing older is sent later", async () => {
    const it = await holding(10);
    it.answers.next = fails(0);
    it.storage.limit = 60;
    await readChapter(it, chapter("one", 11));
    assert.equal(it.queue.state().unstored, true);
    assert.equal(it.row(KEY).last_chapter_num, 11);
    assert.equal(it.storage.getItem(CACHE), null);
    it.answers.next = null;
    await it.queue.retry();
    assert.equal(it.stored().last_chapter_num, 11);
    assert.equal(it.queue.state().unstored, false);
  });

  test("a list too long for storage leaves room for what waits", async () => {
    const it = await holding(10);
    for (let n = 0; n < 200; n++) it.server.put(`asura:s${n}`, JSON.stringify({ title: "x".repeat(50) }), false);
    it.storage.limit = 2000;
    it.answers.next = (name) => (name === "put" ? fails(0) : null);
    await it.queue.refresh();
    await readChapter(it, chapter("one", 11));
    assert.equal(it.queue.state().unstored, false);
    assert.equal(it.store.rows().size, 201);
    const later = device({ api: it.server.api(), storage: it.storage });
    await later.queue.refresh();
    assert.equal(it.stored().last_chapter_num, 11);
  });

  test("a tab that keeps a list too long for storage hears what another tab has written meanwhile", async () => {
    const server = new Server();
    let heard = true;
    const api = server.api(() => (heard ? null : fails(0)));
    for (let n = 0; n < 50; n++) server.put(`asura:s${n}`, JSON.stringify({ title: "x".repeat(100), last_chapter_num: 1 }), false);
    const storage = Object.assign(new Storage(), { limit: 5000 });
    const [one, other] = [device({ api, storage }), device({ api, storage })];
    await one.queue.refresh();
    await other.queue.refresh();
    heard = false;
    await readChapter(other, chapter("s1", 12));
    assert.equal(one.row("asura:s1").last_chapter_num, 12);
    assert.equal(one.store.rows().size, 50);
    await other.queue.remove("asura:s2");
    await readChapter(one, chapter("s2", 3)); // must not undo the removal
    assert.equal(one.marker("asura:s2").op, "delete");
    heard = true;
    await one.queue.refresh();
    assert.equal(server.rows.get("asura:s1").last_chapter_num, 12);
    assert.equal(other.queue.state().state, "saved");
  });

  test("what waits in one full tab is not undone by what another tab could store", async () => {
    const server = new Server();
    const api = server.api(() => fails(0));
    const storage = Object.assign(new Storage(), { limit: 60 });
    const [one, other] = [device({ api, storage }), device({ api, storage })];
    await bookmark(one, chapter("one", 11));
    storage.limit = Infinity;
    await bookmark(other, chapter("two", 5));
    assert.deepEqual([...one.store.queue().keys()].sort(), ["asura:one", "asura:two"]);
    await readChapter(one, chapter("one", 12));
    assert.deepEqual([...other.store.queue().keys()].sort(), ["asura:one", "asura:two"]);
    assert.equal(other.row("asura:one").last_chapter_num, 12);
  });

  test("no storage at all is no failure", async () => {
    const server = new Server();
    const it = device({ api: server.api(), storage: null });
    await bookmark(it, chapter("one", 3));
    assert.equal(server.rows.get(KEY).last_chapter_num, 3);
  });

  test("the first install's keys move once, where they are not there yet", () => {
    const storage = new Storage();
    storage.setItem("mangabm:cache", JSON.stringify([{ key: KEY, title: "Old", last_chapter_num: 7 }]));
    storage.setItem("mangabm:queue", JSON.stringify([{ key: KEY, op: "put", sendStatus: true, manual: false, attempts: 3 }]));
    storage.setItem("mangabm:lastchecked", JSON.stringify({ [KEY]: 4 }));
    storage.setItem("bmgr:manga:lastchecked", JSON.stringify({ [KEY]: 5 }));
    load(["config", "pages", "manga/migration"], { localStorage: storage });
    const it = device({ api: new Server().api(), storage });
    assert.equal(it.row(KEY).title, "Old");
    assert.deepEqual(it.marker(KEY), { key: KEY, op: "put", sendStatus: 1, manual: 0, attempts: 3 });
    assert.equal(it.store.lastChecked().get(KEY), 5);
    assert.deepEqual([...storage.items.keys()].filter((name) => name.startsWith("mangabm")), []);
  });
});

describe("several tabs", () => {
  test("one works at a time, through the browser's locks and without", async () => {
    const order = [];
    const work = (name) => async () => {
      order.push(`${name} begins`);
      await new Promise(setImmediate);
      order.push(`${name} ends`);
    };
    const alone = parts.createAlone();
    await Promise.all([alone("send", 1000, work("a")), alone("send", 1000, work("b"))]);
    assert.deepEqual(order, ["a begins", "a ends", "b begins", "b ends"]);
    const requested = [];
    const locks = { request: (name, { signal }, callback) => (requested.push([name, signal.aborted]), callback()) };
    assert.equal(await parts.createAlone(locks)("send", 1000, async () => 7), 7);
    assert.deepEqual(requested, [["bmgr:manga:send", false]]);
  });

  test("a lock that the page never gives back holds nothing up for ever, and a failure is not work done twice", async () => {
    const stuck = { request: (name, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))) };
    const clock = setTimeout(() => {}, 10000); // the signal's own timer holds no process open
    assert.equal(await parts.createAlone(stuck)("send", 5, async () => 7), 7);
    clearTimeout(clock);
    let times = 0;
    const given = { request: (name, options, callback) => callback() };
    await assert.rejects(parts.createAlone(given)("send", 5, async () => {
      times += 1;
      throw new Error("of the work");
    }), /of the work/);
    assert.equal(times, 1);
  });
});

describe("the wire", () => {
  const calls = [];
  const respond = (status, text) => async (address, options) => (calls.push([address, options]), { status, text: async () => text });

  test("the credential goes to the API's own origin, in one header, without cookies or redirects", async () => {
    const api = parts.createApi(respond(200, "{}"));
    await api.put("demonic:Foo%27s/x", "{}", true);
    await api.put("asura:one", "{}", false);
    await api.remove("asura:one");
    await api.list();
    assert.deepEqual(calls.map(([address, { method }]) => `${method} ${address}`), [
      "PUT https://books.example/bookmarks/demonic%3AFoo%2527s%2Fx?advance=1",
      "PUT https://books.example/bookmarks/asura%3Aone",
      "DELETE https://books.example/bookmarks/asura%3Aone",
      "GET https://books.example/bookmarks",
    ]);
    for (const [, options] of calls) {
      assert.equal(options.headers.Authorization, `Bearer ${"c".repeat(64)}`);
      assert.deepEqual([options.credentials, options.redirect, options.referrerPolicy], ["omit", "error", "no-referrer"]);
    }
    assert.equal(calls[3][1].cache, "no-cache");
  });

  test("no answer, no JSON, and an error in words", async () => {
    assert.deepEqual(await parts.createApi(async () => { throw new TypeError("Failed to fetch"); }).list(), { status: 0, body: null, error: "" });
    assert.deepEqual(await parts.createApi(respond(502, "<html>")).list(), { status: 502, body: null, error: "" });
    assert.equal((await parts.createApi(respond(400, '{"error":"invalid status"}')).put("a:b", "{}", false)).error, "invalid status");
  });
});
