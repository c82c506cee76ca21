"""Page bodies with their right answers: `tests/cases/expected.jsonl`, one case a line beside the bodies."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bookmark_appliance.lanes.judgement import judge_page
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.page import Page

CASES = Path(__file__).parent.parent / "cases"


class Expected(msgspec.Struct, forbid_unknown_fields=True):
    """What the judgement has to say."""

    latest: float | None
    cover: str | None
    completed: bool
    outcome: str


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """One line; an unknown key, a missing one or a missing body stops the run."""

    file: str
    site: str
    series_url: str
    http_status: int
    expect: Expected
    why: str
    headers: dict[str, str] = {}


def load_cases() -> list[Case]:
    lines = (CASES / "expected.jsonl").read_text("utf-8").splitlines()
    return [msgspec.json.decode(line, type=Case) for line in lines]


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.file)
def test_a_page_is_judged_right(case: Case) -> None:
    """SITE-006, SITE-007, SITE-014, SITE-020, SITE-024, SITE-027, SITE-032, SITE-038, SITE-039, LANE-022, LANE-024.

    Also SITE-005, SITE-010, SITE-013, SITE-018, SITE-019, SITE-023, SITE-025, SITE-026, SITE-029, SITE-031, SITE-034,
    SITE-035, SITE-037, LANE-025, LANE-026, LANE-027.
    """
    page = Page(case.http_status, case.headers, (CASES / case.file).read_bytes(), case.series_url)
    judgement = judge_page(SITES[case.site], case.series_url, page, now_ms=0)
    reading = judgement.reading
    found = Expected(
        latest=reading.latest.number if reading.latest else None,
        cover=reading.cover,
        completed=reading.completed,
        outcome=judgement.outcome.value,
    )
    assert found == case.expect, case.why


def test_every_body_has_its_line_and_every_line_its_own_body() -> None:
    files = [case.file for case in load_cases()]
    assert sorted(files) == sorted(path.name for path in CASES.iterdir() if path.name != "expected.jsonl")


def test_every_site_has_hostile_cases() -> None:
    hostile = [case.site for case in load_cases() if "-hostile-" in case.file]
    assert {site: hostile.count(site) >= 10 for site in SITES} == dict.fromkeys(SITES, True)


@pytest.mark.parametrize("change", [{"surprise": 1}, {"expect": {"latest": None}}, {"site": None}])
def test_a_case_with_unknown_or_missing_keys_is_refused(change: dict[str, Any]) -> None:
    line = {**msgspec.to_builtins(load_cases()[0]), **change}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(line, type=Case)
