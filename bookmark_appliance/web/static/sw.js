// Nothing of anybody's library is kept: without a connection there is one honest page, and that is all.
"use strict";

const CACHE = "offline-2";
const KEPT = ["/static/offline.html", "/static/style.css", "/static/fonts/instrument-serif-400-latin.woff2"];

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(KEPT)));
  self.skipWaiting();
});

self.addEventListener("activate", (event) => {
  const others = (names) => names.filter((name) => name !== CACHE);
  event.waitUntil(caches.keys().then((names) => Promise.all(others(names).map((name) => caches.delete(name)))));
});

self.addEventListener("fetch", (event) => {
  const { pathname } = new URL(event.request.url);
  const kept = event.request.mode === "navigate" ? KEPT[0] : KEPT.find((path) => path === pathname);
  if (kept) event.respondWith(fetch(event.request).catch(() => caches.match(kept)));
});
