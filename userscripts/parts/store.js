// store: this device's copy, in storage that the page's own scripts can write. What comes out of it is believed to be of
// the right shape and no more; what it can't take in stays in this tab's memory, and the panel says so.

/** `site` is the one whose page this is. What waits for another Site's Series is in this tab's memory alone: storage is no
 *  witness that a Reader wanted it. */
function createStore(storage, site) {
  const kept = new Map(); // name -> {text, left}: what storage did not take, and what stands there for it
  const lost = new Set(); // names of which not even the needful could be stored
  const parsed = new Map(); // name -> [text, value]: a long list is read once, not at every look
  let elsewhere = new Map();

  function read(name, shape) {
    const stored = attempt(() => storage.getItem(PREFIX + name));
    const ours = kept.get(name);
    const text = ours?.left === stored ? ours.text : stored;
    if (!parsed.has(name) || parsed.get(name)[0] !== text) {
      const value = shape(parseJson(text ?? ""));
      // Another tab has written since: its word, and of ours what it does not know.
      parsed.set(name, [text, ours ? new Map([...shape(parseJson(ours.text)), ...value]) : value]);
    }
    return parsed.get(name)[1];
  }

  /** `value` is what `text` would be read as, `needful` what must outlive this tab, where that is less. */
  function write(name, text, value, needful = text) {
    if (!kept.has(name) && text === parsed.get(name)?.[0]) return; // other tabs would hear of it
    kept.delete(name);
    lost.delete(name);
    parsed.set(name, [text, value]);
    if (put(name, text)) return;
    attempt(() => storage.removeItem(PREFIX + name)); // an older state must not be sent for a newer one
    if (!put(name, needful)) lost.add(name);
    const left = attempt(() => storage.getItem(PREFIX + name));
    if (left !== text) kept.set(name, { text, left });
  }

  function put(name, text) {
    return attempt(() => (storage.setItem(PREFIX + name, text), true), false);
  }

  /** key -> {at, marker}, the oldest first. */
  function queue() {
    const stored = [...read("queue", queueOf)].filter(([key]) => key.startsWith(`${site}:`));
    return structuredClone(new Map([...stored, ...elsewhere]));
  }

  return {
    queue,
    /** key -> row. What waits to be removed is none, though this tab's copy may be older than that. */
    rows() {
      const rows = new Map(read("cache", rowsOf));
      for (const [key, { marker }] of queue()) if (marker.op === "delete") rows.delete(key);
      return rows;
    },
    write(rows, waiting) {
      const list = inListOrder(rows.values());
      const known = [...read("cache", rowsOf).values()];
      if (kept.has("cache") || list.length !== known.length || list.some((row, n) => row !== known[n])) {
        // Rows first: a marker without its row could not be sent.
        const needful = list.filter(({ key }) => waiting.has(key));
        write("cache", JSON.stringify(list), new Map(list.map((row) => [row.key, row])), JSON.stringify(needful));
      }
      const own = [...waiting].filter(([key]) => key.startsWith(`${site}:`));
      elsewhere = new Map([...waiting].filter(([key]) => !key.startsWith(`${site}:`)));
      write("queue", JSON.stringify(own.map(([, { at, marker }]) => [at, marker])), new Map(own));
    },
    /** key -> when it was last checked here (unix ms). */
    lastChecked: () => new Map(read("lastchecked", timesOf)),
    writeLastChecked: (times) => write("lastchecked", JSON.stringify(Object.fromEntries(times)), times),
    /** Whether a change that waits would be lost with this tab. */
    unstored: () => queue().size > 0 && (lost.has("cache") || lost.has("queue") || elsewhere.size > 0),
  };
}

function rowsOf(value) {
  const rows = Array.isArray(value) ? value.slice(0, 20000).map(rowOf) : [];
  return new Map(rows.filter((row) => row?.kind === LIBRARY).map((row) => [row.key, row]));
}

function queueOf(value) {
  const queue = new Map();
  for (const item of Array.isArray(value) ? value.slice(0, 20000) : []) {
    const [at, marker] = Array.isArray(item) ? item : [0, item]; // an earlier install wrote markers alone
    const key = marker?.key;
    if (!rowOf({ key }) || queue.has(key) || !["put", "delete"].includes(marker.op)) continue;
    const attempts = Number.isSafeInteger(marker.attempts) ? Math.max(0, marker.attempts) : 0;
    const presses = [timeOf(marker.sendStatus), timeOf(marker.manual)];
    queue.set(key, { at: timeOf(at), marker: markerOf(key, marker.op, ...presses, attempts) });
  }
  return queue;
}

function timesOf(value) {
  const pairs = value !== null && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : [];
  return new Map(pairs.slice(0, 20000).map(([key, time]) => [key, timeOf(time)]));
}

/** A time in unix ms, 0 for none; `true` is a time that nobody noted. */
function timeOf(value) {
  return value === true ? 1 : Number.isSafeInteger(value) && value > 0 ? value : 0;
}

/** Where the panel's tab stands on this Site. Nothing waits for it: what can't be kept is forgotten. */
function createPlace(storage) {
  return {
    load: () => attempt(() => parseJson(storage.getItem(`${PREFIX}place`))),
    save: (place) => attempt(() => storage.setItem(`${PREFIX}place`, JSON.stringify(place))),
  };
}
