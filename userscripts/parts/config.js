// config: the figures.

const PREFIX = `bmgr:${LIBRARY}:`;

const HIGHEST_CHAPTER = 100000; // above it a number is none: dates get into slugs

const REQUEST_MS = 20000;

const MAX_ATTEMPTS = 10; // answers that were no success, until a person asks for more

const READ_MS = 5000; // visible for so long, or scrolled: else it was a mis-tap

const LIST_MS = 2000; // that a chapter waits, once read, for the list to say that its Series is still held

const CHECK_REST_MS = 4 * 3600 * 1000; // between two checks of one Series on one device

const CHECKS_AT_A_TIME = 1; // Series on one navigation

const MAX_PAGE_CHARACTERS = 4 << 20;

const ADAPTERS = [];

function addAdapter(adapter) {
  ADAPTERS.push(adapter);
}
