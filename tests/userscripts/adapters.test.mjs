// The adapters: what each makes of an address and a page.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ADAPTERS, load } from "./load.mjs";
import { links, page } from "./page.mjs";

const parts = load(["config", "pages", ...ADAPTERS]);
const adapters = Object.fromEntries(parts.ADAPTERS.map((adapter) => [adapter.site, adapter]));
const UUID = "019d03e9-1111-73e9-8222-000000000001";
const ALL_CHAPTER = (href) => ["a", { "aria-label": "All Chapter", href }, "All"];
const CRUMBS = (item, wrap = (list) => list) => ["script", { type: "application/ld+json" }, JSON.stringify(wrap({
  "@type": "BreadcrumbList",
  itemListElement: [{ position: 1, item: "https://lightnovelworld.net/" }, { position: 2, item }],
}))];

function detect(site, path, given) {
  const address = new URL(path, `https://${adapters[site].host}`);
  return parts.detectPage(adapters[site], address, page(given));
}

function cases(site, table) {
  describe(site, () => {
    for (const [path, given, expected] of table) {
      test(`${path} ${JSON.stringify(given).slice(0, 90)}`, () => {
        const found = detect(site, path, given);
        const { type, seriesId, title, seriesUrl, chapterNum, chapterUrl } = found;
        if (expected === "other") return assert.equal(type, "other");
        const [id, name, series, number] = expected;
        const host = `https://${adapters[site].host}`;
        assert.deepEqual(
          { type, seriesId, title, seriesUrl, chapterNum, chapterUrl },
          { type: expected.length === 3 ? "series" : "chapter", seriesId: id, title: name, seriesUrl: host + series, chapterNum: number ?? null,
            chapterUrl: expected.length === 3 ? "" : host + new URL(path, host).pathname },
        );
        assert.equal(found.key, `${site}:${id}`);
        assert.equal(found.site, site);
        if (found.chapterNum !== null) assert.match(found.chapterLabel, /^Chapter [0-9]+(\.[0-9]+)?$/);
        else assert.equal(found.chapterLabel, "");
      });
    }
  });
}

// USR-008
cases("asura", [
  ["/comics/lantern-of-the-ninth-gate-4be1c07a", { og: "Lantern of the Ninth Gate | Asura Scans" }, ["lantern-of-the-ninth-gate", "Lantern of the Ninth Gate", "/comics/lantern-of-the-ninth-gate-4be1c07a"]],
  ["/comics/lantern-4be1c07a/", { og: "Lantern" }, ["lantern", "Lantern", "/comics/lantern-4be1c07a"]],
  ["/comics/lantern-4be1c07", { og: "x" }, ["lantern-4be1c07", "x", "/comics/lantern-4be1c07"]],
  ["/comics/lantern-4be1c07ab", { og: "x" }, ["lantern-4be1c07ab", "x", "/comics/lantern-4be1c07ab"]],
  ["/comics/lantern-4BE1C07A", { og: "x" }, ["lantern-4BE1C07A", "x", "/comics/lantern-4BE1C07A"]],
  ["/comics/lantern-deadbeef-4be1c07a", { og: "x" }, ["lantern-deadbeef", "x", "/comics/lantern-deadbeef-4be1c07a"]],
  ["/comics/4be1c07a", { og: "x" }, ["4be1c07a", "x", "/comics/4be1c07a"]],
  ["/comics/the-cartographer-s-oath-4be1c07a/chapter/12.5", { og: "The Cartographer's Oath Chapter 12.5 - Read Online | Asura Scans" }, ["the-cartographer-s-oath", "The Cartographer's Oath", "/comics/the-cartographer-s-oath-4be1c07a", 12.5]],
  ["/comics/lantern-4be1c07a/chapter/0?from=mail#top", { og: "Lantern - Chapter 0 - Read Online | Asura Scans" }, ["lantern", "Lantern", "/comics/lantern-4be1c07a", 0]],
  ["/comics/lantern-4be1c07a/chapter/007", { og: "Lantern" }, ["lantern", "Lantern", "/comics/lantern-4be1c07a", 7]],
  ["/comics/lantern-4be1c07a/chapter/10-11", { og: "Lantern" }, ["lantern", "Lantern", "/comics/lantern-4be1c07a", 10]],
  ["/comics/lantern-4be1c07a/chapter/prologue", { og: "Lantern" }, ["lantern", "Lantern", "/comics/lantern-4be1c07a", null]],
  ["/comics/lantern-4be1c07a/chapter/1e9", { og: "Lantern" }, ["lantern", "Lantern", "/comics/lantern-4be1c07a", null]],
  ["/comics/lantern-4be1c07a/chapter/20260801", { og: "Lantern" }, ["lantern", "Lantern", "/comics/lantern-4be1c07a", null]],
  ["/comics/the-last-chapter-9-4be1c07a", { og: "The Last Chapter 9 | Asura Scans" }, ["the-last-chapter-9", "The Last Chapter 9", "/comics/the-last-chapter-9-4be1c07a"]],
  ["/comics/caf%C3%A9-4be1c07a", { og: "Café\n  | Asura Scans" }, ["caf%C3%A9", "Café", "/comics/caf%C3%A9-4be1c07a"]],
  ["/comics/x-4be1c07a", { og: "<img src=x onerror=alert(1)>" }, ["x", "<img src=x onerror=alert(1)>", "/comics/x-4be1c07a"]],
  ["/comics", { og: "Asura Scans" }, "other"],
  ["/", { og: "Asura Scans" }, "other"],
  ["/novels/lantern-4be1c07a", { og: "Lantern" }, "other"],
  ["/comics/lantern-4be1c07a/chapter/3", { title: "404 | Asura Scans", og: "Asura Scans" }, "other"],
  ["/comics/lantern-4be1c07a/chapter/3", { title: "Asura Scans", elements: [["h1", {}, "This chapter is locked"]] }, "other"],
  ["/comics/lantern-4be1c07a/chapter/3", { title: "Just a moment..." }, "other"],
]);

