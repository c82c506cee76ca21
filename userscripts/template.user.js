// ==UserScript==
// @name         __NAME__
// @namespace    bookmark-appliance
// @version      0
// @description  Keeps your place in the Series you read.
// @match        __MATCH__
// @run-at       document-idle
// @noframes
// @inject-into  content
// @sandbox      DOM
// @downloadURL  __API_BASE__/u/__API_TOKEN__/__FILE__
// @updateURL    __API_BASE__/u/__API_TOKEN__/__FILE__
// ==/UserScript==

(() => {
"use strict";

// CONFIG: filled in for each Reader when the script is served.
const API_BASE = "__API_BASE__";
const WEB_BASE = "__WEB_BASE__";
const API_TOKEN = "__API_TOKEN__";

const LIBRARY = "__LIBRARY__";

__PARTS__
boot();
})();
