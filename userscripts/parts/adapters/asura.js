// asura: /comics/<slug>-<8 hex>; the hash is the whole Site's and changes at each redeploy, so it is no identity.

addAdapter({
  site: "asura",
  host: "asurascans.com",
  library: "manga",

  detect(location, document) {
    const [, name, number] = location.pathname.match(/^\/comics\/([^/]+)(?:\/chapter\/([^/]+))?\/?$/) ?? [];
    if (!name) return OTHER;
    const title = this.title(document);
    const slug = this.slug(name);
    return number === undefined
      ? seriesPage(this, slug, title.replace(/\s*\|\s*asura scans$/i, ""), `/comics/${name}`)
      : chapterPage(this, slug, title.replace(/(?:\s*-)?(?:\s+chapter\s+\S+\s+-\s+read online)?\s*\|\s*asura scans$/i, ""), `/comics/${name}`, number, location);
  },

  // The shortcut to the first chapter carries no number in its text; the links of other works have other slugs.
  latest(links, seriesId) {
    const chapter = ownLink(this.host, `/comics/(?<name>[^/?#]+)/chapter/(?<number>${NUMBER})`);
    return highestChapter(links, chapter, (found, link) => this.slug(found.groups.name) === seriesId && /chapter\s*[0-9]/i.test(link.text));
  },

  title: (document) => metaContent(document, "og:title"),

  slug(name) {
    return name.replace(/(?<=.)-[0-9a-f]{8}$/, "");
  },
});
