// kagane: /series/<uuid>[/reader/<book uuid>]. No address holds a number, so the title gives it and no list of links can.

addAdapter({
  site: "kagane",
  host: "kagane.to",
  library: "manga",
  numberInTitle: true,

  detect(location, document) {
    const [, id, book] = location.pathname.match(/^\/series\/([0-9a-f-]{36})(?:\/reader\/([^/]+))?\/?$/i) ?? [];
    if (!id) return OTHER;
    const title = this.title(document).replace(/\s*[|·]\s*kagane$/i, "");
    if (book === undefined) return seriesPage(this, id.toLowerCase(), title, `/series/${id}`);
    const [, name, number] = title.match(/^(.*)\s-\s(?:volume\s\S+\s)?chapter\s(\S+)(?:\s-\sepisode\s\S+)?$/i) ??
      ["", title.replace(/\s-\s(?:volume\s\S+\s?)?(?:(?:prologue|epilogue|notice|special|extra|side story)\b.*)?$/i, ""), ""];
    return chapterPage(this, id.toLowerCase(), name, `/series/${id}`, number, location);
  },

  title: (document) => metaContent(document, "og:title"),
});