// USR-009
cases("demonic", [
  ["/manga/Endless-Stair", { og: "Endless Stair" }, ["Endless-Stair", "Endless Stair", "/manga/Endless-Stair"]],
  ["/manga/Foo%2527s", { og: "Foo's" }, ["Foo%27s", "Foo's", "/manga/Foo%2527s"]],
  ["/title/Foo%2527s/chapter/12/1", { og: "Foo's Chapter 12" }, ["Foo%27s", "Foo's", "/manga/Foo%2527s", 12]],
  ["/manga/Who%25252DAmI", { og: "Who-AmI" }, ["Who%252DAmI", "Who-AmI", "/manga/Who%25252DAmI"]],
  ["/title/Who%25252DAmI/chapter/3.5/2", { og: "Who-AmI Chapter 3.5" }, ["Who%252DAmI", "Who-AmI", "/manga/Who%25252DAmI", 3.5]],
  ["/title/Salt-King/chapter/1204/1", { og: "Chapter 7 of Salt Chapter 1204" }, ["Salt-King", "Chapter 7 of Salt", "/manga/Salt-King", 1204]],
  ["/title/Salt-King/chapter/notice/1", { og: "Salt King" }, ["Salt-King", "Salt King", "/manga/Salt-King", null]],
  ["/manga/Read-Error-404", { title: "Read Error 404 - Demonic Scans", og: "Read Error 404" }, ["Read-Error-404", "Read Error 404", "/manga/Read-Error-404"]],
  ["/manga/Gone", { title: "Error 404 - Demonic Scans", og: "Demonic Scans" }, "other"],
  ["/manga/Gone", { title: "\n Error 404: not found" }, "other"],
  ["/manga/%E0%A4%A", { og: "x" }, "other"],
  ["/chaptered.php?manga=73&chapter=9", { og: "x" }, "other"],
  ["/lastupdates.php", {}, "other"],
]);

// USR-010
cases("comix", [
  ["/title/8gq1-lantern-of-salt", { title: "Lantern of Salt", og: "Comix" }, ["8gq1", "Lantern of Salt", "/title/8gq1-lantern-of-salt"]],
  ["/title/8gq1-renamed", { title: "Renamed", og: "Lantern" }, ["8gq1", "Renamed", "/title/8gq1-renamed"]],
  ["/title/8gq1", { title: "Lantern" }, ["8gq1", "Lantern", "/title/8gq1"]],
  ["/title/8gq1-lantern/2733-chapter-80.5", { title: "Lantern · Ch.80.5", og: "Another" }, ["8gq1", "Lantern", "/title/8gq1-lantern", 80.5]],
  ["/title/8gq1-lantern/2733-chapter-extra", { title: "Lantern · Ch.extra" }, ["8gq1", "Lantern", "/title/8gq1-lantern", null]],
  ["/title/8gq1-a-chapter-9", { title: "A Chapter 9" }, ["8gq1", "A Chapter 9", "/title/8gq1-a-chapter-9"]],
  ["/browse", { title: "Browse" }, "other"],
  ["/title/8gq1-lantern/2733-volume-3", { title: "Lantern" }, "other"],
  ["/title/-lantern", { title: "Lantern" }, "other"],
  ["/title/8gq1-lantern", { title: "Security Check" }, "other"],
]);

