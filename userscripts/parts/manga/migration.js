// migration: the first install of the manga script stored under another prefix.

for (const name of ["cache", "queue", "lastchecked"]) {
  attempt(() => {
    const old = localStorage.getItem(`mangabm:${name}`);
    if (old !== null && localStorage.getItem(PREFIX + name) === null) localStorage.setItem(PREFIX + name, old); // no room: the next time
    localStorage.removeItem(`mangabm:${name}`);
  });
}
