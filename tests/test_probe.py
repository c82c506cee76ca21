import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio

from bookmark_appliance import cli
from bookmark_appliance.page import MAX_BODY_BYTES
from tests.simulated_sites import SimulatedSites, faults, simulated_sites

CASES = Path(__file__).parent / "cases"
KEYS = ["site", "series_url", "outcome", "latest", "label", "cover", "completed", "status", "bytes", "ms"]
ADDRESS = "https://asurascans.com/comics/brass-garden-4be1c07a"
BODY = """<link rel="canonical" href="https://asurascans.com/comics/brass-garden-4be1c07a">
<a href="/comics/brass-garden/chapter/12.50">Chapter 12.50</a><a href="/comics/brass-garden/chapter/7">Chapter 7</a>"""


@pytest.fixture(autouse=True)
def working_folder_with_a_body(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "body.html").write_text(BODY)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The object that `probe` printed: one line, every key, in order."""
    assert cli.run(["probe", *arguments]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    line: dict[str, Any] = json.loads(out)
    assert list(line) == KEYS
    return line


@pytest.mark.parametrize(
    "case",
    [json.loads(line) for line in (CASES / "expected.jsonl").read_text().splitlines()],
    ids=lambda case: case["file"],
)
def test_saved_pages_are_told_as_they_are_judged(case: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """SITE-005, LANE-022, LANE-024, LANE-026: INTERFACE.md, `probe --file`; each case of the contract."""
    body = CASES / case["file"]
    headers = [part for name, value in case.get("headers", {}).items() for part in ("--header", f"{name}: {value}")]
    status = ("--status", str(case["http_status"]))
    line = told(capsys, case["site"], case["series_url"], "--file", str(body), *status, *headers)
    assert {key: line[key] for key in case["expect"]} == case["expect"]
    assert line["site"] == case["site"]
    assert line["series_url"] == case["series_url"]
    if case["expect"]["outcome"] == "unfetchable":
        assert (line["status"], line["bytes"], line["ms"]) == (None, None, None)
    else:
        assert (line["status"], line["bytes"]) == (case["http_status"], body.stat().st_size)
        assert line["ms"] >= 0


def test_what_is_absent_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    """SITE-005: `latest` is a number, its label keeps the digits as published; a status of 200 is assumed."""
    line = told(capsys, "asura", ADDRESS, "--file", "body.html")
    assert (line["outcome"], line["latest"], line["label"]) == ("success", 12.5, "Chapter 12.50")
    assert (line["cover"], line["completed"], line["status"]) == (None, False, 200)
    assert line["bytes"] == len(BODY)


def test_headers_of_the_saved_answer_count(capsys: pytest.CaptureFixture[str]) -> None:
    """LANE-022: in any case of letters."""
    line = told(capsys, "asura", ADDRESS, "--file", "body.html", "--header", "CF-Mitigated: challenge")
    assert line["outcome"] == "refused"
    line = told(capsys, "asura", ADDRESS, "--file", "body.html", "--status", "503", "--header", "Retry-After:120")
    assert line["outcome"] == "refused"
    assert told(capsys, "asura", ADDRESS, "--file", "body.html", "--status", "503")["outcome"] == "errors"


@pytest.mark.parametrize(
    "address", ["https://evil.example/x", "http://asurascans.com/comics/a", "file:///etc/passwd", ""]
)
@pytest.mark.parametrize("options", [[], ["--file", "body.html"]], ids=["live", "saved"])
def test_an_address_that_the_gate_refuses_is_unfetchable(
    address: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """SITE-001, LANE-025"""
    line = told(capsys, "asura", address, *options)
    assert line == {
        **dict.fromkeys(KEYS),
        "site": "asura",
        "series_url": address,
        "outcome": "unfetchable",
        "completed": False,
    }


def test_a_site_without_a_route_is_unfetchable(capsys: pytest.CaptureFixture[str]) -> None:
    """SITE-003, LANE-025: kagane without a browser."""
    line = told(capsys, "kagane", "https://kagane.to/series/0d5f1fd1-5b5c-4b5e-9c0a-0a3a3c1f7a11")
    assert (line["outcome"], line["status"], line["bytes"], line["ms"]) == ("unfetchable", None, None, None)


def test_a_body_beyond_the_cap_is_cut_off_as_the_fetcher_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SITE-040: what stands beyond 4 MiB is not read."""
    beyond = '<a href="/comics/brass-garden/chapter/99">'
    (tmp_path / "long.html").write_text(BODY + " " * (MAX_BODY_BYTES - len(BODY)) + beyond)
    line = told(capsys, "asura", ADDRESS, "--file", "long.html")
    assert (line["latest"], line["bytes"]) == (12.5, MAX_BODY_BYTES)
    (tmp_path / "long.html").write_text(BODY + " " * (MAX_BODY_BYTES - len(BODY) - len(beyond)) + beyond)
    assert told(capsys, "asura", ADDRESS, "--file", "long.html")["latest"] == 99


