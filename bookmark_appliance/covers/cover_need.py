"""Which cover work a read of a Series calls for: one pure decision for Poll and Acquisition (COV-011 to COV-015)."""

from dataclasses import dataclass

from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.store.series import StoredSeries


@dataclass(frozen=True, slots=True)
class CoverNeed:
    """Get the image at `source`.

    A need that `replaces` is fetched and written over whatever the Series has (COV-014). Any other is written only
    while the Series has no address (COV-015), and first looks for the object under the source's old address (COV-011).
    """

    source: str
    replaces: bool = False


def cover_need(stored: StoredSeries, judgement: Judgement, *, forced: bool) -> CoverNeed | None:
    """What there is to do, given the row as it stood when the reading was recorded; None when nothing.

    Only a page that may be believed publishes a cover. One that failed still lets the stored source be tried again
    (COV-013), unless the address gate or the routing refused the Series: then nothing is asked for its sake.
    """
    published = judgement.reading.cover
    if forced and published:
        return CoverNeed(published, replaces=True)
    if stored.cover_address or judgement.outcome is Outcome.UNFETCHABLE:
        return None
    source = stored.cover or published
    return CoverNeed(source) if source else None
