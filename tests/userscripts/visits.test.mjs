// A visit to a page: when it is read, what the Site's own moves do to it, Sightings and background checks.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Browser } from "./browser.mjs";
import { links } from "./page.mjs";
import { Server } from "./devices.mjs";

const HOST = "https://asurascans.com";
const series = (slug) => `/comics/${slug}-4be1c07a`;
const content = (name, number) => ({ title: name, og: number === undefined ? `${name} | Asura Scans` : `${name} Chapter ${number} - Read Online | Asura Scans` });

/** A server on which the Reader holds these, at chapter 1. */
function holding(...slugs) {
  const server = new Server();
  for (const slug of slugs) {
    server.put(`asura:${slug}`, JSON.stringify({ title: slug, series_url: HOST + series(slug), last_chapter_num: 1 }), false);
  }
  server.puts.length = 0;
  return server;
}

const at = (path, given, options = {}) => new Browser({ address: HOST + path, content: given, ...options }).start();
const saved = ({ server }) => server.puts.filter(({ body }) => "last_chapter_num" in body).map(({ key, body, advance }) => [key, body.last_chapter_num, advance]);

describe("reading", () => {
  test("visible for five seconds altogether", async () => {
    const browser = await at(`${series("a")}/chapter/5`, content("A", 5), { server: holding("a") });
    await browser.pass(4000);
    browser.document.visibilityState = "hidden";
    browser.happen("visibilitychange");
    await browser.pass(60000);
    assert.deepEqual(saved(browser), []);
    browser.document.visibilityState = "visible";
    browser.happen("visibilitychange");
    await browser.pass(900);
    assert.deepEqual(saved(browser), []);
    await browser.pass(200);
    assert.deepEqual(saved(browser), [["asura:a", 5, true]]);
    await browser.pass(60000);
    assert.equal(saved(browser).length, 1);
    assert.equal(browser.state.rows[0].last_chapter_num, 5);
  });

  test("or scrolled by a person, and not by the page", async () => {
    const browser = await at(`${series("a")}/chapter/5`, content("A", 5), { server: holding("a") });
    browser.happen("scroll");
    browser.happen("wheel", {}, false);
    browser.happen("scroll");
    browser.happen("keydown", { key: "x" });
    browser.happen("scroll");
    await browser.pass(100);
    assert.deepEqual(saved(browser), []);
    browser.happen("wheel");
    browser.happen("scroll");
    await browser.pass(100);
    assert.deepEqual(saved(browser), [["asura:a", 5, true]]);
  });

  test("a page opened in the background is not read", async () => {
    const browser = new Browser({ address: `${HOST}${series("a")}/chapter/5`, content: content("A", 5), server: holding("a") });
    browser.document.visibilityState = "hidden";
    await browser.start();
    await browser.pass(60000);
    assert.deepEqual(saved(browser), []);
  });

  test("of a Series that is held, and a number that is one (USR-015)", async () => {
    for (const [path, given] of [[`${series("b")}/chapter/5`, content("B", 5)], [`${series("a")}/chapter/prologue`, content("A", 0)], [series("a"), content("A")],
      [`${series("a")}/chapter/5`, { title: "404 | Asura Scans" }]]) {
      const browser = await at(path, given, { server: holding("a") });
      await browser.pass(10000);
      assert.deepEqual(saved(browser), [], path);
    }
  });

  test("a chapter behind is for the server to decide", async () => {
    const server = holding("a");
    server.rows.get("asura:a").last_chapter_num = 12.5;
    const browser = await at(`${series("a")}/chapter/3`, content("A", 3), { server });
    await browser.pass(6000);
    assert.deepEqual(saved(browser), [["asura:a", 3, true]]);
    assert.equal(browser.state.rows[0].last_chapter_num, 12.5);
  });

  test("a page that says it is missing by the time saves nothing", async () => {
    const browser = await at(`${series("a")}/chapter/5`, content("A", 5), { server: holding("a") });
    await browser.pass(4950);
    browser.show({ title: "Page Not Found | Asura Scans" });
    await browser.pass(10000);
    assert.deepEqual(saved(browser), []);
    assert.equal(browser.state.page, null);
  });
});

