// USR-015, USR-018: three devices that come and go, in every order that a seed makes of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { isMainThread, Worker, workerData } from "node:worker_threads";
import { archive, chapter, device, parts, randomFrom, readChapter, Server, star, Storage } from "./devices.mjs";

const RUNS = 10000;
const SERIES = ["one", "two"];
const turn = () => new Promise(setImmediate);

/** A network whose requests arrive, and whose answers come back or are lost, when the seed says so. */
class Network {
  waiting = [];

  constructor(server, { below }) {
    Object.assign(this, { server, below });
  }

  api(holder) {
    const call = (name, ...values) => new Promise((resolve) => {
      holder.sends?.(name, ...values);
      const failed = () => resolve({ status: 0, body: null, error: "" });
      if (!holder.online) return failed();
      const arrive = () => {
        if (!holder.online) return failed();
        const answer = this.below(12) === 0 ? { status: 503, body: null, error: "" } : this.server[name](...values);
        this.waiting.push(() => (holder.online && this.below(10) > 0 ? (holder.hears?.(name, answer, values), resolve(answer)) : failed()));
      };
      this.waiting.push(arrive);
    });
    return { list: () => call("list"), put: (...values) => call("put", ...values), remove: (...values) => call("remove", ...values) };
  }

  step() {
    if (!this.waiting.length) return false;
    this.waiting.splice(this.below(this.waiting.length), 1)[0]();
    return true;
  }
}

/** A device with one or two tabs; it knows, apart from the scripts, which of its person's edits the server has confirmed. */
function makeDevice(network, tabs) {
  const holder = { online: true, tabs: [], edits: new Map(), confirmed: new Map() };
  const storage = new Storage();
  const alone = parts.createAlone(); // shared, as a browser's own locks are
  let time = 1000;
  for (let tab = 0; tab < tabs; tab++) {
    const link = { get online() { return holder.online; } };
    const under = new Map();
    link.sends = (name, key, text, advance) => {
      if (name !== "put") return;
      const edit = holder.edits.get(key) ?? 0;
      if (!advance && edit <= (holder.confirmed.get(key) ?? 0)) holder.wrong = "a PUT without ?advance=1 that no unconfirmed edit asked for";
      under.set(key, edit);
    };
    link.hears = (name, { status }, [key, , advance]) => {
      if (name === "put" && status === 200 && !advance) holder.confirmed.set(key, Math.max(holder.confirmed.get(key) ?? 0, under.get(key)));
    };
    holder.tabs.push(device({ api: network.api(link), storage, alone, now: () => ++time }));
  }
  return holder;
}

/** The moment at which an edit is on record, and not the one at which it was asked for. */
function edited(holder, key, row) {
  holder.edits.set(key, (holder.edits.get(key) ?? 0) + 1);
  return row;
}

/** What the rows of a device come to, as each of its changes is on record: what the server must have in the end, where no
 *  other device has changed anything. */
function watch(tab, lastWord) {
  const { save, remove } = tab.queue;
  tab.queue.save = (key, change, how) => save(key, (row) => {
    const made = change(row);
    if (made) lastWord.set(key, made);
    return made;
  }, how);
  tab.queue.remove = (key) => {
    save(key, () => (lastWord.delete(key), null)); // in its turn
    return remove(key);
  };
}

