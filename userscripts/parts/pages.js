// pages: what every adapter reads with. A page's text is another's word: short, of one line, never markup.

// As the server reads numbers: `12.50` and `007` are, `1e9` and a 30-digit id are none.
const NUMBER = String.raw`[0-9]{1,18}(?:\.[0-9]{1,18}|(?!\.[0-9]))(?![\p{L}\p{N}])`;

const STARTS_WITH_NUMBER = new RegExp(`^${NUMBER}`, "u");

const OTHER = Object.freeze({ type: "other" });

// What the first or last part of a title, or the heading, says of itself when the page is not the one that was asked for.
const MISSING = new RegExp(
  "^(?:" + [
    String.raw`(?:error\s*)?(?:40[34]|410|429|50[0-4])(?:\s*[:.!]?\s*(?:error|forbidden|gone|(?:page |chapter )?not found|bad gateway|internal server error|service unavailable|too many requests))?`,
    String.raw`(?:oops\W*)?(?:(?:(?:this|the) )?(?:page|chapter|series|novel|manga|comic) )?(?:(?:is|was|can(?:no|')t be|could not be) )?(?:not found|does(?: not|n't) exist)`,
    "(?:this|the) (?:page|chapter|series) (?:is|was|has been) (?:missing|locked|unavailable|removed|(?:not|no longer) available)",
    "(?:premium|locked) chapter",
    "just a moment", "attention required", "access denied", "security check",
  ].join("|") + String.raw`)[.!\u2026]*$`, "i");

function seriesPage({ site, host }, seriesId, title, path) {
  const seriesUrl = `https://${host}${path}`;
  return { type: "series", site, seriesId, key: `${site}:${seriesId}`, title, seriesUrl, ...chapterAt(""), chapterUrl: "" };
}

/** `number` is what stands where the chapter's number does. */
function chapterPage(adapter, seriesId, title, path, number, { pathname }) {
  const page = seriesPage(adapter, seriesId, title, path);
  return { ...page, type: "chapter", ...chapterAt(number), chapterUrl: `https://${adapter.host}${pathname}` };
}

/** The number that `text` begins with, as the Site spells it: `10-11` is 10, `12.` is 12. */
function chapterAt(text) {
  const digits = text.match(STARTS_WITH_NUMBER)?.[0];
  return digits !== undefined && Number(digits) <= HIGHEST_CHAPTER
    ? { chapterNum: Number(digits), chapterLabel: `Chapter ${digits}` }
    : { chapterNum: null, chapterLabel: "" };
}

/** The highest of the numbers that `pattern` finds in the links' addresses, as {num, label}; null when it finds none. */
function highestChapter(links, pattern, counts = () => true) {
  let highest = null;
  for (const link of links) {
    const found = link.href.match(pattern);
    if (!found || !counts(found, link)) continue;
    const { chapterNum, chapterLabel } = chapterAt(found.groups.number);
    if (chapterNum !== null && (highest === null || chapterNum > highest.num)) {
      highest = { num: chapterNum, label: chapterLabel };
    }
  }
  return highest;
}

/** A pattern of an address on `host`, from its path on: absolute, or as the Site's own pages write it. */
function ownLink(host, path) {
  return new RegExp(`^(?:(?:https:)?//${host.replaceAll(".", String.raw`\.`)})?${path}`, "u");
}

function metaContent(document, property) {
  const found = [...document.querySelectorAll(`meta[property="${property}"]`)];
  return found.map((element) => oneLine(element.getAttribute("content"))).find(Boolean) ?? "";
}

function textOf(document, selector) {
  return oneLine(document.querySelector(selector)?.textContent);
}

function oneLine(text) {
  return String(text ?? "").slice(0, 4000).replace(/\s+/g, " ").trim().slice(0, 500);
}

/** What `work` gives, or `otherwise` where it throws. */
function attempt(work, otherwise = null) {
  try {
    return work();
  } catch {
    return otherwise;
  }
}

function parseJson(text) {
  return attempt(() => JSON.parse(text));
}

/** The URL of an address, or null for what is none. */
function parseAddress(address, base) {
  return address && typeof address === "string" ? attempt(() => new URL(address, base)) : null;
}

function saysMissing(document) {
  const title = oneLine(document.title);
  const parts = title.split(/\s+[|\u00b7\u2013\u2014-]\s+/);
  return [title, parts[0], parts.at(-1), textOf(document, "h1")].some((text) => MISSING.test(text));
}

/** What is at `location`: a Series, a chapter of one, or neither. */
function detectPage(adapter, location, document) {
  const page = adapter.detect(location, document);
  return page.type === "other" || saysMissing(document) ? OTHER : page;
}

/** What an adapter's `latest` reads: the page's links as {href, text}, of the part that lists chapters where it has one. */
function pageLinks(adapter, document) {
  const list = adapter.list && document.querySelector(adapter.list);
  const links = [...(list || document).querySelectorAll("a[href]")].slice(0, 20000);
  return links.map((link) => ({ href: link.getAttribute("href").trim(), text: oneLine(link.textContent) }));
}
