// What a Reader sees and touches. It reads no storage and asks no server: the state comes through render(), what is
// pressed goes to `actions`. PANEL_CSS is panel.css, placed before this part by the build.

const ARM_MS = 350; // USERSCRIPTS.md 12: held this long, a swipe from beside the tab moves the tab and not the page
const DRAG_PX = 6;
const FIRST_ROWS = 40;
const MORE_ROWS = 80;

// What is shown, judged from plain data.
const panelRules = {
  tabs: [
    ["all", "All", "Nothing to read here yet.", "Bookmark a series from its own page, and it appears here."],
    ["favourites", "Favourites", "No favourites yet.", "Mark a series as a favourite, and it is kept here too."],
    ["archived", "Archived", "Nothing is archived.", "What you archive rests here and can be restored at any time."],
  ],
  labels: { manga: "Manga", novel: "Novels" },

  shelf(rows, tab) {
    if (tab === "archived") return rows.filter((row) => row.status === "archived");
    return rows.filter((row) => row.status !== "archived" && (tab === "all" || row.favorite));
  },

  // An unknown Latest Chapter is no new one (SER-020).
  hasNew: (row) => row.latest_chapter_num != null && row.latest_chapter_num > row.last_chapter_num,

  progress: (row) => (row.last_chapter_num ? `Chapter ${row.last_chapter_num}` : "Not started"),

  latest(row) {
    if (panelRules.hasNew(row)) return `New ${row.latest_chapter_num}`;
    return row.latest_chapter_num == null ? "" : `of ${row.latest_chapter_num}`;
  },

  // UI-017: the chapter, else the Series, and only by https on that Site's own host; else empty. The cache that a row
  // may come from can be written by the page.
  continueAddress(row, sites) {
    const host = sites.find(({ site }) => site === row.site)?.host;
    const own = (address) => {
      const origin = `https://${host}`;
      return host && String(address).startsWith(origin) && /^([/?#]|$)/.test(address.slice(origin.length));
    };
    return [row.last_chapter_url, row.series_url].find(own) ?? "";
  },

  monogram: (title) => (String(title).match(/[\p{L}\p{N}]/u)?.[0] ?? "?").toUpperCase(),

  // The number that a field holds, a decimal comma being as good as a point; null when it is no chapter.
  chapter(text) {
    const digits = text.trim().replace(",", ".");
    const number = /^\d{1,6}(\.\d{1,18})?\.?$/.test(digits) ? Number(digits) : Infinity;
    return number <= HIGHEST_CHAPTER ? number : null;
  },

  age(ms) {
    const minutes = Math.floor(ms / 60_000);
    if (minutes < 1) return "just now";
    if (minutes < 60) return `${minutes} min`;
    return minutes < 2880 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} days`;
  },

  sync({ sync, online }, now) {
    if (sync.state === "signed-out") return "Signed out";
    const age = sync.oldestAt ? `, ${panelRules.age(now - sync.oldestAt)}` : "";
    const kept = sync.waiting ? `${sync.waiting} waiting${age}` : online ? "All saved" : "";
    return online ? kept : ["Offline", kept].filter(Boolean).join(" · ");
  },

  // What needs more than a word, as [text, what can be done]: an address to go to, or "retry".
  notices({ sync }, webBase) {
    const changes = sync.waiting === 1 ? "1 change" : `${sync.waiting} changes`;
    const notices = [];
    if (sync.state === "signed-out") {
      const kept = sync.waiting ? ` ${changes} kept here.` : "";
      notices.push([`This copy of the script is no longer valid.${kept}`, `${webBase}/#scripts`]);
    }
    if (sync.unstored) {
      notices.push(["This browser has no room to keep what could not be sent. Leave this page open.", "retry"]);
    }
    if (sync.notice) notices.push([sync.notice, sync.givenUp ? "retry" : ""]);
    return notices;
  },

  // What a chapter page says beside the Bookmark of its Series.
  here(page, row) {
    if (page.type !== "chapter") return "";
    if (page.chapterNum == null) return "The number of this chapter can’t be read.";
    return row && page.chapterNum < row.last_chapter_num ? `You are looking back at chapter ${page.chapterNum}.` : "";
  },
};

