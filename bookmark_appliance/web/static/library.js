// What the pages do beyond their links and forms: panels, search, focus, and words when a request fails.
"use strict";

(() => {
  document.documentElement.classList.add("js");
  if ("serviceWorker" in navigator && window.isSecureContext) {
    navigator.serviceWorker.register("/sw.js").catch(() => {});
  }

  const byId = (id) => document.getElementById(id);
  const reducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  // Panels. A link with the role of a button leads to its panel: without this script by the address, with it in place.

  const target = (link) => byId(decodeURIComponent(link.hash.slice(1)));
  const scope = (element) => element.closest(".card, .rotation, .row");
  const ownerOf = (panel) =>
    [...scope(panel).querySelectorAll("[aria-expanded]")].find((link) => target(link) === panel);

  function setOpen(panel, open) {
    panel.classList.toggle("open", open);
    const owner = ownerOf(panel);
    owner.classList.toggle("open", open);
    owner.setAttribute("aria-expanded", String(open));
  }

  function closePanels(within) {
    within.querySelectorAll(".panel.open").forEach((panel) => setOpen(panel, false));
  }

  function makeChapterForm(pencil) {
    const form = byId("chapter-form").content.firstElementChild.cloneNode(true);
    form.id = decodeURIComponent(pencil.hash.slice(1));
    form.setAttribute("action", pencil.dataset.action);
    form.elements.chapter.value = pencil.dataset.chapter;
    pencil.closest(".acts").after(form);
    return form;
  }

  function toggle(link) {
    const panel = target(link) ?? makeChapterForm(link);
    const open = !panel.classList.contains("open");
    closePanels(scope(link));
    setOpen(panel, open);
    if (!open) return;
    const first = panel.querySelector("input:not([type=hidden])");
    const button = panel.querySelector(panel.classList.contains("calm") ? ".yes" : ".cancel");
    (first ?? button).focus();
    first?.select();
  }

  function closeAndReturn(panel) {
    const owner = ownerOf(panel);
    setOpen(panel, false);
    owner.focus();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("a[role=button]");
    if (!button) return;
    event.preventDefault();
    if (button.hasAttribute("aria-expanded")) toggle(button);
    else closeAndReturn(button.closest(".panel"));
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === " " && event.target.matches("a[role=button]")) {
      event.preventDefault();
      event.target.click();
    }
    const panel = event.key === "Escape" && scope(event.target)?.querySelector(".panel.open");
    if (panel) {
      event.preventDefault();
      closeAndReturn(panel);
    }
  });

  // Search: over what is there, and over the rest as it comes.

  const search = byId("search");
  const query = () => search.value.trim().toLowerCase();

  function refilter() {
    if (!search) return;
    const wanted = query();
    const cards = [...document.querySelectorAll("#list .card")];
    let shown = 0;
    for (const card of cards) {
      card.hidden = !card.dataset.title.toLowerCase().includes(wanted);
      if (!card.hidden) shown += 1;
    }
    const more = document.querySelector("#list .more");
    if (more) more.hidden = wanted !== "";
    byId("no-match").hidden = !(wanted && cards.length && !shown && !more);
    document.querySelector(".no-match-q").textContent = search.value.trim();
    const recent = byId("recent");
    recent.hidden = wanted !== "" || !recent.firstElementChild;
  }

  function loadRest() {
    const more = document.querySelector("#list .more a");
    if (more && (document.activeElement === search || query())) htmx.trigger(more, "rest");
  }

  if (search) {
    search.addEventListener("input", refilter);
    search.addEventListener("input", loadRest);
    search.addEventListener("focus", loadRest);
    document.querySelector(".clear-search").addEventListener("click", () => {
      search.value = "";
      refilter();
      search.focus();
    });
    document.addEventListener("bmgr:refilter", refilter);
    let settled = false; // htmx tells it of every card that came
    document.addEventListener("htmx:afterSettle", () => {
      if (settled) return;
      settled = true;
      queueMicrotask(() => {
        settled = false;
        refilter();
        loadRest();
      });
    });
  }

  // Tabs

  function setCurrent(tab) {
    for (const each of document.querySelectorAll(".tabs a")) {
      each.classList.toggle("active", each === tab);
      if (each === tab) each.setAttribute("aria-current", "page");
      else each.removeAttribute("aria-current");
    }
    document.dispatchEvent(new CustomEvent("bmgr:refilter"));
  }

  // A card's buttons and its chapter form: the answer takes the card's place.

  document.addEventListener("submit", (event) => {
    const card = (event.submitter ?? event.target).closest("#list .card");
    if (!card) return;
    event.preventDefault();
    const { submitter, target: form } = event;
    const values = Object.fromEntries(new FormData(form));
    if (submitter?.name) values[submitter.name] = submitter.value;
    const path = submitter?.getAttribute("formaction") ?? form.getAttribute("action");
    // A failure is told by its event.
    htmx.ajax("POST", path, { source: submitter ?? form, target: card, swap: "outerHTML", values }).catch(() => {});
  });

  // Requests: what was said about the last one goes, focus stays where the hand is, a failure is told where it happened.

  let before = null;
  const slotOf = (element) => element.closest(".card, .row, .more")?.querySelector(".error-inline") ?? byId("list-error");

  document.addEventListener("htmx:beforeRequest", ({ detail: { elt } }) => {
    slotOf(elt)?.replaceChildren();
    before = null;
    if (elt.matches(".tabs a")) {
      before = { tab: document.querySelector(".tabs .active") };
      setCurrent(elt);
    }
  });

  document.addEventListener("htmx:beforeSwap", ({ detail: { requestConfig } }) => {
    const { elt } = requestConfig;
    const card = elt.closest(".card");
    if (!card || !card.contains(document.activeElement)) return;
    const shown = [...document.querySelectorAll("#list .card:not([hidden])")];
    const place = shown.indexOf(card);
    before = {
      card: card.id,
      control: elt.closest(".chapter-form") ? ".pencil" : ".favourite",
      neighbour: (shown[place + 1] ?? shown[place - 1])?.id,
    };
  });

  document.addEventListener("htmx:afterRequest", ({ detail: { successful } }) => {
    if (!successful || !before?.card) return;
    const control = byId(before.card)?.querySelector(before.control);
    const next = control ?? byId(before.neighbour)?.querySelector(".actions a, .actions button");
    (next ?? document.querySelector(".tabs .active")).focus();
    before = null;
  });

  function fail(elt, ...words) {
    const slot = slotOf(elt);
    if (before?.tab) setCurrent(before.tab);
    if (!slot) return;
    slot.replaceChildren(...words);
    byId("announce").textContent = slot.textContent;
    slot.scrollIntoView({ block: "nearest", behavior: reducedMotion() ? "auto" : "smooth" });
  }

  function signInLink() {
    const link = document.createElement("a");
    link.href = "/login";
    link.textContent = "Sign in again.";
    return link;
  }

  function reasonOf({ status, responseText }, verb) {
    const reason = responseText.trim();
    if (status !== 400) return `That could not be ${verb === "get" ? "loaded" : "saved"}. Try again.`;
    if (!reason || reason.length > 120 || reason.startsWith("<")) return "This value was not accepted.";
    return reason[0].toUpperCase() + reason.slice(1) + (/[.!?]$/.test(reason) ? "" : ".");
  }

  document.addEventListener("htmx:responseError", ({ detail: { elt, xhr, requestConfig } }) => {
    if (xhr.status === 401) fail(elt, "Your session has ended, and nothing was saved. ", signInLink());
    else fail(elt, reasonOf(xhr, requestConfig.verb));
  });
  const unreachable = ({ detail: { elt } }) => fail(elt, "There is no connection. Try again.");
  document.addEventListener("htmx:sendError", unreachable);
  document.addEventListener("htmx:timeout", unreachable);
})();
