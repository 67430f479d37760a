// SPDX-License-Identifier: Apache-2.0
//
// The page of dlockctl serve. What it shows comes from others, who choose names and commands: texts go into text nodes, and nothing is
// ever made of markup.
"use strict";

const MORE = 200; // rows that are shown at first, and with each press of the button
const NODES_MAX = 150; // of the drawing

// A row of the event "locks", by document.c.
const FIELDS = ["key", "name", "state", "mode", "holders", "waiters", "host", "pid", "user", "command", "since", "waitsSince"];

const byId = id => document.getElementById(id);
const rowElements = new Map(); // by key: {row, details}
let locks = [];
let redSeconds = 3600;
let ahead = 0; // of this clock: that of the host, in seconds
let limit = MORE;
let order = {by: "", down: false};

function element(name, className, text) {
    const result = document.createElement(name);
    if (className) result.className = className;
    if (text !== undefined) result.textContent = text;
    return result;
}

function setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
}

function setClass(node, name) {
    if (node.className !== name) node.className = name;
}

// "45s", "3m12s", "2h05m", "3d04h", as in the tables of dlockctl.
function ageWords(seconds) {
    const two = number => String(number).padStart(2, "0");
    if (seconds < 60) return `${seconds}s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)}h${two(Math.floor(seconds / 60) % 60)}m`;
    return `${Math.floor(seconds / 86400)}d${two(Math.floor(seconds / 3600) % 24)}h`;
}

function age(since) {
    return since === null ? -1 : Math.max(0, Math.floor(Date.now() / 1000 + ahead) - since);
}

function isOld(since) {
    return age(since) >= redSeconds;
}

function isRed(lock) {
    return isOld(lock.since) || isOld(lock.waitsSince) || lock.state === "lost";
}

function plural(count, word) {
    return `${count} ${word}${count === 1 ? "" : "s"}`;
}

//
// The table of locks
//

const sortKeys = {
    name: lock => lock.name,
    state: lock => lock.state,
    host: lock => lock.host,
    user: lock => lock.user,
    age: lock => age(lock.since),
    waiters: lock => lock.waiters,
};

function compare(a, b) {
    return a < b ? -1 : a > b ? 1 : 0;
}

// Without a choice: what is red, then the longest queues.
function compareLocks(a, b) {
    if (order.by) {
        const key = sortKeys[order.by];
        return compare(key(a), key(b)) * (order.down ? -1 : 1) || compare(a.name, b.name);
    }
    return isRed(b) - isRed(a) || b.waiters - a.waiters || compare(a.name, b.name);
}

function wantedLocks() {
    const words = byId("filter").value.toLowerCase().split(/\s+/).filter(word => word);
    const onlyRed = byId("only-red").checked;
    return locks.filter(lock => (!onlyRed || isRed(lock)) && words.every(word => lock.text.includes(word)));
}

function holderWords(lock) {
    const pid = lock.pid ? `:${lock.pid}` : "";
    return lock.host + pid + (lock.holders > 1 ? ` +${lock.holders - 1}` : "");
}

// The roles are for a narrow screen, where the rows are blocks.
function cell(name, role, className) {
    const result = element(name, className);
    result.setAttribute("role", role);
    return result;
}

function addRow(key) {
    const row = cell("tr", "row");
    const name = cell("th", "rowheader");
    const button = element("button");
    name.scope = "row";
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => toggle(key));
    name.append(button);
    row.append(name);
    for (const className of ["", "wide", "", "", "wide", "number", "queue"]) row.append(cell("td", "cell", className));
    const bar = element("span", "bar");
    bar.append(element("span"));
    row.lastChild.append(element("b"), bar);
    const entry = {row, button, details: null};
    rowElements.set(key, entry);
    return entry;
}