// `sites` are {site, host} of this Library. `place` keeps where the tab stands on this Site: load() gives what save() was
// last given, or null. Each of `actions` may return a promise: bookmark(), override(key, number), favorite(key, bool),
// status(key, bucket), remove(key), retry(), opened().
function createPanel({ library, webBase, sites, actions, place }) {
  let state = { page: null, rows: [], sync: {}, online: true };
  let isOpen = false;
  let tab = "all";
  let limit = FIRST_ROWS;
  let drawer = { view: null, form: "" }; // the row that shows what can be done, and the form that is open in it
  let clock;
  const label = panelRules.labels[library];

  // Elements. Text becomes text nodes and attributes are set one by one: there is no markup to get into.

  function node(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [attribute, value] of Object.entries(attributes)) set(element, attribute, value);
    element.append(...children);
    return element;
  }
  function set(element, attribute, value) {
    if (value === false || value === "") element.removeAttribute(attribute);
    else if (element.getAttribute(attribute) !== String(value)) element.setAttribute(attribute, value);
  }
  function say(element, words) {
    if (element.textContent !== words) element.textContent = words;
  }
  function button(does, attributes, ...children) {
    return node("button", { type: "button", "data-do": does, ...attributes }, ...children);
  }
  const outside = { target: "_blank", rel: "noopener noreferrer" };

  const host = node("div", { "data-bookmark-panel": library }); // no name of its own: the page could define its element
  const shadow = host.attachShadow({ mode: "open" });
  const fab = button("toggle", { id: "fab", "aria-expanded": "false" }, node("span", { id: "hit" }));
  const veil = node("div", { id: "veil", "data-do": "close" });
  const sync = node("p", { class: "sync", role: "status" });
  const shut = button("close", { class: "close", "aria-label": "Close" }, "×");
  const notices = node("div", { class: "notices", role: "status" });
  const tabs = node("nav", { class: "tabs", "aria-label": "Lists" });
  for (const [name, words] of panelRules.tabs) {
    tabs.append(button("tab", { "data-tab": name }, words, node("span", { class: "count" })));
  }
  const rows = node("ol", { "aria-label": "Bookmarks" });
  const end = node("div", { class: "end" });
  const empty = node("div", { class: "empty" }, node("h2"), node("p"));
  const list = node("div", { class: "list" }, rows, empty, end);
  const page = node("section", { class: "page", "aria-label": "This page" });
  const chips = node("nav", { class: "chips", "aria-label": "Library and Sites" });
  chips.append(node("a", { href: `${webBase}/?library=${library}`, ...outside }, "Library"));
  for (const { site, host: name } of sites) {
    chips.append(node("a", { class: `site-${site}`, href: `https://${name}/`, title: name, ...outside }, site));
  }
  const panel = node(
    "section",
    { id: "panel", role: "dialog", "aria-label": `${label} bookmarks`, tabindex: "-1" },
    node("div", { class: "head" }, node("h1", {}, label), sync, shut),
    notices, tabs, list, page, chips,
  );
  const root = node("div", { class: "panel-root" }, fab, veil, panel);
  shadow.append(root);
  try {
    const sheet = new CSSStyleSheet(); // a page's policy may forbid style elements
    sheet.replaceSync(PANEL_CSS);
    shadow.adoptedStyleSheets = [sheet];
  } catch {
    shadow.prepend(node("style", {}, PANEL_CSS)); // Firefox adopts none from an isolated world
  }

  // One row, in the list or for this page. Only what has changed is touched, and an open form never.

  function rowView(where) {
    const name = node("bdi", { class: "name", dir: "auto" });
    const progress = node("span");
    const latest = node("span");
    const site = node("span");
    const finished = node("span", { class: "finished" });
    const cover = node("span", { class: "cover" });
    const chapters = node("span", { class: "chapters" }, progress, latest);
    const about = node("span", {}, name, chapters, node("span", { class: "facts" }, site, finished));
    const go = node("a", { class: "go", rel: outside.rel }, about);
    const more = button("more", { class: "more", "aria-expanded": "false" }, "⋯");
    const element = node(where === "list" ? "li" : "div", { class: "row" }, go);
    if (where === "list") {
      go.prepend(cover);
      element.append(more);
    }
    const view = { where, element, more, row: null, shown: "", drawer: null, strip: null, form: null };
    let pictured = null;

    view.update = (row) => {
      const shown = drawer.view === view ? drawer.form || "actions" : where === "page" ? "actions" : "";
      if (view.row === row && view.shown === shown) return;
      Object.assign(view, { row, shown });
      const isNew = panelRules.hasNew(row);
      const title = row.title || row.key;
      const address = panelRules.continueAddress(row, sites);
      element.classList.toggle("heat", isNew);
      element.classList.toggle("favourite", Boolean(row.favorite));
      set(go, "href", address);
      set(go, "target", address.startsWith(`${location.origin}/`) ? "" : outside.target);
      say(name, title);
      say(progress, panelRules.progress(row));
      say(latest, panelRules.latest(row));
      set(latest, "class", isNew ? "latest new" : "latest");
      say(site, sites.find((each) => each.site === row.site)?.host ?? row.site);
      set(site, "class", `site site-${row.site}`);
      say(finished, row.finished ? "Finished" : "");
      set(more, "aria-label", `Change ${title}`);
      set(more, "aria-expanded", Boolean(shown));
      const source = row.cover && `${row.cover}?w=240`;
      const picture = `${source}\n${panelRules.monogram(row.title)}`;
      if (where === "list" && pictured !== picture) cover.replaceChildren(pictureOf(source, row.title));
      pictured = picture;
      renderDrawer(view);
    };
    return viewOf.set(element, view).get(element);
  }
  const viewOf = new WeakMap();

  function pictureOf(source, title) {
    const tile = node("span", { class: "monogram", "aria-hidden": "true" }, panelRules.monogram(title));
    if (!source) return tile;
    const image = node("img", { loading: "lazy", decoding: "async" });
    image.alt = "";
    image.addEventListener("error", () => image.replaceWith(tile)); // USR-020
    image.src = source;
    return image;
  }

  function renderDrawer(view) {
    if (!view.shown) {
      view.drawer?.remove();
      view.drawer = view.form = null;
      return;
    }
    if (!view.drawer) {
      view.strip = {
        favourite: button("favourite", {}, "Favourite"),
        chapter: button("form", { "data-form": "chapter" }, "Chapter"),
        archive: button("form", { "data-form": "archive" }),
        remove: button("form", { "data-form": "remove" }, "Remove"),
      };
      const strip = node("div", { class: "actions", role: "group" }, ...Object.values(view.strip));
      view.drawer = node("div", { class: "drawer" }, strip);
      view.element.append(view.drawer);
    }
    const { favourite, archive } = view.strip;
    const archived = view.row.status === "archived";
    set(view.drawer.firstChild, "aria-label", view.row.title || view.row.key);
    set(favourite, "aria-pressed", String(Boolean(view.row.favorite)));
    set(archive, "data-do", archived ? "restore" : "form");
    say(archive, archived ? "Restore" : "Archive");
    for (const each of Object.values(view.strip)) {
      const opens = each.dataset.do === "form";
      set(each, "aria-expanded", opens && String(each.dataset.form === view.shown));
    }
    if (view.form?.dataset.form === view.shown) return;
    view.form?.remove();
    view.form = view.shown === "actions" ? null : formOf(view.shown, view.row);
    if (view.form) view.drawer.append(view.form);
  }

  function formOf(name, row) {
    const cancel = button("cancel", { class: "cancel" }, "Cancel");
    const yes = (words) => node("button", { class: "yes", "data-do": name }, words);
    const calm = { class: "form calm", "data-form": name };
    if (name === "archive") {
      const words = node("p", {}, "Archive this series? It keeps its chapter and rests under Archived.");
      return node("form", calm, words, yes("Archive"), cancel);
    }
    if (name === "remove") {
      const words = node("p", {}, "Remove this series and the chapter you are at? There is no way back.");
      return node("form", { ...calm, class: "form" }, words, cancel, yes("Remove"));
    }
    const input = node("input", { inputmode: "decimal", autocomplete: "off", maxlength: 20 });
    input.value = (state.page?.key === row.key && state.page.chapterNum) || row.last_chapter_num || "";
    const rule = "A chapter is a number from 0 to 100000, such as 12 or 12.5.";
    const wrong = node("p", { class: "wrong", role: "alert", hidden: true }, rule);
    return node("form", calm, node("label", {}, "Last chapter read", input), yes("Save"), cancel, wrong);
  }

  // Rendering

  function render(next) {
    state = next;
    if (!host.isConnected) document.documentElement.append(host);
    const { sync: { state: kept, unstored, givenUp }, page: here } = state;
    const fresh = panelRules.shelf(state.rows, "all").filter(panelRules.hasNew).length;
    const troubled = kept === "signed-out" || unstored || givenUp;
    fab.classList.toggle("new", fresh > 0);
    fab.classList.toggle("troubled", troubled);
    const news = troubled ? ", needs a look" : fresh ? `, ${fresh} with a new chapter` : "";
    set(fab, "aria-label", `${label} bookmarks${news}`);
    if (drawer.view?.where === "page" && drawer.view.row?.key !== here?.key) drawer = { view: null, form: "" };
    if (isOpen) renderPanel();
  }

  function renderPanel() {
    const focused = shadow.activeElement;
    const focusedRow = focused?.closest(".list .row");
    const at = focusedRow ? [...rows.children].indexOf(focusedRow) : -1;
    const onPage = page.contains(focused);
    const { left, top } = list.getBoundingClientRect();
    const firstInSight = () => shadow.elementFromPoint(left + 40, top + 1)?.closest(".list .row");
    const steady = list.scrollTop > 0 ? focusedRow ?? firstInSight() : null;
    const stood = steady?.getBoundingClientRect().top;
    renderSync();
    for (const each of tabs.children) {
      set(each, "aria-current", each.dataset.tab === tab && "true");
      say(each.lastChild, String(panelRules.shelf(state.rows, each.dataset.tab).length));
    }
    renderList();
    renderPage();
    if (steady?.isConnected) list.scrollTop += steady.getBoundingClientRect().top - stood;
    if (!focused) return;
    if (focused.checkVisibility()) focused.focus({ preventScroll: true });
    else if (at >= 0 && rows.children.length) viewOf.get(rows.children[Math.min(at, rows.children.length - 1)]).more.focus();
    else if (onPage) ([...page.querySelectorAll("button")].find((each) => each.checkVisibility()) ?? panel).focus();
    else tabs.querySelector("[aria-current]").focus();
  }

  function renderSync() {
    say(sync, panelRules.sync(state, Date.now()));
    const wanted = panelRules.notices(state, webBase);
    const signature = JSON.stringify(wanted);
    if (notices.signature === signature) return;
    notices.signature = signature;
    notices.replaceChildren(
      ...wanted.map(([words, way]) => {
        const notice = node("p", { class: "notice" }, node("span", {}, words));
        if (way === "retry") notice.append(button("retry", { class: "link" }, "Retry"));
        else if (way) notice.append(node("a", { class: "link", href: way, ...outside }, "Install again"));
        return notice;
      }),
    );
  }

  const views = new Map();

  function renderList() {
    const shelf = panelRules.shelf(state.rows, tab);
    const shown = new Map(shelf.slice(0, limit).map((row) => [row.key, row]));
    for (const [key, view] of views) {
      if (shown.has(key)) continue;
      view.element.remove();
      views.delete(key);
      if (drawer.view === view) drawer = { view: null, form: "" };
    }
    let cursor = rows.firstElementChild;
    for (const [key, row] of shown) {
      if (!views.has(key)) views.set(key, rowView("list"));
      const view = views.get(key);
      view.update(row);
      if (view.element === cursor) cursor = cursor.nextElementSibling;
      else rows.insertBefore(view.element, cursor);
    }
    const [, , heading, words] = panelRules.tabs.find(([name]) => name === tab);
    empty.hidden = shelf.length > 0;
    say(empty.firstChild, heading);
    say(empty.lastChild, words);
    end.hidden = shelf.length <= limit;
  }

  const pageView = rowView("page");
  const pageName = node("bdi", { class: "name", dir: "auto" });
  const pageChapter = node("span", { class: "chapters" });
  const add = button("bookmark", { class: "add" }, "+ Bookmark this");
  const offer = node("div", {}, node("div", { class: "go" }, pageName, pageChapter), add);
  const hereWords = node("span");
  const hereEnter = button("enter", { class: "link" }, "Enter it");
  const here = node("p", { class: "here" }, hereWords, hereEnter);
  page.append(pageView.element, offer, here);

  function renderPage() {
    const at = state.page;
    const row = at && state.rows.find(({ key }) => key === at.key);
    page.hidden = !at;
    if (!at) return;
    if (row) pageView.update(row);
    pageView.element.hidden = !row;
    offer.hidden = Boolean(row);
    say(pageName, at.title || at.key);
    say(pageChapter, at.chapterLabel || "");
    const words = panelRules.here(at, row);
    say(hereWords, words);
    here.hidden = !words;
    hereEnter.hidden = !(row && at.chapterNum == null);
  }

  // Opening and closing

  function open() {
    if (isOpen) return;
    isOpen = true;
    root.classList.add("open");
    set(fab, "aria-expanded", "true");
    limit = FIRST_ROWS;
    renderPanel();
    panel.focus({ preventScroll: true });
    clock = setInterval(renderSync, 30_000);
    ask("opened");
  }

  function close() {
    if (!isOpen) return;
    const held = panel.contains(shadow.activeElement);
    isOpen = false;
    clearInterval(clock);
    root.classList.remove("open");
    set(fab, "aria-expanded", "false");
    if (held) fab.focus({ preventScroll: true });
  }

  function show(view, form) {
    drawer = { view, form };
    renderPanel();
    if (!form || !view.form) return;
    const first = view.form.querySelector("input") ?? view.form.querySelector(form === "archive" ? ".yes" : ".cancel");
    first.focus();
    first.select?.();
    view.form.scrollIntoView({ block: "nearest" });
  }

  function back(view) {
    const owner = view.strip[view.form?.dataset.form];
    show(view, "");
    owner?.focus();
  }

  // What goes wrong is told through the state.
  const ask = async (action, ...given) => {
    try {
      await actions[action](...given);
    } catch {
      // It is there to be rendered.
    }
  };

  const does = {
    toggle: () => (isOpen ? close() : open()),
    close,
    retry: () => ask("retry"),
    bookmark: () => ask("bookmark"),
    enter: () => show(pageView, "chapter"),
    tab(pressed) {
      tab = pressed.dataset.tab;
      limit = FIRST_ROWS;
      list.scrollTop = 0;
      renderPanel();
    },
    more: (pressed, view) => (drawer.view === view ? show(null, "") : show(view, "")),
    form: (pressed, view) => (view.shown === pressed.dataset.form ? back(view) : show(view, pressed.dataset.form)),
    cancel: (pressed, view) => back(view),
    favourite: (pressed, { row }) => ask("favorite", row.key, !row.favorite),
    restore: (pressed, { row }) => ask("status", row.key, "reading"),
    archive(pressed, view) {
      back(view);
      ask("status", view.row.key, "archived");
    },
    remove(pressed, view) {
      back(view);
      ask("remove", view.row.key);
    },
    chapter(pressed, view) {
      const input = view.form.querySelector("input");
      const number = panelRules.chapter(input.value);
      if (number === null) {
        view.form.querySelector(".wrong").hidden = false;
        input.focus();
        return;
      }
      back(view);
      ask("override", view.row.key, number);
    },
  };

  // The page may reach into an open shadow root: it can press nothing, since only a person's events are trusted.
  shadow.addEventListener("click", (event) => {
    const pressed = event.target.closest("[data-do]");
    if (!event.isTrusted || !pressed || (pressed === fab && tabGestures.spent())) return;
    does[pressed.dataset.do](pressed, viewOf.get(pressed.closest(".row")));
  });
  shadow.addEventListener("submit", (event) => event.preventDefault());
  shadow.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing || !isOpen) return;
    event.preventDefault();
    const view = viewOf.get(event.target.closest(".row")) ?? drawer.view;
    if (view?.form) back(view);
    else if (view && view === drawer.view && view.where === "list") {
      show(null, "");
      view.more.focus();
    } else close();
  });
  // What is done here is none of the page's business: its shortcuts, its taps, its wheels.
  const ours = "keydown keyup keypress input change submit click contextmenu mousedown mouseup"
    + " pointerdown pointerup touchstart touchend touchmove wheel focusin focusout";
  for (const type of ours.split(" ")) shadow.addEventListener(type, (event) => event.stopPropagation(), { passive: true });

  const nearEnd = new IntersectionObserver(
    ([{ isIntersecting }]) => {
      if (!isIntersecting || !isOpen) return;
      limit += MORE_ROWS;
      renderPanel();
      nearEnd.unobserve(end); // told anew where it is now, be it as near as before
      nearEnd.observe(end);
    },
    { root: list, rootMargin: "600px" },
  );
  nearEnd.observe(end);

  const tabGestures = watchTab(fab, root, host, place);
  return { render, open, close };
}