for (const navigationApi of [true, false]) {
  describe(`moves within the Site, ${navigationApi ? "told by" : "without"} the Navigation API (USR-022)`, () => {
    test("from A to B: nothing is saved under A", async () => {
      for (const moment of [100, 4000, 4900, 4999]) {
        const browser = await at(`${series("a")}/chapter/5`, content("A", 5), { server: holding("a", "b"), navigationApi });
        await browser.pass(moment);
        browser.move(`${series("b")}/chapter/7`);
        browser.happen("wheel");
        browser.happen("scroll");
        await browser.pass(400);
        browser.show(content("B", 7));
        await browser.pass(10000);
        assert.deepEqual(saved(browser), [["asura:b", 7, true]], `moved after ${moment} ms`);
        assert.equal(browser.state.page.title, "B");
      }
    });

    test("through several pages to the last, with each title late", async () => {
      const browser = await at(`${series("a")}/chapter/5`, content("A", 5), { server: holding("a", "b", "c"), navigationApi });
      browser.move(`${series("b")}/chapter/6`);
      await browser.pass(1100);
      browser.move(`${series("c")}/chapter/7`);
      await browser.pass(300);
      browser.show(content("B", 6));
      await browser.pass(200);
      browser.show(content("C", 7));
      await browser.pass(9000);
      assert.deepEqual(saved(browser), [["asura:c", 7, true]]);
      assert.equal(browser.state.page.title, "C");
    });

    test("a title that stays the old one's is nobody's", async () => {
      const browser = await at(series("a"), content("A"), { server: holding("a"), navigationApi });
      browser.move(series("b"));
      await browser.pass(6000);
      assert.equal(browser.state.page.key, "asura:b");
      assert.equal(browser.state.page.title, "");
      await browser.panel.actions.bookmark();
      assert.equal(browser.server.rows.get("asura:b").title, "b");
      browser.show(content("B"));
      await browser.pass(3000);
      assert.equal(browser.state.page.title, "B");
    });

    test("a number that only the title has is not believed while the title may be the old one's", async () => {
      const uuid = (n) => `019d03e9-1111-73e9-8222-00000000000${n}`;
      const server = new Server();
      server.put(`kagane:${uuid(1)}`, JSON.stringify({ last_chapter_num: 1 }), false);
      const browser = new Browser({ address: `https://kagane.to/series/${uuid(1)}/reader/${uuid(3)}`, content: { og: "X - Chapter 9" }, server, navigationApi });
      await browser.start();
      browser.move(`/series/${uuid(1)}/reader/${uuid(4)}`);
      await browser.pass(20000);
      assert.equal(server.rows.get(`kagane:${uuid(1)}`).last_chapter_num, 1);
      browser.show({ title: "X, another chapter", og: "X - Chapter 9" });
      await browser.pass(20000);
      assert.equal(server.rows.get(`kagane:${uuid(1)}`).last_chapter_num, 1, "another source of the title says nothing of this one");
      browser.show({ og: "X - Chapter 2" });
      await browser.pass(20000);
      assert.equal(server.rows.get(`kagane:${uuid(1)}`).last_chapter_num, 2);
    });

    test("to the same Series' next chapter, and by a fragment nowhere", async () => {
      const browser = await at(`${series("a")}/chapter/5`, content("A", 5), { server: holding("a"), navigationApi });
      await browser.pass(6000);
      browser.move(`${series("a")}/chapter/6`, content("A", 6));
      await browser.pass(8000);
      browser.move(`${series("a")}/chapter/6?from=mail#comments`);
      await browser.pass(8000);
      assert.deepEqual(saved(browser), [["asura:a", 5, true], ["asura:a", 6, true]]);
    });

    test("the same Series at another address keeps its title", async () => {
      const browser = await at(series("a"), content("A"), { server: holding("b"), navigationApi });
      browser.move("/comics/a-00000000");
      await browser.pass(5000);
      assert.equal(browser.state.page.title, "A");
      assert.equal(browser.state.page.seriesUrl, `${HOST}/comics/a-00000000`);
    });

    test("a title that never rests does not keep a page from being read", async () => {
      const browser = await at(`${series("a")}/chapter/5`, content("A", 5), { server: holding("a"), navigationApi });
      for (let n = 0; n < 8; n++) {
        await browser.pass(1000);
        browser.show({ ...content("A", 5), title: `(${n}) A` });
      }
      assert.deepEqual(saved(browser), [["asura:a", 5, true]]);
    });
  });
}

