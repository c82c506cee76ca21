"""A page that means ill, or merely has much CSS: it changes nothing of the panel, presses nothing, is not changed."""

from collections.abc import Callable

from playwright.sync_api import expect

from tests.panel.stage import PLAIN, Stage, at, mount, row, state

Setting = Callable[..., Stage]

BRASS = row("Brass Garden", 1, 2)
ROWS = (BRASS, row("Salt Road", 3, 3, site="comix"))

STYLES = {
    "unset": "* { all: unset !important; } *::before, *::after { content: 'x' !important; }",
    "hidden": """div, button, section {
      display: none !important; visibility: hidden !important; opacity: 0 !important; }""",
    "moved": """body, body *, html > div {
      position: static !important; transform: rotate(9deg) !important; zoom: 2 !important; margin: 9px !important; }""",
    "inherited": """html { direction: rtl; font: 40px/3 cursive; letter-spacing: 1em; color: red; cursor: none;
      text-transform: uppercase; --ink: red; --y: 9; }
      * { --ink: red !important; --paper: red !important; --width: 9px !important; user-select: none !important; }""",
    "covered": "body::after { content: ''; position: fixed; inset: 0; z-index: 2147483647; }",
}
LOOK = """() => [...document.querySelector("[data-bookmark-panel]").shadowRoot.querySelectorAll("*")].map((one) => {
  const {x, y, width, height} = one.getBoundingClientRect();
  const style = getComputedStyle(one);
  const names = ["color", "backgroundColor", "fontSize", "display", "opacity", "visibility", "direction",
    "letterSpacing", "cursor", "textTransform", "zoom"];
  return [one.localName, x, y, width, height, ...names.map((name) => style[name])];
})"""


def test_no_style_of_the_page_reaches_in(stage: Setting) -> None:
    """USR-022: every box, colour and size is the same as on a plain page."""
    looks = {}
    for name, style in {"plain": "", **STYLES}.items():
        shown = stage(f"{PLAIN}<style>{style}</style>")
        shown.open(state(ROWS, at(BRASS, 1)))
        shown.button("Change Salt Road").click()
        looks[name] = shown.page.evaluate(LOOK)
        assert looks[name] == looks["plain"], name


def test_a_policy_without_styles_is_kept_to(stage: Setting) -> None:
    """USR-022: neither a style element nor markup is needed."""
    policy = {"Content-Security-Policy": "default-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"}
    shown = stage(headers=policy)
    shown.open(state([row("Brass Garden", cover="https://books.example/covers/x")]))
    assert shown.find("#panel").evaluate("one => getComputedStyle(one).position") == "fixed"
    expect(shown.find(".monogram")).to_have_text(["B"])


def test_an_engine_that_adopts_no_sheet_takes_an_element(stage: Setting) -> None:
    """USR-022: as Firefox does."""
    page = stage().page
    page.reload()
    world = mount(page, before="globalThis.CSSStyleSheet = class { replaceSync() { throw new Error('not here'); } }")
    again = Stage(page, world, [])
    again.open(state(ROWS))
    assert again.find("#panel").evaluate("one => getComputedStyle(one).position") == "fixed"
    assert again.find("style").count() == 1


def test_the_page_can_press_nothing(stage: Setting) -> None:
    """USR-022: an open shadow root can be reached into, and what is pressed from there is not a person's doing."""
    shown = stage()
    shown.open(state(ROWS, at(row("Heron Sutra"), 1)))
    shown.button("Change Salt Road").click()
    shown.button("Remove", ".list .actions").click()
    shown.page.evaluate(
        """() => {
          const root = document.querySelector("[data-bookmark-panel]").shadowRoot;
          for (const one of root.querySelectorAll("button")) {
            one.click();
            one.dispatchEvent(new MouseEvent("click", {bubbles: true, composed: true}));
            one.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}));
          }
          for (const one of root.querySelectorAll("form")) one.requestSubmit();
        }"""
    )
    assert shown.pressed() == []
    assert shown.find(".list .form").count() == 1
    assert shown.page.url.endswith("4be1c07a")


def test_prototypes_that_the_page_patched_are_not_ours(stage: Setting) -> None:
    """USR-022: the panel works on, and what it says passes through none of them."""
    shown = stage(
        f"""{PLAIN}<script>
        heard = 0;
        const ours = [Element, Node, Array, String, Map, EventTarget, Object, Promise];
        for (const {{prototype}} of ours)
          for (const name of Object.getOwnPropertyNames(prototype)) {{
            const given = Object.getOwnPropertyDescriptor(prototype, name);
            if (typeof given.value === "function" && name !== "constructor")
              prototype[name] = function () {{ heard += 1; throw new Error("patched"); }};
          }}
        </script>"""
    )
    shown.open(state([row('"><img src=x onerror=heard=9><b>')], at(row("</script><b>"), 1)))
    shown.button("+ Bookmark this").click()
    assert shown.pressed() == [["bookmark"]]
    assert shown.find(".panel-root b").count() == 0


def test_what_the_page_throws_out_comes_back(stage: Setting) -> None:
    """USR-022: with the next state, and in the state it was in."""
    shown = stage()
    shown.open(state(ROWS))
    shown.page.evaluate("document.querySelector('[data-bookmark-panel]').remove()")
    shown.render(state(ROWS))
    expect(shown.find("#panel")).to_be_visible()


def test_the_page_is_laid_out_as_without_it(stage: Setting) -> None:
    """USR-022: no box of the page moves, closed or open, and the document grows in no direction."""
    measure = """() => [...document.querySelectorAll("html, body, body *")]
      .map((one) => JSON.stringify(one.getBoundingClientRect()))
      .concat(document.documentElement.scrollWidth, document.documentElement.scrollHeight)"""
    shown = stage(f"{PLAIN}<footer>The end</footer>")
    before = shown.page.evaluate(measure)
    shown.page.evaluate(
        """() => {
          shifts = 0;
          new PerformanceObserver((list) => list.getEntries().forEach(({value}) => { shifts += value; }))
            .observe({type: "layout-shift", buffered: true});
        }"""
    )
    shown.render(state(ROWS, at(BRASS, 1)))
    assert shown.page.evaluate(measure) == before
    shown.open(state(ROWS, at(BRASS, 1)))
    assert shown.page.evaluate(measure) == before
    shown.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert shown.page.evaluate("shifts") == 0