// The tab: a tap opens, a swipe scrolls the page below, a hold or a grip on the sliver itself moves it. touch-action is
// settled before a gesture begins, so one strip can't leave some of them to the browser. Returns {spent()}: whether the
// click that comes now belongs to a gesture that is over.
function watchTab(fab, root, host, place) {
  let gesture = null;
  let spent = false;
  let fling = 0;

  function put({ edge, y }) {
    root.classList.toggle("left", edge === "left");
    fab.style.setProperty("--y", String(y));
  }
  const placeAt = ({ clientX, clientY }) => ({
    edge: clientX < innerWidth / 2 ? "left" : "right",
    y: Math.min(1, Math.max(0, clientY / innerHeight)),
  });
  const stored = place.load();
  put({ edge: stored?.edge === "left" ? "left" : "right", y: stored?.y >= 0 && stored.y <= 1 ? stored.y : 0.6 });

  function scrollerAt(x, y) {
    const below = document.elementsFromPoint(x, y).find((element) => element !== host);
    for (let element = below; element && element !== document.body; element = element.parentElement) {
      const scrolls = /auto|scroll/.test(getComputedStyle(element).overflowY);
      if (scrolls && element.scrollHeight > element.clientHeight) return element;
    }
    return document.scrollingElement;
  }
  const scroll = (scroller, top) => scroller.scrollBy({ top, behavior: "instant" });

  function coast(scroller, speed) {
    let last = performance.now();
    const step = (now) => {
      scroll(scroller, speed * (now - last));
      speed *= 0.95 ** ((now - last) / 16);
      last = now;
      fling = Math.abs(speed) > 0.03 ? requestAnimationFrame(step) : 0;
    };
    fling = requestAnimationFrame(step);
  }

  fab.addEventListener("pointerdown", (event) => {
    if (gesture || event.button !== 0) return;
    cancelAnimationFrame(fling);
    spent = false;
    fab.setPointerCapture(event.pointerId);
    const { left, right, top, bottom } = fab.getBoundingClientRect();
    const gripped = event.clientX >= left && event.clientX <= right && event.clientY >= top && event.clientY <= bottom;
    const arm = () => {
      gesture.mode = "armed";
      fab.classList.add("armed");
    };
    gesture = { id: event.pointerId, gripped, mode: "", x: event.clientX, y: event.clientY, at: event.timeStamp, speed: 0 };
    gesture.timer = setTimeout(arm, ARM_MS);
  });

  fab.addEventListener("pointermove", (event) => {
    if (event.pointerId !== gesture?.id) return;
    const dx = event.clientX - gesture.x;
    const dy = event.clientY - gesture.y;
    if (!gesture.mode || gesture.mode === "armed") {
      if (Math.hypot(dx, dy) < DRAG_PX) return;
      clearTimeout(gesture.timer);
      gesture.mode = gesture.gripped || gesture.mode === "armed" ? "move" : "scroll";
      gesture.scroller = scrollerAt(event.clientX, event.clientY);
    }
    spent = true;
    if (gesture.mode === "move") {
      fab.classList.add("armed");
      put((gesture.place = placeAt(event)));
      return;
    }
    scroll(gesture.scroller, -dy);
    gesture.speed = -dy / Math.max(1, event.timeStamp - gesture.at);
    Object.assign(gesture, { x: event.clientX, y: event.clientY, at: event.timeStamp });
  });

  function finish(event) {
    if (event.pointerId !== gesture?.id) return;
    const { timer, mode, scroller, speed, at, place: moved } = gesture;
    gesture = null;
    clearTimeout(timer);
    fab.classList.remove("armed");
    if (moved) place.save(moved);
    if (mode === "scroll" && event.type === "pointerup" && event.timeStamp - at < 60) coast(scroller, speed);
  }
  fab.addEventListener("pointerup", finish);
  fab.addEventListener("pointercancel", finish);
  fab.addEventListener("contextmenu", (event) => event.preventDefault()); // of a long press

  fab.addEventListener("keydown", () => (spent = false)); // a swipe ends without a click

  return { spent: () => spent && !(spent = false) };
}
