// main: the parts wired together, and what becomes of a visit to a page.

function start(env) {
  const { window, document, now } = env;
  const adapter = ADAPTERS.find(({ host }) => host === window.location.host);
  if (!adapter) return;
  const store = createStore(env.storage, adapter.site);
  const api = createApi(env.fetch);
  const queue = createQueue({ store, api, alone: createAlone(env.locks), now, changed: render });
  const checks = createChecks({ ...env, store, api, adapter });
  const panel = env.createPanel({
    library: LIBRARY,
    webBase: WEB_BASE,
    sites: ADAPTERS.map(({ site, host }) => ({ site, host })),
    place: createPlace(env.storage),
    actions: createActions({ queue, now, held: (key) => store.rows().has(key), pageNow: () => visit.page }),
  });
  const nowhere = { address: "", page: OTHER, stopReading() {} };
  let visit = nowhere;
  let rendering = 0;
  let keyBefore; // of the page before

  function render() {
    rendering ||= setTimeout(() => {
      rendering = 0;
      panel.render({
        page: visit.page.type === "other" ? null : visit.page,
        rows: [...store.rows().values()],
        sync: queue.state(),
        online: window.navigator.onLine,
      });
    }, 0);
  }

  function left() {
    visit.stopReading();
    keyBefore = visit.page.key;
    visit = nowhere;
    render();
  }

  function entered(isFresh) {
    const address = addressOf(window.location);
    const isNew = address !== visit.address;
    if (isNew) {
      visit.stopReading();
      visit = { ...nowhere, address, listed: queue.refresh() };
      arrive(visit);
    }
    visit.isFresh = isFresh;
    visit.page = pageAt(visit);
    if (visit.page.type !== "chapter") {
      visit.stopReading();
      visit.isWatched = false;
    } else if (!visit.isWatched) {
      visit.isWatched = true;
      const reading = visit;
      visit.stopReading = whenRead(env, () => read(reading));
    }
    render();
  }

  /** The page as it is, unless it is another one by now. What an old title may belie is left out. */
  function pageAt({ address, isFresh }) {
    if (addressOf(window.location) !== address) return OTHER;
    const page = detectPage(adapter, window.location, document);
    if (isFresh || page.type === "other") return page;
    if (adapter.seriesInPage && page.type === "chapter") return OTHER;
    return { ...page, title: page.key === keyBefore ? page.title : "", ...(adapter.numberInTitle && { chapterNum: null, chapterLabel: "" }) };
  }

  async function arrive(arrived) {
    if (!(await arrived.listed)) return; // what is no longer held must not be made anew by a Sighting
    if (arrived === visit) await checks.look(pageAt(arrived), document);
    if (arrived === visit) await checks.run();
  }

  async function read(reading) {
    const page = pageAt(reading);
    if (page.type !== "chapter" || page.chapterNum === null) {
      reading.isWatched = false; // its title may still come
      return;
    }
    // On a Site's first page nothing else tells a Bookmark; of one that is known, a silent server may cost no chapter.
    await Promise.race([reading.listed, store.rows().has(page.key) ? new Promise((done) => setTimeout(done, LIST_MS)) : reading.listed]);
    const row = store.rows().get(page.key);
    if (!row) return;
    if (page.chapterNum < row.last_chapter_num) await queue.offer(row, page);
    else await queue.save(page.key, (current) => current && readOn(current, page, now()));
  }

  watchNavigation(env, { titleOf: () => adapter.title(document), entered, left });
  window.addEventListener("online", () => queue.refresh());
  window.addEventListener("offline", render);
  window.addEventListener("pageshow", ({ persisted }) => persisted && queue.refresh());
  window.addEventListener("storage", ({ key }) => key?.startsWith(PREFIX) && render());
}

/** What the panel can ask for. Each tells of its failures in the state alone. */
function createActions({ queue, held, now, pageNow }) {
  const change = (key, fields, how) => queue.save(key, (row) => row && { ...row, ...fields }, how);
  return {
    async bookmark() {
      const page = pageNow();
      if (page.type === "other") return;
      // A first one may meet a row that another device has made: that one's Progress stands if it is further.
      const manual = held(page.key) && page.chapterNum !== null;
      await queue.save(page.key, (row) => bookmarked(row, page, now()), { manual });
    },
    async override(key, number) {
      if (!isChapterNumber(number)) return;
      const page = pageNow();
      await queue.save(key, (row) => {
        const base = row ?? (page.key === key ? bookmarked(undefined, page, now()) : null);
        return base && overridden(base, number, page, now());
      }, { manual: true });
    },
    favorite: (key, favorite) => change(key, { favorite, favorite_unsent: true }),
    status: (key, status) => change(key, { status }, { status: true }),
    remove: (key) => queue.remove(key),
    retry: () => queue.retry(),
    opened: () => queue.refresh(),
  };
}

function boot() {
  const begin = () => start({
    window,
    document,
    storage: attempt(() => window.localStorage),
    locks: window.navigator.locks,
    fetch: (...request) => window.fetch(...request),
    parseHtml: (html) => new DOMParser().parseFromString(html, "text/html"),
    now: () => Date.now(),
    createPanel,
  });
  if (document.body) begin();
  else document.addEventListener("DOMContentLoaded", begin, { once: true });
}
