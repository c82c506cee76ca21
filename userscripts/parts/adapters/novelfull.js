// novelfull: /<slug>.html, /<slug>/chapter-<n>[-<title>].html. No og tags; on a chapter's page the h3 names the chapter.

addAdapter({
  site: "novelfull",
  host: "novelfull.com",
  library: "novel",

  detect(location, document) {
    const series = location.pathname.match(/^\/([^/]+)\.html$/);
    if (series) return seriesPage(this, series[1], this.title(document), location.pathname);
    const [, slug, number] = location.pathname.match(/^\/([^/]+)\/chapter-([^/]+)\.html$/) ?? [];
    return slug ? chapterPage(this, slug, textOf(document, "a.truyen-title"), `/${slug}.html`, number, location) : OTHER;
  },

  title: (document) => textOf(document, "h3.title"),

  latest(links, seriesId) {
    const chapter = ownLink(this.host, `/(?<slug>[^/?#]+)/chapter-(?<number>${NUMBER})`);
    return highestChapter(links, chapter, (found) => found.groups.slug === seriesId);
  },
});
