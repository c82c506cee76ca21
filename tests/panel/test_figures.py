"""What the script costs a page (issue 7): time and layout."""

from collections.abc import Callable
from statistics import median

from tests.pages.appliance import Reader
from tests.panel.device import Device
from tests.panel.stage import count_work, work_ms
from tests.seed_library import Row
from tests.simulated_sites.world import Series

LOADS = 7
MOST_MS = 15
SHIFTS = """new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => list.getEntries().forEach(({value}) => { sum += value; }))
    .observe({type: "layout-shift", buffered: true});
  requestAnimationFrame(() => setTimeout(() => done(sum), 50));
})"""


def test_what_a_page_pays(device: Callable[..., Device], publish: Callable[..., Series], reader: Reader) -> None:
    """USR-022: under 15 ms of a page's load with a list of 500 in the cache, and no shift of its layout."""
    reader.holds(Row("asura", f"one-{n}", f"Series number {n}", "manga", 3, n, cover=False) for n in range(500))
    address = f"https://asurascans.com{publish().chapter_target('12')}"
    devices = {"with": device(), "without": device()}
    devices["without"].install("")
    loads: dict[str, list[float]] = {"with": [], "without": []}
    shifts = 0.0
    for each in devices.values():
        count_work(each.cdp)
    for _ in range(LOADS):
        for name, each in devices.items():
            each.page.goto(address)
            loads[name].append(work_ms(each.cdp))
            if name == "with":
                each.find("#fab").wait_for()
                each.page.wait_for_function("localStorage['bmgr:manga:cache']?.includes('one-499')")
                shifts += each.page.evaluate(SHIFTS)
    whole, bare = median(loads["with"]), median(loads["without"])
    print(f"a page's thread works {whole:.1f} ms until it is loaded with the script, {bare:.1f} ms without")
    assert whole - bare < MOST_MS
    assert shifts == 0
