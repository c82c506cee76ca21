// progress: rows and what becomes of them. Pure: data in, data out.

/** A row of the wire's sixteen fields out of anything; null when it is none. Storage is the page's to write, too. */
function rowOf(value) {
  const key = value?.key;
  if (typeof key !== "string" || key.length > 600 || !/^[a-z]+:./s.test(key)) return null;
  const text = (name, most) => (typeof value[name] === "string" ? value[name].slice(0, most) : "");
  const number = (name, otherwise) => (isChapterNumber(value[name]) ? value[name] : otherwise);
  const address = (name) => (/^https?:\/\//i.test(text(name, 2048)) ? text(name, 2048) : "");
  const cover = text("cover", 2048);
  const row = {
    key,
    site: key.slice(0, key.indexOf(":")),
    series_id: key.slice(key.indexOf(":") + 1),
    title: text("title", 1000),
    series_url: address("series_url"),
    cover: cover.startsWith(`${API_BASE}/covers/`) ? cover : "",
    last_chapter: text("last_chapter", 200),
    last_chapter_num: number("last_chapter_num", 0),
    last_chapter_url: address("last_chapter_url"),
    favorite: value.favorite === true,
    latest_chapter: text("latest_chapter", 200),
    latest_chapter_num: number("latest_chapter_num", null),
    updated_at: Number.isSafeInteger(value.updated_at) ? value.updated_at : 0,
    status: value.status === "archived" ? "archived" : "reading",
    kind: value.kind === "novel" ? "novel" : "manga",
    finished: value.finished === true,
  };
  // Ours alone, until the server has it: else a device that was away would undo what another one has starred.
  if (value.favorite_unsent === true) row.favorite_unsent = true;
  return row;
}

function isChapterNumber(value) {
  return typeof value === "number" && value >= 0 && value <= HIGHEST_CHAPTER;
}

/** As the server lists them (API-017). */
function inListOrder(rows) {
  return [...rows].sort((a, b) => b.updated_at - a.updated_at || (a.key < b.key ? -1 : 1));
}

/** What a chapter that was read makes of its Bookmark: never less, never another title or Series address; null: nothing. */
function readOn(row, page, now) {
  return page.chapterNum >= row.last_chapter_num ? atChapter(row, page, now) : null;
}

/** "+ Bookmark this": the page's word, else the cached row's. */
function bookmarked(row, page, now) {
  const fresh = rowOf({ key: page.key, updated_at: now });
  const base = { ...(row ?? fresh), kind: LIBRARY };
  const named = {
    ...base,
    title: page.title || base.title || page.seriesId,
    series_url: page.seriesUrl || base.series_url,
  };
  return page.chapterNum == null ? named : atChapter(named, page, now);
}

/** A person's own number. The address is known only where it is the page's own chapter. */
function overridden(row, number, page, now) {
  const here = page?.key === row.key && page.type === "chapter" && (page.chapterNum ?? number) === number;
  const kept = number === row.last_chapter_num ? row.last_chapter_url : "";
  return atChapter(row, { chapterNum: number, chapterLabel: `Chapter ${number}`, chapterUrl: here ? page.chapterUrl : kept }, now);
}

function atChapter(row, { chapterNum, chapterLabel, chapterUrl }, now) {
  const updated_at = chapterNum === row.last_chapter_num ? row.updated_at : Math.max(now, row.updated_at + 1);
  return { ...row, last_chapter: chapterLabel, last_chapter_num: chapterNum, last_chapter_url: chapterUrl, updated_at };
}

/** The body of a PUT: no cover ever, no bucket unless it changes, nothing that is the server's or a Sighting's. */
function outgoing(row, marker) {
  const { site, series_id, title, series_url, last_chapter, last_chapter_num, last_chapter_url } = row;
  const untouched = last_chapter_num === 0 && last_chapter === ""; // chapter 0 is real
  return {
    ...{ site, series_id, title, series_url, kind: LIBRARY },
    ...(!untouched && { last_chapter, last_chapter_num, last_chapter_url }),
    ...(row.favorite_unsent && { favorite: row.favorite }),
    ...(marker.sendStatus && { status: row.status }),
  };
}

/** The server's row with what this device has still to send laid over it. */
function overlaid(theirs, ours, marker) {
  if (!theirs) return ours;
  const { last_chapter, last_chapter_num, last_chapter_url, favorite, favorite_unsent, status } = ours;
  const ahead = marker.manual || last_chapter_num >= theirs.last_chapter_num;
  const updated_at = Math.max(theirs.updated_at, ours.updated_at);
  return {
    ...theirs,
    ...(ahead && { last_chapter, last_chapter_num, last_chapter_url, updated_at }),
    ...(favorite_unsent && { favorite, favorite_unsent }),
    ...(marker.sendStatus && { status }),
  };
}
