// queue: what this device has still to tell the server. A marker a Series: {key, op, sendStatus, manual, attempts}; its
// body is made of the cached row when it is sent, so that order is right and repeats merge by themselves. `sendStatus` and
// `manual` are the time of the press that set them: what was pressed while a PUT was under way is told from what it took.

function createQueue({ store, api, alone, now, changed }) {
  let signedOut = false;
  let notice = "";
  let refreshing = null;
  let busy = 0;

  const pending = () => [...store.queue().values()];

  /** One change of storage as a whole: other tabs of the Site share it. */
  const update = (change) => alone("store", 1000, async () => {
    const rows = store.rows();
    const queue = store.queue();
    change(rows, queue);
    store.write(rows, queue);
    changed();
  });

  /** `change` makes the new row of the old one or undefined; null is no change. `status`: this write is about the bucket;
   *  `manual`: it sets Progress to what it says, lower or not. */
  async function save(key, change, { status = false, manual = false } = {}) {
    let saved = false;
    await update((rows, queue) => {
      const row = change(rows.get(key));
      if (!row) return;
      saved = true;
      const { at = now(), marker: before = markerOf(key, "put") } = queue.get(key) ?? {};
      const time = Math.max(now(), before.manual + 1, before.sendStatus + 1);
      const anew = before.op === "delete"; // the server may still hold the row that was removed here
      rows.set(key, anew ? { ...row, favorite_unsent: true } : row);
      const presses = [status || anew ? time : before.sendStatus, manual || anew ? time : before.manual];
      queue.set(key, { at, marker: markerOf(key, "put", ...presses) });
    });
    if (saved) await drain();
  }

  async function remove(key) {
    await update((rows, queue) => {
      rows.delete(key);
      queue.set(key, { at: queue.get(key)?.at ?? now(), marker: markerOf(key, "delete") });
    });
    await drain();
  }

  function sending(work) {
    busy += 1;
    return alone("send", 2 * REQUEST_MS, work).finally(() => {
      busy -= 1;
      changed();
    });
  }

  const drain = () => sending(sendAll);

  /** The oldest first. What changes under way is sent again. */
  async function sendAll() {
    const tries = new Map();
    const isDue = ({ marker }) => marker.attempts < MAX_ATTEMPTS && (tries.get(marker.key) ?? 0) < 3;
    for (let next = pending().find(isDue); next; next = pending().find(isDue)) {
      const { key } = next.marker;
      const { sent, status } = await send(next.marker);
      if (!sent && [0, 401, 429, 502, 503, 504].includes(status)) return; // so would the rest
      tries.set(key, sent ? (tries.get(key) ?? 0) + 1 : 3);
    }
  }

  async function send(marker) {
    const isPut = marker.op === "put";
    const row = store.rows().get(marker.key);
    const body = isPut && row ? JSON.stringify(outgoing(row, marker)) : "";
    const answer = await (!isPut ? api.remove(marker.key)
      : row ? api.put(marker.key, body, !marker.manual)
      : { status: 400, error: "this device has lost it" });
    const { status } = answer;
    hear(status);
    const stored = rowOf(answer.body);
    const sent = status >= 200 && status < 300 && (!isPut || stored?.key === marker.key);
    await update((rows, queue) => {
      const waits = queue.get(marker.key)?.marker;
      if (waits?.op !== marker.op) return; // overtaken by its opposite
      const current = rows.get(marker.key);
      const asSent = waits.sendStatus === marker.sendStatus && waits.manual === marker.manual &&
        (!isPut || !current || JSON.stringify(outgoing(current, marker)) === body);
      if (sent && asSent) {
        queue.delete(marker.key);
        if (isPut) rows.set(stored.key, stored);
      } else if (sent) {
        for (const press of ["sendStatus", "manual"]) if (waits[press] === marker[press]) waits[press] = 0;
      } else if (status === 400 || status === 413) {
        if (asSent) queue.delete(marker.key);
        notice = `“${row?.title || marker.key}” could not be saved: ${answer.error || "the server refused it"}`;
      } else if (status !== 401 && status !== 0) {
        waits.attempts += 1;
      }
    });
    return { sent, status };
  }

  /** 401 stays true until another answer than a failure. */
  function hear(status) {
    if (status === 401) signedOut = true;
    else if (status > 0 && status < 500) signedOut = false;
  }

  /** Send, fetch, and lay what still waits over what came. Whether the list came. */
  function refresh() {
    refreshing ??= sending(refreshOnce).finally(() => (refreshing = null));
    return refreshing;
  }

  async function refreshOnce() {
    await sendAll();
    const { status, body } = await api.list();
    hear(status);
    const came = status === 200 && Array.isArray(body);
    await update((rows, queue) => {
      if (!came) return;
      const theirs = rowsOf(body);
      for (const { marker } of queue.values()) {
        const ours = rows.get(marker.key);
        if (marker.op === "delete") theirs.delete(marker.key);
        else if (ours) theirs.set(marker.key, overlaid(theirs.get(marker.key), ours, marker));
      }
      rows.clear();
      theirs.forEach((row, key) => rows.set(key, row));
    });
    return came;
  }

  /** A chapter behind what this device knows: the server decides, and nothing is lost where it does not hear of it. */
  async function offer(row, page) {
    const body = outgoing(atChapter(row, page, 0), {});
    const answer = await api.put(row.key, JSON.stringify(body), true);
    hear(answer.status);
    const stored = rowOf(answer.body);
    await update((rows, queue) => {
      if (stored?.key === row.key && !queue.has(row.key)) rows.set(row.key, stored);
    });
  }

  /** A person asks: what was given up is tried anew, and what storage did not take is offered to it again. */
  async function retry() {
    notice = "";
    await update((rows, queue) => queue.forEach((waiting) => (waiting.marker.attempts = 0)));
    return refresh();
  }

  function state() {
    const waiting = pending();
    const givenUp = waiting.some(({ marker }) => marker.attempts >= MAX_ATTEMPTS);
    return {
      state: signedOut ? "signed-out" : waiting.length ? "waiting" : "saved",
      waiting: waiting.length,
      oldestAt: waiting.length ? Math.min(...waiting.map(({ at }) => at)) : 0,
      unstored: busy === 0 && store.unstored(),
      givenUp,
      notice: notice || (givenUp ? "The server did not take a change. It is kept: try again." : ""),
    };
  }

  return { save, remove, offer, refresh, retry, state };
}

function markerOf(key, op, sendStatus = 0, manual = 0, attempts = 0) {
  return { key, op, sendStatus, manual, attempts };
}

/** `alone(name, patience, work)`: the work of one tab at a time. After `patience` ms it is done all the same: the page can
 *  hold a lock of this name for ever, and what is done twice here is only slower. */
function createAlone(locks) {
  const tails = new Map();
  return async (name, patience, work) => {
    if (locks) {
      let started = false;
      try {
        return await locks.request(PREFIX + name, { signal: AbortSignal.timeout(patience) }, () => {
          started = true;
          return work();
        });
      } catch (error) {
        if (started) throw error;
        return work();
      }
    }
    const mine = (tails.get(name) ?? Promise.resolve()).then(work);
    tails.set(name, mine.catch(() => {}));
    return mine;
  };
}
