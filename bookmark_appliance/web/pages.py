"""Pages: their templates, all parsed at the start (OPS-003), and the answers made of them."""

from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateNotFound, meta
from quart_trio.wrappers import TrioResponse

from bookmark_appliance.web.context import WebContext
from bookmark_appliance.web.static_files import StaticFiles

TEMPLATES: Final = Path(__file__).with_name("templates")

HTML: Final = "text/html; charset=utf-8"


class Pages:
    """Renders templates. Everything that they print is escaped; a value that they lack is an error.

    In every template `static(name)` is the address of a static file. Raises jinja2.TemplateError when a template can't
    be parsed or names one that isn't there.
    """

    def __init__(self, context: WebContext, static: StaticFiles, folder: Path = TEMPLATES) -> None:
        self._context = context
        self._environment = Environment(
            loader=FileSystemLoader(folder),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals["static"] = static.address
        self._parse_all()

    def _parse_all(self) -> None:
        assert self._environment.loader is not None
        names = set(self._environment.list_templates())
        for name in sorted(names):
            source, _, _ = self._environment.loader.get_source(self._environment, name)
            for other in meta.find_referenced_templates(self._environment.parse(source, name)):
                if other not in names:
                    raise TemplateNotFound(other, f"{name} refers to {other}, which is not there")
            self._environment.get_template(name)

    def render(self, name: str, status: int = 200, **values: Any) -> TrioResponse:
        """The template as an answer: a whole page, or a fragment of one."""
        return TrioResponse(self._environment.get_template(name).render(values), status, content_type=HTML)

    def sign_in(self, status: int = 200, message: str = "") -> TrioResponse:
        """The sign-in page, with what there is to say about an attempt."""
        return self.render("sign_in.html", status, message=message, discord=self._context.discord is not None)


def see_other(location: str) -> TrioResponse:
    """303: the browser goes on to `location` with a GET."""
    response = TrioResponse(b"", 303)
    response.headers["Location"] = location
    return response