function fillRow(entry, lock, longest) {
    const [, state, mode, host, command, user, since, queue] = entry.row.children;
    setText(entry.button, lock.name);
    setText(state, lock.state);
    setClass(state, lock.state.replace("?", ""));
    setText(mode, lock.mode);
    setText(host, holderWords(lock));
    setText(command, lock.command);
    setText(user, lock.user);
    setText(since, lock.since === null ? "" : ageWords(age(lock.since)));
    setClass(since, isOld(lock.since) ? "number red" : "number");
    setText(queue.firstChild, String(lock.waiters));
    setClass(queue, isOld(lock.waitsSince) ? "queue red" : "queue");
    queue.title = lock.waitsSince === null ? "" : `for ${ageWords(age(lock.waitsSince))}`;
    const width = `${lock.waiters ? Math.max(2, Math.round(100 * lock.waiters / longest)) : 0}%`;
    const bar = queue.lastChild.firstChild;
    if (bar.style.width !== width) bar.style.width = width;
}

// Moves only what is at the wrong place: an element that is moved loses the focus.
function place(body, elements) {
    let next = body.firstChild;
    for (const wanted of elements) {
        if (wanted === next) next = next.nextSibling;
        else body.insertBefore(wanted, next);
    }
    while (next) {
        const gone = next;
        next = next.nextSibling;
        gone.remove();
    }
}

function render() {
    const wanted = wantedLocks().sort(compareLocks);
    const shown = wanted.slice(0, limit);
    const longest = Math.max(1, ...shown.map(lock => lock.waiters));
    const elements = [];
    const keys = new Set();
    for (const lock of shown) {
        const entry = rowElements.get(lock.key) || addRow(lock.key);
        keys.add(lock.key);
        fillRow(entry, lock, longest);
        elements.push(entry.row);
        if (entry.details) elements.push(entry.details);
    }
    for (const key of rowElements.keys()) if (!keys.has(key)) rowElements.delete(key);
    place(byId("locks").tBodies[0], elements);
    setText(byId("shown"), wanted.length > shown.length ? `The first ${shown.length} of ${wanted.length}.`
        : wanted.length < locks.length ? `${wanted.length} of ${locks.length}.` : "");
    byId("more").hidden = wanted.length <= shown.length;
}

function summarize() {
    const held = locks.filter(lock => lock.state.startsWith("held") || lock.state === "kept?").length;
    const waiters = locks.reduce((sum, lock) => sum + lock.waiters, 0);
    const red = locks.filter(isRed).length;
    say(`${plural(locks.length, "lock")}, ${held} held, ${plural(waiters, "waiter")}` +
        (red ? `, ${red} red: for ${ageWords(redSeconds)} or more` : ""), "");
}

function say(text, className) {
    setText(byId("summary"), text);
    setClass(byId("summary"), className);
}

//
// The queue of one lock, below its row
//