// USR-011
cases("kagane", [
  [`/series/${UUID}`, { og: "SP Baby" }, [UUID, "SP Baby", `/series/${UUID}`]],
  [`/series/${UUID.toUpperCase()}`, { og: "SP Baby" }, [UUID, "SP Baby", `/series/${UUID.toUpperCase()}`]],
  [`/series/${UUID}/reader/${UUID}`, { og: "X - Chapter 41 - Episode 41" }, [UUID, "X", `/series/${UUID}`, 41]],
  [`/series/${UUID}/reader/${UUID}`, { og: "X - Chapter 41.5" }, [UUID, "X", `/series/${UUID}`, 41.5]],
  [`/series/${UUID}/reader/${UUID}`, { og: "SP Baby - Volume 1 Chapter 1" }, [UUID, "SP Baby", `/series/${UUID}`, 1]],
  [`/series/${UUID}/reader/${UUID}`, { og: "One - Chapter of Two - Chapter 3" }, [UUID, "One - Chapter of Two", `/series/${UUID}`, 3]],
  [`/series/${UUID}/reader/${UUID}`, { og: "X - Volume 3" }, [UUID, "X", `/series/${UUID}`, null]],
  [`/series/${UUID}/reader/${UUID}`, { og: "X - Prologue" }, [UUID, "X", `/series/${UUID}`, null]],
  [`/series/${UUID}/reader/${UUID}`, { og: "X - Volume 2 Epilogue: The Sea" }, [UUID, "X", `/series/${UUID}`, null]],
  [`/series/${UUID}/reader/${UUID}`, { og: "19th Floor - Chapter Last" }, [UUID, "19th Floor", `/series/${UUID}`, null]],
  [`/series/${UUID}/reader/${UUID}`, {}, [UUID, "", `/series/${UUID}`, null]],
  ["/series/not-a-uuid", { og: "x" }, "other"],
  ["/browse", { og: "Kagane" }, "other"],
]);

// USR-012
cases("novelfull", [
  ["/against-the-sea.html", { elements: [["h3", { class: "title" }, "Against the Sea"]] }, ["against-the-sea", "Against the Sea", "/against-the-sea.html"]],
  ["/against-the-sea/chapter-12-a-door.html", { elements: [["h3", {}, "Chapter 12"], ["a", { class: "truyen-title", href: "/against-the-sea.html" }, "Against the Sea"]] }, ["against-the-sea", "Against the Sea", "/against-the-sea.html", 12]],
  ["/against-the-sea/chapter-12.5.html", { elements: [["a", { class: "truyen-title" }, "Against the Sea"]] }, ["against-the-sea", "Against the Sea", "/against-the-sea.html", 12.5]],
  ["/against-the-sea/chapter-10-11.html", {}, ["against-the-sea", "", "/against-the-sea.html", 10]],
  ["/against-the-sea/chapter-216-19th-floor.html", {}, ["against-the-sea", "", "/against-the-sea.html", 216]],
  ["/against-the-sea/chapter-prologue.html", {}, ["against-the-sea", "", "/against-the-sea.html", null]],
  ["/genre/Fantasy", {}, "other"],
  ["/against-the-sea.html", { title: "Page Not Found | NovelFull" }, "other"],
  ["/", {}, "other"],
]);

// USR-013
cases("lightnovelworld", [
  ["/novel/salt-king/", { elements: [["h1", { class: "entry-title" }, "Salt King"]] }, ["salt-king", "Salt King", "/novel/salt-king/"]],
  ["/salt-king-wn-chapter-120/", { elements: [["h1", { class: "entry-title" }, "Salt King Chapter 120"], ALL_CHAPTER("https://lightnovelworld.net/novel/salt-king/")] }, ["salt-king", "Salt King", "/novel/salt-king/", 120]],
  ["/the-salt-chapter-3-chapter-7.5/", { elements: [["h1", { class: "entry-title" }, "The Salt Chapter 3 - Chapter 7.5: Sea"], ALL_CHAPTER("/novel/salt/")] }, ["salt", "The Salt Chapter 3", "/novel/salt/", 7.5]],
  ["/salt-chapter-2/", { elements: [ALL_CHAPTER("https://elsewhere.example/novel/salt/"), CRUMBS("https://lightnovelworld.net/novel/salt-king/")] }, ["salt-king", "", "/novel/salt-king/", 2]],
  ["/salt-chapter-2/", { elements: [CRUMBS({ "@id": "https://lightnovelworld.net/novel/salt-king/" }, (list) => ({ "@graph": [{ "@type": "WebPage" }, list] }))] }, ["salt-king", "", "/novel/salt-king/", 2]],
  ["/salt-chapter-2/", { elements: [["script", { type: "application/ld+json" }, "{"], CRUMBS("/novel/salt-king/", (list) => [list])] }, ["salt-king", "", "/novel/salt-king/", 2]],
  ["/salt-chapter-2/", { elements: [CRUMBS({ "@id": 7 })] }, "other"],
  ["/salt-chapter-2/", { elements: [ALL_CHAPTER("javascript:alert(1)")] }, "other"],
  ["/salt-chapter-2/", {}, "other"],
  ["/salt-prologue-chapter-none/", { elements: [ALL_CHAPTER("/novel/salt/")] }, ["salt", "", "/novel/salt/", null]],
  ["/novel/", {}, "other"],
  ["/about/", {}, "other"],
]);