async function run(seed) {
  const chance = randomFrom(seed);
  const { below, one } = chance;
  const server = new Server();
  const network = new Network(server, chance);
  const devices = [1, 1, 2].map((tabs) => makeDevice(network, tabs));
  const peaceful = seed % 3 === 0; // nobody lowers or removes anything
  const solo = seed % 3 === 1; // all is done on the device with two tabs
  const lastWord = new Map();
  const reads = new Map();
  const said = new Map();
  for (const id of SERIES) server.put(`asura:${id}`, JSON.stringify({ title: id, last_chapter_num: 1 }), false);
  const working = devices.flatMap(({ tabs }) => tabs.map((tab) => tab.queue.refresh()));
  do await turn(); while (network.step());
  for (const row of server.rows.values()) lastWord.set(row.key, row);
  for (const tab of devices[2].tabs) watch(tab, lastWord);

  for (let step = 0; step < 14; step++) {
    const holder = solo ? devices[2] : one(devices);
    const tab = one(holder.tabs);
    const id = one(SERIES);
    const key = `asura:${id}`;
    const act = below(peaceful ? 8 : 10);
    if (act <= 2) {
      const page = chapter(id, 1 + below(30) / 2);
      if (tab.row(key)) {
        reads.set(key, Math.max(reads.get(key) ?? 1, page.chapterNum));
        working.push(readChapter(tab, page));
      }
    } else if (act === 3) holder.online = !holder.online;
    else if (act === 4) working.push(tab.queue.refresh());
    else if (act === 5 && tab.row(key) && !said.has(`${key} status`)) {
      said.set(`${key} status`, "archived");
      working.push(archive(tab, key));
    } else if (act === 6 && tab.row(key) && !said.has(`${key} favorite`)) {
      said.set(`${key} favorite`, true);
      working.push(star(tab, key, true));
    } else if (act === 8) {
      if (tab.row(key)) {
        const number = below(10);
        working.push(tab.queue.save(key, (row) => row && edited(holder, key, parts.overridden(row, number, null, 1000)), { manual: true }));
      }
    } else if (act === 9) {
      if (tab.row(key)) working.push(tab.queue.remove(key));
      else {
        // Where the removal is still to be sent, this makes it an edit.
        working.push(tab.queue.save(key, (row) => edited(holder, key, parts.bookmarked(row, chapter(id, 1), 1000))));
      }
    }
    for (let times = below(4); times > 0; times--) {
      network.step();
      await turn();
    }
    for (const each of holder.tabs) {
      for (const [name, { marker }] of each.store.queue()) {
        assert.equal(name, marker.key);
        assert.deepEqual(Object.keys(marker), ["key", "op", "sendStatus", "manual", "attempts"]);
      }
    }
  }

  for (const holder of devices) holder.online = true;
  for (let round = 0; round < 30; round++) {
    working.push(...devices.flatMap(({ tabs }) => tabs.map((tab) => tab.queue.retry())));
    do await turn(); while (network.step());
    if (devices.every(({ tabs }) => tabs.every((tab) => tab.store.queue().size === 0 && same(tab, server)))) break;
  }
  await Promise.all(working);
  assert.deepEqual(devices.map(({ wrong }) => wrong).filter(Boolean), []);
  for (const { tabs } of devices) {
    for (const tab of tabs) {
      assert.equal(tab.store.queue().size, 0, "something waits for ever");
      assert.ok(same(tab, server), "a device shows another list than the server's");
    }
  }
  if (solo) {
    const words = (rows) => rows.map((row) => [row.key, row.last_chapter_num, row.status, row.favorite]).sort();
    assert.deepEqual(words([...server.rows.values()]), words([...lastWord.values()]), "the server has the device's last word");
  }
  if (!peaceful) return;
  for (const id of SERIES) {
    const row = server.rows.get(`asura:${id}`);
    assert.equal(row.last_chapter_num, reads.get(row.key) ?? 1, "Progress is the furthest chapter that was read");
    assert.equal(row.status, said.get(`${row.key} status`) ?? "reading", "an archived Series stays so");
    assert.equal(row.favorite, said.get(`${row.key} favorite`) ?? false, "a star stays");
  }
}

function same(tab, server) {
  const ours = JSON.stringify([...tab.store.rows().values()]);
  return ours === JSON.stringify(parts.inListOrder([...server.rows.values()].map(parts.rowOf)));
}

async function runs(first, last) {
  for (let seed = first; seed <= last; seed++) {
    await run(seed).catch((error) => {
      throw new Error(`seed ${seed}: ${error.message}`);
    });
  }
}

// In threads of their own: the test runner follows every promise of its thread, at four times the price.
if (isMainThread) {
  test(`${RUNS} runs: no automatic save lowers Progress, nothing is lost, all devices agree in the end`, async () => {
    await Promise.all([0, 1].map((half) => new Promise((resolve, reject) => {
      const range = [1 + (half * RUNS) / 2, ((half + 1) * RUNS) / 2];
      new Worker(fileURLToPath(import.meta.url), { workerData: range }).on("error", reject).on("exit", resolve);
    })));
  });
} else {
  await runs(...workerData);
}