// In a URL these have another meaning. All else that has is encoded in the key.
function lockUrl(key) {
    return "api/lock/" + key.replace(/[?#\\]/g, found => "%" + found.charCodeAt(0).toString(16).padStart(2, "0"));
}

function visible(text) {
    return (text || "").replace(/[\p{C}\p{Zl}\p{Zp}]/gu, found => "\\u{" + found.codePointAt(0).toString(16) + "}");
}

function claimWords(claim) {
    const who = `${visible(claim.host) || "another client"}${claim.pid ? ":" + claim.pid : ""} ${visible(claim.command)}`.trim();
    const details = [claim.mode, claim.kind && visible(claim.kind), claim.ranges && visible(claim.ranges), claim.user && visible(claim.user),
        claim.since !== null && `for ${ageWords(age(claim.since))}`];
    return `${claim.position}${claim.follower ? "." + claim.follower : ""}  ${claim.state}  ${who}  [${details.filter(word => word).join(", ")}]`;
}

async function fillDetails(key, entry) {
    const queue = entry.details.firstChild;
    try {
        const response = await fetch(lockUrl(key));
        if (!response.ok) throw new Error(await response.text());
        const claims = (await response.json()).locks[0].claims;
        const list = element("ol");
        for (const claim of claims.slice(0, MORE)) list.append(element("li", "", claimWords(claim)));
        if (claims.length > MORE) list.append(element("li", "", `and ${claims.length - MORE} more`));
        queue.replaceChildren(list);
    } catch (error) {
        queue.replaceChildren(element("p", "", visible(error.message.trim())));
    }
}

function toggle(key) {
    const entry = rowElements.get(key);
    if (entry.details) {
        entry.details = null;
    } else {
        const queue = cell("td", "cell");
        queue.textContent = "…";
        queue.colSpan = 8;
        entry.details = cell("tr", "row", "details");
        entry.details.append(queue);
        fillDetails(key, entry);
    }
    entry.button.setAttribute("aria-expanded", String(entry.details !== null));
    render();
}

//
// Who waits for whom: who waits for nobody is at the left, those who wait for somebody to the right of them
//

const BOX = {width: 230, height: 26, across: 170, down: 12, letters: 27};

function svg(name, attributes, text) {
    const result = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) result.setAttribute(key, value);
    if (text !== undefined) result.textContent = text;
    return result;
}

function cut(text, letters) {
    const all = Array.from(text);
    return all.length > letters ? all.slice(0, letters - 1).join("") + "~" : text;
}

// Column and line of each node, by its number. From each root, a waiter stands one column further than whom it waits for.
function layOut(graph) {
    const waiters = graph.nodes.map(() => []);
    const waits = new Set();
    const places = new Map();
    let line = 0;
    for (const edge of graph.edges) {
        waiters[edge.to].push(edge.from);
        waits.add(edge.from);
    }
    const visit = root => {
        const stack = [[root, 0]];
        let column = -1;
        while (stack.length > 0 && places.size < NODES_MAX) {
            const [node, depth] = stack.pop();
            if (places.has(node)) continue;
            if (depth <= column) line++;
            column = depth;
            places.set(node, {column: depth, line});
            for (const waiter of [...waiters[node]].reverse()) stack.push([waiter, depth + 1]);
        }
        line++;
    };
    const numbers = graph.nodes.map((_, number) => number);
    for (const node of numbers.filter(number => !waits.has(number))) visit(node);
    for (const node of numbers) if (places.size < NODES_MAX && !places.has(node)) visit(node); // those in circles
    return places;
}

function position(place) {
    return {x: 10 + place.column * (BOX.width + BOX.across), y: 10 + place.line * (BOX.height + BOX.down)};
}

function drawEdge(edge, from, to) {
    const group = svg("g", {});
    const start = position(from);
    const end = position(to);
    const y1 = start.y + BOX.height / 2;
    const y2 = end.y + BOX.height / 2;
    const forward = from.column > to.column; // else it is part of a circle
    const x1 = start.x + (forward ? 0 : BOX.width);
    const x2 = end.x + BOX.width + 2;
    const bend = forward ? x1 - 30 : x1 + 40;
    const dashed = edge.blocker === "waiting" ? "dashed" : "";
    group.append(svg("path", {d: `M${x1} ${y1} C${bend} ${y1} ${x2 + 40} ${y2} ${x2 + 8} ${y2}`, class: dashed}),
        svg("path", {d: `M${x2} ${y2} l9 -4 v8 z`, class: "arrow"}));
    if (forward)
        group.append(svg("text", {x: x1 - 8, y: y1 - 5, "text-anchor": "end", class: "edge-label"}, cut(visible(edge.lock), 18)));
    group.append(svg("title", {}, `waits for ${visible(edge.lock)} (${edge.mode})`));
    return group;
}

function drawNode(label, place) {
    const group = svg("g", {});
    const {x, y} = position(place);
    group.append(svg("title", {}, label), svg("rect", {x, y, width: BOX.width, height: BOX.height, rx: 4}),
        svg("text", {x: x + 8, y: y + 17}, cut(label, BOX.letters)));
    return group;
}

function draw(graph) {
    const places = layOut(graph);
    const all = [...places.values()].map(position);
    const width = Math.max(0, ...all.map(({x}) => x)) + BOX.width + 60;
    const height = Math.max(0, ...all.map(({y}) => y)) + BOX.height + 10;
    const picture = svg("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-labelledby": "graph-words"});
    for (const [number, spot] of places) picture.append(drawNode(visible(graph.nodes[number]), spot));
    for (const edge of graph.edges)
        if (places.has(edge.from) && places.has(edge.to)) picture.append(drawEdge(edge, places.get(edge.from), places.get(edge.to)));
    byId("graph").replaceChildren(...graph.nodes.length > 0 ? [picture] : []);
    const left = graph.nodes.length - places.size;
    const waiters = new Set(graph.edges.map(edge => edge.from)).size;
    setText(byId("graph-words"), graph.nodes.length === 0 ? "Nobody waits."
        : `${waiters} of ${plural(graph.nodes.length, "process").replace("processs", "processes")} wait. An arrow leads to whom one waits ` +
        `for; a dashed one to who is in front in the queue.${left > 0 ? ` ${left} are not drawn: see dlockctl graph.` : ""}`);
}

