"""What the simulated Sites publish at the moment, and how they misbehave: changed at run time by a test or a person."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import quote
from zlib import crc32

from tests.simulated_sites.faults import Fault
from tests.simulated_sites.gate import LIFETIME_SECONDS, Gate


@dataclass(frozen=True)
class SiteShape:
    """Where a Site's things are. The addresses are templates over a `Series`."""

    host: str
    cover_host: str
    cover_type: str
    address: str
    cover: str
    chapter: str = ""
    """Where a chapter is read; empty where no page of one is played."""


SHAPES = {
    "asura": SiteShape(
        "asurascans.com",
        "cdn.asurascans.com",
        "image/webp",
        "/comics/{slug}-{build}",
        "/asura-images/covers/{slug}.d4dcb8.webp",
        "/comics/{slug}-{build}/chapter/{chapter}",
    ),
    "comix": SiteShape(
        "comix.to",
        "static.comix.to",
        "image/jpeg",
        "/title/{slug}",
        "/ab12/i/0/1f/{identity}0aa@280.jpg",
        "/title/{slug}/27{number}-chapter-{chapter}",
    ),
    "demonic": SiteShape(
        "demonicscans.org",
        "readermc.org",
        "image/webp",
        "/manga/{slug}",
        "/images/thumbnails/{title}.webp",
        "/title/{slug}/chapter/{chapter}/1",
    ),
    "kagane": SiteShape("kagane.to", "kagane.to", "image/png", "/series/{slug}", "/api/v2/image/{image_id}/compressed"),
    "lightnovelworld": SiteShape(
        "lightnovelworld.net",
        "i1.wp.com",
        "image/jpeg",
        "/novel/{slug}/",
        "/lightnovelworld.net/wp-content/uploads/2025/10/{slug}.jpg",
    ),
    "novelfull": SiteShape(
        "novelfull.com",
        "novelfull.com",
        "image/webp",
        "/{slug}.html",
        "/uploads/webp/novel/{slug}-82661d911a.webp",
        "/{slug}/chapter-{chapter}-a-door.html",
    ),
}

HOSTS = sorted({host for shape in SHAPES.values() for host in (shape.host, shape.cover_host)})
GATED = {"comix": ("comix.to", "static.comix.to"), "kagane": ("kagane.to",), "novelfull": ("novelfull.com",)}
"""The hosts of a Site that stand behind its gate when it has one; novelfull's images do not."""


@dataclass
class Series:
    """One invented work at one Site. `slug` is as it stands in the address, percent escapes and all."""

    site: str
    slug: str
    title: str
    chapters: list[str]
    completed: bool = False
    build: str = "4be1c07a"
    """asura's hash: change it as a redeploy does, and the old address redirects once."""
    revision: int = 0
    """Goes up with each change of `chapters`; Last-Modified is made of it."""

    @property
    def shape(self) -> SiteShape:
        return SHAPES[self.site]

    @property
    def number(self) -> int:
        """The Site's own numeric id, five digits."""
        return 10_000 + crc32(self.slug.encode()) % 90_000

    @property
    def target(self) -> str:
        return self.shape.address.format(slug=self.slug, build=self.build)

    @property
    def address(self) -> str:
        """What a Reader's browser shows."""
        return f"https://{self.shape.host}{self.target}"

    def chapter_target(self, chapter: str) -> str:
        """Where one of its chapters is read."""
        return self.shape.chapter.format(slug=self.slug, build=self.build, number=self.number, chapter=chapter)

    @property
    def cover_address(self) -> str:
        """As published: demonic's hold raw spaces."""
        identity, image_id = self.slug.partition("-")[0], f"019d0007-1111-7007-8222-3333444{self.number}"
        path = self.shape.cover.format(slug=self.slug, title=self.title, identity=identity, image_id=image_id)
        return f"https://{self.shape.cover_host}{path}"

    @property
    def cover_target(self) -> str:
        """As it is asked for on the wire."""
        return quote(self.cover_address.removeprefix(f"https://{self.shape.cover_host}"), safe="/%@")


@dataclass
class World:
    """All Series, and the faults in force. Sites named in `validating` send ETag and Last-Modified and answer 304.

    `gates` are by host, and `policies` are headers that a host sends with every answer of its own.
    """

    series: list[Series] = field(default_factory=list)
    validating: set[str] = field(default_factory=set)
    faults: dict[str, Fault] = field(default_factory=dict)
    gates: dict[str, Gate] = field(default_factory=dict)
    policies: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    def add(
        self, site: str, slug: str, *, title: str = "", chapters: int | Iterable[str] = 3, completed: bool = False
    ) -> Series:
        """A new Series; a number of chapters means 1 to that number."""
        published = [str(n) for n in range(1, chapters + 1)] if isinstance(chapters, int) else list(chapters)
        series = Series(site, slug, title or slug.replace("-", " ").title(), published, completed)
        self.series.append(series)
        return series

    def find(self, site: str, slug: str) -> Series:
        """Raises LookupError."""
        for series in self.series:
            if (series.site, series.slug) == (site, slug):
                return series
        raise LookupError(f"no Series {slug!r} at {site!r}")

    def publish(self, site: str, slug: str, chapter: str) -> None:
        """One more chapter, digits as the Site prints them."""
        series = self.find(site, slug)
        series.chapters.append(chapter)
        series.revision += 1

    def retract(self, site: str, slug: str, chapter: str) -> None:
        series = self.find(site, slug)
        series.chapters.remove(chapter)
        series.revision += 1

    def misbehave(self, where: str, fault: Fault) -> None:
        """From now on `where` answers with `fault`: the address of a Series, or a host (`cdn.asurascans.com`)."""
        self.faults[where] = fault

    def behave(self, where: str | None = None) -> None:
        """End one fault, or all."""
        if where is None:
            self.faults.clear()
        else:
            self.faults.pop(where, None)

    def gate(self, site: str, *, seconds: float = 1.0, lifetime: float = LIFETIME_SECONDS, clears: bool = True) -> None:
        """From now on a challenge stands before the hosts of `site`; earlier clearances are void."""
        for host in GATED[site]:
            self.gates[host] = Gate(seconds, lifetime, clears)

    def ungate(self, site: str) -> None:
        """Let everybody through again."""
        for host in GATED[site]:
            self.gates.pop(host, None)


def sample_world() -> World:
    """Two Series a Site, of different lengths; all titles are invented."""
    world = World()
    world.add("asura", "lantern-of-the-ninth-gate", chapters=88)
    world.add("asura", "the-cartographers-oath", chapters=200, completed=True)
    world.add("comix", "7h2qk-tailor-of-rainfall", title="Tailor of Rainfall", chapters=84)
    world.add("comix", "3k8v1-i-became-a-spoon", title="I Became a Spoon", chapters=120)
    world.add("demonic", "Paper-Moon-Exorcist", chapters=["0.5", "1", "2", "171", "172"])
    world.add("demonic", "Widow%2527s-Clockwork", title="Widow's Clockwork", chapters=31)
    world.add("kagane", "019d0001-1111-7001-8222-333344445501", title="Harbour of Small Gods", chapters=["1", "12.5"])
    world.add("kagane", "019d0003-1111-7003-8222-333344445503", title="Ash Under Glass", chapters=41)
    world.add("lightnovelworld", "brass-garden", chapters=57)
    world.add("lightnovelworld", "winter-ledger", chapters=412, completed=True)
    world.add("novelfull", "the-reed-flute-hermit", chapters=1520)
    world.add("novelfull", "lord-of-quiet-rivers", chapters=212)
    return world
