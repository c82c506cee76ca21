// lightnovelworld: /novel/<slug>/, chapters at the root as /<chapter slug>-chapter-<n>/. A chapter slug is no identity:
// one Series may have several, so the page must say whose it is. Visitors write on its pages: no list of links is read.

addAdapter({
  site: "lightnovelworld",
  host: "lightnovelworld.net",
  library: "novel",
  seriesInPage: true,

  detect(location, document) {
    const heading = this.title(document);
    const series = location.pathname.match(/^\/novel\/([^/]+)\/?$/);
    if (series) return seriesPage(this, series[1], heading, `/novel/${series[1]}/`);
    const [, number] = location.pathname.match(/^\/[^/]+-chapter-([^/]+)\/?$/) ?? [];
    const slug = number !== undefined && this.seriesOf(document, location);
    if (!slug) return OTHER;
    return chapterPage(this, slug, heading.replace(/^(.*[^\s:–—-])\s+(?:[-–—:]\s*)?chapter\s+[0-9.]+(?:\s*[-–—:].*)?$/i, "$1"), `/novel/${slug}/`, number, location);
  },

  title: (document) => textOf(document, "h1.entry-title"),

  seriesOf(document, location) {
    const link = document.querySelector('a[aria-label="All Chapter"]')?.getAttribute("href");
    return this.slug(link, location) || this.slug(this.secondCrumb(document), location);
  },

  slug(address, location) {
    const url = parseAddress(address, location.href);
    return (url?.host === this.host && url.pathname.match(/^\/novel\/([^/]+)\/?$/)?.[1]) || "";
  },

  /** The address of the second crumb of the page's JSON-LD. */
  secondCrumb(document) {
    for (const script of document.querySelectorAll('script[type="application/ld+json"]')) {
      const data = parseJson(script.textContent);
      for (const node of [data, data?.["@graph"]].flat()) {
        const crumbs = node?.["@type"] === "BreadcrumbList" ? [node.itemListElement].flat() : [];
        const item = crumbs.find((crumb) => Number(crumb?.position) === 2)?.item;
        if (item) return typeof item === "string" ? item : item["@id"] ?? item.url;
      }
    }
    return "";
  },
});