//
// Hosts
//

function differenceWords(host) {
    const words = host.differences.map(({setting, there, here}) =>
        `${visible(setting)} is ${visible(there) || "not set"}, here ${visible(here) || "not set"}`);
    return host.differs ? ["differ", ...words].join("; ") : "same";
}

function hostRow(store, host) {
    const row = element("tr");
    const name = element("th", "", visible(host.host));
    name.scope = "row";
    row.append(name,
        element("td", "wide", `${store.store} ${visible(store.root)}`), element("td", "wide", visible(host.version)),
        element("td", "number", host.since === null ? "" : ageWords(age(host.since))), element("td", "number", String(host.locks)),
        element("td", "number", String(host.waiters)), element("td", host.differs ? "differ" : "same", differenceWords(host)));
    return row;
}

function showHosts({mount, stores}) {
    const rows = stores.flatMap(store => store.hosts.map(host => hostRow(store, host)));
    const silent = stores.filter(store => store.hosts.length === 0).map(store => store.store === "local" && !store.told
        ? "local: its locks are of this host only, so it has no other hosts."
        : `${store.store} ${visible(store.root)}: its hosts are not known${store.error ? ` (${visible(store.error)})` : ""}.`);
    setText(byId("mount"), visible(mount));
    setText(byId("hosts-words"), silent.join(" "));
    byId("hosts").tBodies[0].replaceChildren(...rows);
    byId("hosts").hidden = rows.length === 0;
}

//
// Live
//

let isLooking = false;

// One look at a time, and none while nobody sees the page.
async function look() {
    if (isLooking || document.hidden) return;
    isLooking = true;
    for (const [path, show] of [["api/graph", draw], ["api/hosts", showHosts]]) {
        try {
            const response = await fetch(path);
            if (response.ok) show(await response.json());
        } catch {
            break; // the stream of events tells of it
        }
    }
    isLooking = false;
}

let events = null;

function listen() {
    events = new EventSource("events");
    events.addEventListener("clock", event => {
        ahead = Number(event.data) - Date.now() / 1000;
    });
    events.addEventListener("locks", event => {
        const {red, rows} = JSON.parse(event.data);
        redSeconds = red;
        locks = rows.map(row => {
            const lock = Object.fromEntries(row.map((value, index) => [FIELDS[index], value]));
            lock.text = `${lock.name} ${lock.host} ${lock.user} ${lock.command} ${lock.state}`.toLowerCase();
            return lock;
        });
        summarize();
        render();
        for (const [key, entry] of rowElements) if (entry.details) fillDetails(key, entry);
        look();
    });
    events.addEventListener("trouble", event => say(`The mount cannot be read: ${visible(JSON.parse(event.data).trim())}`, "trouble"));
    events.addEventListener("error", () => {
        say("The connection to dlockctl serve is lost.", "trouble");
        if (events && events.readyState === EventSource.CLOSED) { // the browser does not try again
            events = null;
            setTimeout(follow, 3000);
        }
    });
}

// Nobody looks at a page that is hidden: then the mount is not read for it.
function follow() {
    if (document.hidden && events) {
        events.close();
        events = null;
    } else if (!document.hidden && !events) {
        listen();
    }
}

function sortBy(header) {
    const by = header.dataset.sort;
    order = order.by === by ? {by, down: !order.down} : {by, down: by === "age" || by === "waiters"};
    for (const other of header.parentNode.children) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    render();
}

for (const header of document.querySelectorAll("th[data-sort]")) header.firstChild.addEventListener("click", () => sortBy(header));
for (const id of ["filter", "only-red"]) byId(id).addEventListener("input", () => {
    limit = MORE;
    render();
});
byId("more").addEventListener("click", () => {
    limit += MORE;
    render();
});
document.addEventListener("visibilitychange", follow);
setInterval(() => {
    if (!document.hidden && byId("summary").className === "") {
        summarize();
        render();
    }
}, 1000);
follow();