@pytest.mark.parametrize("body", [b"", b"\x00\xff\xfe" * 100, "\ud800".encode("utf-8", "surrogatepass")])
def test_any_bytes_are_a_body(body: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SITE-006"""
    (tmp_path / "bytes").write_bytes(body)
    assert told(capsys, "asura", ADDRESS, "--file", "bytes")["outcome"] == "no_chapter"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nosuch", ADDRESS],
        ["Asura", ADDRESS, "--file", "body.html"],
        ["asura"],
        ["asura", ADDRESS, "--file", "missing.html"],
        ["asura", ADDRESS, "--file", "."],
        ["asura", ADDRESS, "--status", "200"],
        ["asura", ADDRESS, "--header", "a: b"],
        ["asura", ADDRESS, "--file", "body.html", "--status", "99"],
        ["asura", ADDRESS, "--file", "body.html", "--status", "ok"],
        ["asura", ADDRESS, "--file", "body.html", "--header", "no colon"],
        ["asura", ADDRESS, "--env-file", "missing.env"],
    ],
)
def test_wrong_usage_prints_no_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """CFG-001: INTERFACE.md; an unknown Site is exit 2."""
    assert cli.run(["probe", *arguments]) == 2
    assert capsys.readouterr().out == ""


def test_a_saved_body_needs_no_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CFG-001: nothing of the environment is read for it, nor is anything written."""
    monkeypatch.setenv("PORT", "none")
    assert told(capsys, "asura", ADDRESS, "--file", "body.html")["outcome"] == "success"
    assert [path.name for path in tmp_path.iterdir()] == ["body.html"]


async def probe(sites: SimulatedSites, site: str, address: str) -> dict[str, Any]:
    """What a process of its own tells of a page of the simulated Sites."""
    answer = await trio.run_process(
        [sys.executable, "-m", "bookmark_appliance", "probe", site, address],
        capture_stdout=True,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(cli.__file__).parents[1]),
            "SITE_CONNECT_TO": sites.connect_to,
            "SITE_CA_FILE": str(sites.ca_file),
        },
    )
    line: dict[str, Any] = json.loads(answer.stdout)
    assert list(line) == KEYS
    return line


async def test_a_live_page_is_read_as_a_lane_reads_it() -> None:
    """SITE-040, LANE-027: over TLS, no database needed; one request a probe."""
    async with simulated_sites() as sites:
        series = sites.world.add("asura", "brass-garden", chapters=180)
        address = f"https://asurascans.com{series.target}"
        line = await probe(sites, "asura", address)
        assert (line["outcome"], line["latest"], line["label"]) == ("success", 180, "Chapter 180")
        assert line["cover"].startswith("https://")
        assert line["status"] == 200
        assert line["bytes"] > 0
        sites.world.misbehave("asurascans.com", faults.reset)
        line = await probe(sites, "asura", address)
        assert (line["outcome"], line["status"], line["bytes"]) == ("errors", None, None)
        assert len(sites.requests_to("asura")) == 2


async def test_probes_of_one_site_are_a_second_apart() -> None:
    """LANE-056: in a shell loop and side by side, each request of a redirect too."""
    async with simulated_sites() as sites:
        series = sites.world.add("asura", "brass-garden", chapters=180)
        stale = f"https://asurascans.com{series.target[:-8]}00000000"
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(probe, sites, "asura", stale)
        times = [request.at for request in sites.requests_to("asura")]
    assert len(times) == 4
    assert all(later - earlier >= 0.999 for earlier, later in pairwise(times))
