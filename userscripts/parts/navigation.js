// navigation: which page this is, also where the Site goes on without loading one. From an isolated world the page's own
// history calls are not to be seen: the Navigation API tells of them, and without it the address is looked at each second.

const SETTLE_MS = 300; // a title that has not changed for so long has settled

const SETTLE_PATIENCE_MS = 3000;

const LOOK_MS = 1000;

/** Call `entered(isFresh)` for each page once it has settled, and `left()` as soon as its address is another. Called again
 *  when title or headings change later. Not fresh: `titleOf()` is still what it was on the page before, and may be that
 *  one's or its own. */
function watchNavigation({ window, document, now }, { titleOf, entered, left }) {
  let address = addressOf(window.location);
  let shown = signature(document); // at the last call of `entered`, and what `titleOf` gave then
  let title = titleOf();
  let old = null; // the title of the page before
  let settling = 0;

  /** Whether the address is another than at the last look. */
  function look() {
    const current = addressOf(window.location);
    if (current !== address) {
      address = current;
      old = settling ? titleOf() : title;
      left();
      settle();
      return true;
    }
    if (!settling && signature(document) !== shown) settle();
    return false;
  }

  function settle() {
    const began = now();
    let latest = signature(document);
    let since = began;
    const step = () => {
      if (look()) return;
      const current = signature(document);
      if (current !== latest) [latest, since] = [current, now()];
      const isFresh = titleOf() !== old;
      if ((isFresh && now() - since >= SETTLE_MS) || now() - began >= SETTLE_PATIENCE_MS) {
        settling = 0;
        shown = current;
        title = titleOf();
        entered(isFresh);
      } else {
        settling = setTimeout(step, 100);
      }
    };
    clearTimeout(settling);
    settling = setTimeout(step, 100);
  }

  window.navigation?.addEventListener?.("currententrychange", look);
  window.addEventListener("popstate", look);
  setInterval(look, LOOK_MS);
  entered(true);
}

/** A fragment or a query makes no other page on any of the Sites. */
function addressOf({ pathname }) {
  return pathname;
}

function signature(document) {
  const headings = [...document.querySelectorAll("h1, h3.title")].slice(0, 3).map((heading) => oneLine(heading.textContent));
  return [oneLine(document.title), metaContent(document, "og:title"), ...headings].join("\n");
}
