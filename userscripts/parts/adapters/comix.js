// comix: /title/<id>-<slug>[/<upload id>-chapter-<n>]; the slug is renamed at will. Its og:title never follows the page.

addAdapter({
  site: "comix",
  host: "comix.to",
  library: "manga",

  detect(location, document) {
    const [, name, number] = location.pathname.match(/^\/title\/([^/]+)(?:\/[^/-]+-chapter-([^/]+))?\/?$/) ?? [];
    const id = name?.split("-")[0];
    if (!id) return OTHER;
    const title = this.title(document);
    return number === undefined
      ? seriesPage(this, id, title, `/title/${name}`)
      : chapterPage(this, id, title.replace(/\s+·\s+ch\.\s*\S+$/i, ""), `/title/${name}`, number, location);
  },

  // Recommendations have other ids.
  latest(links, seriesId) {
    const chapter = ownLink(this.host, `/title/(?<id>[^/?#-]+)[^/?#]*/[^/?#-]+-chapter-(?<number>${NUMBER})`);
    return highestChapter(links, chapter, (found) => found.groups.id === seriesId);
  },

  title: (document) => oneLine(document.title),
});
