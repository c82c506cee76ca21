// checks: the Latest Chapter as this Reader's browser sees it. Each read is told, an unchanged one too: it is the Sighting
// that a Poll waits for. These writes never enter the queue, and their failures are silent.

/** The row to look at next: on this Site, the one checked longest ago, unless it rests. */
function checkCandidates(rows, lastChecked, adapter, now) {
  const checkedAt = ({ key }) => lastChecked.get(key) ?? 0;
  return [...rows.values()]
    .filter((row) => row.site === adapter.site && parseAddress(row.series_url)?.origin === `https://${adapter.host}`)
    .filter((row) => checkedAt(row) > now || now - checkedAt(row) >= CHECK_REST_MS) // a time to come is none of ours
    .sort((a, b) => checkedAt(a) - checkedAt(b))
    .slice(0, CHECKS_AT_A_TIME);
}

function createChecks({ store, api, adapter, fetch, parseHtml, now }) {
  function note(key) {
    const known = store.rows();
    const times = new Map([...store.lastChecked()].filter(([each]) => known.has(each)));
    store.writeLastChecked(times.set(key, now()));
  }

  async function tell(key, latest) {
    if (!latest || !store.rows().has(key)) return; // a PUT would make a Bookmark of it
    const body = { kind: LIBRARY, latest_chapter: latest.label, latest_chapter_num: latest.num };
    await api.put(key, JSON.stringify(body), true);
  }

  /** What the page in front of the Reader shows, if it is the page of a Series that they hold. */
  async function look(page, document) {
    if (!adapter.latest || page.type !== "series" || !store.rows().has(page.key)) return;
    note(page.key);
    await tell(page.key, adapter.latest(pageLinks(adapter, document), page.seriesId));
  }

  /** Fetch what is due. The time is written first: a page that is dead rests as well. */
  async function run() {
    if (!adapter.latest) return;
    for (const row of checkCandidates(store.rows(), store.lastChecked(), adapter, now())) {
      note(row.key);
      await tell(row.key, await readSeries(row).catch(() => null));
    }
  }

  async function readSeries(row) {
    const response = await fetch(row.series_url, { credentials: "same-origin", signal: AbortSignal.timeout(REQUEST_MS) });
    const address = parseAddress(response.url || row.series_url);
    if (!response.ok || address?.host !== adapter.host) return null;
    const html = await response.text();
    if (html.length > MAX_PAGE_CHARACTERS) return null;
    const document = parseHtml(html);
    const page = detectPage(adapter, address, document);
    return page.type === "series" && page.key === row.key ? adapter.latest(pageLinks(adapter, document), page.seriesId) : null;
  }

  return { look, run };
}
