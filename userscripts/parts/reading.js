// reading: when an open page counts as read.

/** Call `done` once, when the page has been visible for READ_MS altogether or a person has scrolled it; gives a function
 *  that ends the waiting. A page's own scrolling follows no wheel, touch or key. */
function whenRead({ document, now }, done) {
  let timer = 0;
  let since = 0;
  let seen = 0;
  let intent = false;
  const listened = [["visibilitychange", look], ["wheel", mean], ["touchmove", mean], ["keydown", mean], ["scroll", scrolled]];

  function look() {
    clearTimeout(timer);
    if (since) seen += now() - since;
    since = document.visibilityState === "visible" ? now() : 0;
    if (since) timer = setTimeout(finish, Math.max(0, READ_MS - seen));
  }

  function mean({ isTrusted, type, key }) {
    if (isTrusted && (type !== "keydown" || [" ", "PageDown", "PageUp", "ArrowDown", "ArrowUp", "End"].includes(key))) intent = true;
  }

  function scrolled({ isTrusted }) {
    if (isTrusted && intent) finish();
  }

  function finish() {
    stop();
    done();
  }

  function stop() {
    clearTimeout(timer);
    for (const [type, listener] of listened) document.removeEventListener(type, listener, true);
  }

  for (const [type, listener] of listened) document.addEventListener(type, listener, { capture: true, passive: true });
  look();
  return stop;
}
