// What the panel shows, judged from plain data.

import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { panelRules } = load(["config", "panel"]);
const MINUTE = 60_000;
const SITES = [{ site: "asura", host: "asurascans.com" }];

test("USR-015: a chapter is a number from 0 to 100000, with a point or a comma", () => {
  const cases = { 12: 12, "12.5": 12.5, " 12,5 ": 12.5, "007": 7, 0: 0, 100000: 100000, "12.": 12, 100001: null, "": null,
    "-1": null, "1e3": null, "1.2.3": null, "12a": null, "١٢": null, Infinity: null, "0x10": null, "1 2": null };
  for (const [text, number] of Object.entries(cases)) assert.equal(panelRules.chapter(text), number, text);
});

test("USR-018: what waits has an age that a person reads", () => {
  const ages = [[0, "just now"], [59_999, "just now"], [MINUTE, "1 min"], [59 * MINUTE, "59 min"], [60 * MINUTE, "1 h"],
    [47 * 60 * MINUTE, "47 h"], [48 * 60 * MINUTE, "2 days"], [-MINUTE, "just now"]];
  for (const [ms, words] of ages) assert.equal(panelRules.age(ms), words);
});

test("USR-018: the state of sync in a word", () => {
  const words = (sync, online = true) => panelRules.sync({ sync: { state: "saved", waiting: 0, oldestAt: 0, ...sync }, online }, 10 * MINUTE);
  assert.equal(words({}), "All saved");
  assert.equal(words({}, false), "Offline");
  assert.equal(words({ state: "waiting", waiting: 2, oldestAt: 5 * MINUTE }), "2 waiting, 5 min");
  assert.equal(words({ state: "waiting", waiting: 2, oldestAt: 0 }, false), "Offline · 2 waiting");
  assert.equal(words({ state: "signed-out", waiting: 2 }, false), "Signed out");
});

test("UI-017: only https on that Site's own host is an address to go to", () => {
  const at = (address, site = "asura") => panelRules.continueAddress({ site, last_chapter_url: address, series_url: "" }, SITES);
  for (const good of ["https://asurascans.com", "https://asurascans.com/x", "https://asurascans.com?x", "https://asurascans.com#x"]) {
    assert.equal(at(good), good);
  }
  for (const bad of ["http://asurascans.com/", "https://asurascans.com:8443/", "https://asurascans.com.evil.example/", "javascript:1",
    "https://asurascans.com@evil.example/", "//asurascans.com/", "", undefined, null, 7]) assert.equal(at(bad), "", String(bad));
  assert.equal(at("https://asurascans.com/x", "elsewhere"), "");
  assert.equal(panelRules.continueAddress({ site: "asura", last_chapter_url: "", series_url: "https://asurascans.com/s" }, SITES), "https://asurascans.com/s");
});

test("USR-020, SER-020: monograms, and what is new", () => {
  assert.deepEqual(["éa", "«7»", "月", "", "?!"].map(panelRules.monogram), ["É", "7", "月", "?", "?"]);
  const isNew = (latest, read) => panelRules.hasNew({ latest_chapter_num: latest, last_chapter_num: read });
  assert.deepEqual([isNew(null, 3), isNew(undefined, 3), isNew(3, 3), isNew(3.5, 3), isNew(2, 3)], [false, false, false, true, false]);
});