describe("offline and back", () => {
  test("what is read offline is there after the network is, once (USR-018)", async () => {
    const browser = await at(`${series("a")}/chapter/14`, content("A", 14), { server: holding("a") });
    browser.online = false;
    await browser.pass(6000);
    browser.move(`${series("a")}/chapter/15`, content("A", 15));
    await browser.pass(9000);
    assert.equal(browser.state.sync.state, "waiting");
    assert.equal(browser.state.online, false);
    await browser.panel.actions.status("asura:a", "archived");
    browser.online = true;
    browser.happen("online");
    await browser.pass(100);
    assert.deepEqual(saved(browser), [["asura:a", 15, true]]);
    assert.equal(browser.server.rows.get("asura:a").status, "archived");
    assert.equal(browser.state.sync.state, "saved");
  });

  test("a server that does not answer at all costs no chapter: it waits in storage before the page is left", async () => {
    const { storage, server } = await at(series("a"), content("A"), { server: holding("a") });
    const browser = new Browser({ address: `${HOST}${series("a")}/chapter/5`, content: content("A", 5), server, storage });
    browser.fetch = () => new Promise(() => {});
    await browser.start();
    await browser.pass(8000);
    assert.equal(JSON.parse(storage.getItem("bmgr:manga:queue"))[0]?.[1].key, "asura:a");
    const later = await at("/", {}, { server, storage });
    assert.deepEqual(saved(later), [["asura:a", 5, true]]);
  });

  test("a Series that another device has let go is not made anew by reading it with an old list", async () => {
    const { storage, server } = await at(series("a"), content("A"), { server: holding("a") });
    server.remove("asura:a");
    const browser = new Browser({ address: `${HOST}${series("a")}/chapter/5`, content: content("A", 5), server, storage });
    let answer;
    const late = new Promise((resolve) => (answer = resolve));
    browser.fetch = async (...request) => (await late, Browser.prototype.fetch.call(browser, ...request));
    await browser.start();
    browser.happen("wheel");
    browser.happen("scroll");
    await browser.pass(1000);
    answer();
    await browser.pass(9000);
    assert.deepEqual(saved(browser), []);
  });

  test("the next page of a device starts from its cache", async () => {
    const first = await at(series("a"), content("A"), { server: holding("a") });
    const second = new Browser({ address: HOST + series("a"), content: content("A"), storage: first.storage });
    second.online = false;
    await second.start();
    assert.deepEqual(second.state.rows.map(({ key }) => key), ["asura:a"]);
  });
});

describe("Sightings and checks (USR-017, USR-019)", () => {
  const latest = ({ server }) => server.puts.filter(({ body }) => "latest_chapter_num" in body).map(({ key, body }) => [key, body.latest_chapter_num]);
  const listing = (slug, number) => ({ title: slug, og: slug, elements: links([`${series(slug)}/chapter/${number}`, `Chapter ${number}`], [`${series("z")}/chapter/999`, "Chapter 999"]) });

  test("the Series in front of the Reader is told at every visit, unchanged numbers too", async () => {
    const server = holding("a");
    let storage;
    for (const number of [30, 30, 29]) storage = (await at(series("a"), listing("a", number), { server, storage })).storage;
    assert.deepEqual(latest({ server }), [["asura:a", 30], ["asura:a", 30], ["asura:a", 29]]);
    const { body, advance } = server.puts[0];
    assert.deepEqual(body, { kind: "manga", latest_chapter: "Chapter 30", latest_chapter_num: 30 });
    assert.equal(advance, true);
    assert.equal(server.rows.get("asura:a").last_chapter_num, 1);
  });

  test("a Series that is not held is never told of: that would make a Bookmark", async () => {
    const browser = await at(series("b"), listing("b", 30), { server: holding("a") });
    await browser.pass(6000);
    assert.deepEqual(latest(browser), []);
    browser.server.rows.clear();
    const stale = await at(series("a"), listing("a", 30), { server: browser.server, storage: browser.storage });
    assert.deepEqual(latest(stale), []);
  });

  test("one other Series a navigation, the one longest unchecked, each at most every four hours", async () => {
    const browser = new Browser({ address: `${HOST}/`, content: { title: "Asura Scans" }, server: holding("a", "b") });
    for (const slug of ["a", "b"]) browser.pages.set(HOST + series(slug), listing(slug, 40));
    await browser.start();
    const pages = () => browser.fetched.filter(([address]) => address.startsWith(HOST));
    assert.equal(pages().length, 1);
    assert.deepEqual(pages()[0][1].headers, undefined);
    for (let n = 0; n < 4; n++) {
      browser.move(`/browse/${n}`, { title: `Browse ${n}` });
      await browser.pass(5000);
    }
    assert.deepEqual(latest(browser).map(([key]) => key).sort(), ["asura:a", "asura:b"]);
    await browser.pass(4 * 3600 * 1000);
    browser.move("/browse/9", { title: "Browse 9" });
    await browser.pass(5000);
    assert.equal(pages().length, 3);
  });

  test("a dead page rests too, and a page that is another Series' is not read", async () => {
    const browser = new Browser({ address: `${HOST}/`, content: {}, server: holding("a", "b") });
    browser.pages.set(HOST + series("b"), { ...listing("c", 40), url: HOST + series("c") });
    await browser.start();
    for (let n = 0; n < 5; n++) {
      browser.move(`/tags/${n}`, { title: String(n) });
      await browser.pass(5000);
    }
    assert.equal(browser.fetched.filter(([address]) => address.startsWith(HOST)).length, 2);
    assert.deepEqual(latest(browser), []);
    assert.equal(browser.state.sync.state, "saved");
  });

  test("an address that leads off the Site is never fetched", async () => {
    const server = holding("a");
    for (const address of ["https://elsewhere.example/comics/a-4be1c07a", "http://asurascans.com/comics/a", "", "javascript:1"]) {
      server.rows.get("asura:a").series_url = address;
      const browser = await at("/", {}, { server });
      assert.ok(browser.fetched.every(([fetched]) => fetched.startsWith("https://books.example/")));
    }
  });

  test("lightnovelworld is never scanned and never fetched (USR-013)", async () => {
    const server = new Server();
    server.put("lightnovelworld:salt", JSON.stringify({ kind: "novel", series_url: "https://lightnovelworld.net/novel/salt/" }), false);
    const elements = [["h1", { class: "entry-title" }, "Salt"], ...links(["/salt-chapter-4000/", "Chapter 4000"])];
    const browser = new Browser({ address: "https://lightnovelworld.net/novel/salt/", content: { elements }, server, library: "novel" });
    await browser.start();
    await browser.pass(10000);
    assert.equal(browser.state.page.key, "lightnovelworld:salt");
    assert.deepEqual(latest(browser), []);
    assert.ok(browser.fetched.every(([address]) => address.startsWith("https://books.example/")));
  });
});

