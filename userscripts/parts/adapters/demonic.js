// demonic: /manga/<slug>, /title/<slug>/chapter/<n>/<page>. Slugs are encoded twice or three times and are decoded once.

addAdapter({
  site: "demonic",
  host: "demonicscans.org",
  library: "manga",
  list: "#chapters-list",

  detect(location, document) {
    const title = this.title(document);
    const series = location.pathname.match(/^\/manga\/([^/]+)\/?$/);
    const chapter = location.pathname.match(/^\/title\/([^/]+)\/chapter\/([^/]+)(?:\/[^/]*)?\/?$/);
    const slug = this.slug((series ?? chapter)?.[1]);
    if (!slug) return OTHER;
    if (series) return seriesPage(this, slug, title, `/manga/${series[1]}`);
    return chapterPage(this, slug, title.replace(/\s+chapter\s+[0-9.]+$/i, ""), `/manga/${chapter[1]}`, chapter[2], location);
  },

  // The page's address holds no numeric id: of several, the list's own is the most frequent, of equals the first.
  latest(links) {
    const chapter = ownLink(this.host, `/?chaptered\\.php\\?manga=(?<id>[0-9]+)&chapter=(?<number>${NUMBER})`);
    const counts = new Map();
    for (const { href } of links) {
      const id = href.match(chapter)?.groups.id;
      if (id) counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    const own = [...counts].reduce((most, each) => (each[1] > most[1] ? each : most), ["", 0])[0];
    return highestChapter(links, chapter, (found) => found.groups.id === own);
  },

  title: (document) => metaContent(document, "og:title"),

  slug(encoded = "") {
    return attempt(() => decodeURIComponent(encoded), "");
  },
});