// USR-017
describe("the Latest Chapter of a page", () => {
  function latest(site, id, ...pairs) {
    const adapter = adapters[site];
    return adapter.latest(parts.pageLinks(adapter, page({ elements: links(...pairs) })), id);
  }

  test("asura: of this slug, with the number in the text, whatever the hash", () => {
    assert.deepEqual(latest("asura", "lantern",
      ["/comics/lantern-4be1c07a/chapter/1", "First Chapter"],
      ["/comics/lantern-4be1c07a/chapter/88", "Chapter 88 Just a moment"],
      ["https://asurascans.com/comics/lantern-00000000/chapter/88.50", " Chapter 88.50"],
      ["/comics/lantern/chapter/9", "Chapter 9"],
      ["/comics/lantern-of-salt-4be1c07a/chapter/999", "Chapter 999"],
      ["https://elsewhere.example/comics/lantern-4be1c07a/chapter/1000", "Chapter 1000"],
      ["/comics/lantern-4be1c07a/chapter/100001", "Chapter 100001"],
    ), { num: 88.5, label: "Chapter 88.50" });
    assert.equal(latest("asura", "lantern", ["/comics/lantern-4be1c07a/chapter/3", "First Chapter"]), null);
  });

  test("demonic: of one numeric id", () => {
    const own = [["/chaptered.php?manga=73&chapter=9", "9"], ["chaptered.php?manga=73&chapter=10", "10"]];
    assert.deepEqual(latest("demonic", "x", ["/chaptered.php?manga=9&chapter=3670", "3670"], ...own), { num: 10, label: "Chapter 10" });
    const listed = page({ elements: [...links(["/chaptered.php?manga=9&chapter=3670", ""], ["/chaptered.php?manga=9&chapter=3671", ""]),
      ["div", { id: "chapters-list" }, links(...own.slice(0, 1))]] });
    assert.deepEqual(adapters.demonic.latest(parts.pageLinks(adapters.demonic, listed), "x"), { num: 9, label: "Chapter 9" });
  });

  test("comix: of this id", () => {
    assert.deepEqual(latest("comix", "8gq1", ["/title/8gq1-x/1-chapter-5", ""], ["/title/8gq12-x/1-chapter-99", ""], ["/title/8gq1/2-chapter-6.5", ""]), { num: 6.5, label: "Chapter 6.5" });
  });

  test("novelfull: of this slug", () => {
    assert.deepEqual(latest("novelfull", "sea", ["/sea/chapter-9-19th-floor.html", "Chapter 9"], ["/sea-2/chapter-99.html", ""], ["/sea/chapter-8.html", ""]), { num: 9, label: "Chapter 9" });
    assert.equal(latest("novelfull", "sea"), null);
  });

  test("kagane and lightnovelworld: never from a browser (USR-013)", () => {
    assert.equal(adapters.kagane.latest, undefined);
    assert.equal(adapters.lightnovelworld.latest, undefined);
  });
});

test("a Series may be named after an error and is none", () => {
  for (const name of ["Missing", "Locked", "The Page Not Found Club", "404 Days", "Access Denied Heroine"]) {
    assert.equal(parts.saysMissing(page({ title: `${name} | Asura Scans`, elements: [["h1", {}, name]] })), false, name);
  }
  for (const text of ["404", "404 Not Found", "Page not found", "Oops! Page not found", "Sorry | This chapter is no longer available.", "Chapter not found - Novel Full", "503 Service Unavailable", "Premium Chapter"]) {
    assert.equal(parts.saysMissing(page({ title: text })), true, text);
  }
});
