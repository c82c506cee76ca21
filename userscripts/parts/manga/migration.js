// migration: the first install of the manga script stored under another prefix.

for (const name of ["cache", "queue", "lastchecked"]) {
  try {
    const old = localStorage.getItem(`mangabm:${name}`);
    if (old !== null && localStorage.getItem(PREFIX + name) === null) localStorage.setItem(PREFIX + name, old);
    localStorage.removeItem(`mangabm:${name}`);
  } catch {
    // no room, or no storage: it is there the next time
  }
}