describe("what the panel asks for", () => {
  test("a number for a chapter that has none, of a Series that is not held yet", async () => {
    const browser = await at(`${series("a")}/chapter/prologue`, content("A", "prologue"), { server: new Server() });
    await browser.panel.actions.override("asura:a", 0.5);
    await browser.panel.actions.override("asura:b", 3);
    await browser.panel.actions.override("asura:a", NaN);
    await browser.panel.actions.override("asura:a", 100001);
    assert.deepEqual(saved(browser), [["asura:a", 0.5, false]]);
    assert.equal(browser.server.rows.get("asura:a").last_chapter_url, `${HOST}${series("a")}/chapter/prologue`);
  });

  test("a first Bookmark keeps a Progress that another device has further on; a second one is a person's word", async () => {
    const browser = await at(`${series("a")}/chapter/3`, content("A", 3), { server: new Server() });
    browser.server.put("asura:a", JSON.stringify({ last_chapter_num: 15 }), false);
    await browser.panel.actions.bookmark();
    assert.equal(browser.server.rows.get("asura:a").last_chapter_num, 15);
    await browser.panel.actions.bookmark();
    assert.equal(browser.server.rows.get("asura:a").last_chapter_num, 3);
  });

  test("nothing on a page that is neither, and its Sites and addresses", async () => {
    const browser = await at("/browse", { title: "Browse" }, { server: holding("a") });
    await browser.panel.actions.bookmark();
    assert.deepEqual(saved(browser), []);
    assert.equal(browser.state.page, null);
    assert.equal(browser.panel.library, "manga");
    assert.equal(browser.panel.webBase, "https://read.example");
    assert.deepEqual(browser.panel.sites.map(({ site }) => site).sort(), ["asura", "comix", "demonic", "kagane", "lightnovelworld", "novelfull"]);
  });

  test("star and unstar, archive and restore, remove", async () => {
    const browser = await at(series("a"), content("A"), { server: holding("a") });
    const { actions } = browser.panel;
    const row = () => browser.server.rows.get("asura:a");
    await actions.favorite("asura:a", true);
    await actions.status("asura:a", "archived");
    assert.deepEqual([row().favorite, row().status], [true, "archived"]);
    await actions.favorite("asura:a", false);
    await actions.status("asura:a", "reading");
    assert.deepEqual([row().favorite, row().status], [false, "reading"]);
    await actions.remove("asura:a");
    assert.equal(row(), undefined);
    await actions.favorite("asura:a", true);
    assert.equal(row(), undefined);
  });
});

test("on another host the script does nothing", async () => {
  const browser = await new Browser({ address: "https://elsewhere.example/comics/a-4be1c07a" }).start();
  assert.deepEqual([browser.fetched, browser.states], [[], []]);
});
