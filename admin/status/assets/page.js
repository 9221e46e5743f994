// While the page is visible, it requests /status/v1 each second, and the locks every few seconds.
// It sets everything as text, never as markup, because clients choose keys and names.
import { Plot, brief, duration, recent } from "./plot.js";

const statusInterval = 1000, locksInterval = 3500, requestTimeout = 8000; // ms
const byID = (id) => document.getElementById(id);

// element returns a new element with a text.
function element(name, className, text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

// ---- data ----

const columns = ["granted", "refused", "no_quorum", "relayed", "lock_p50_ms", "lock_p99_ms"];
let started = 0, samplesSeen = 0, eventsSeen = 0, samples = {}, events = [], state = null, offset = 0, lastAnswer = 0;

// reset discards the samples and events of an earlier process.
function reset() {
  samplesSeen = eventsSeen = 0;
  samples = Object.fromEntries(columns.map((name) => [name, []]));
  samples.master_ms = [];
  events = [];
}
reset();

// update adds the answer to a request.
function update(view) {
  state = view;
  offset = view.now - Date.now();
  lastAnswer = Date.now();
  const add = (column, more) => column.concat(more).slice(-view.samples.keep);
  for (const name of columns) samples[name] = add(samples[name], view.samples[name]);
  samples.master_ms = view.samples.master_ms.map((more, i) => add(samples.master_ms[i] || [], more));
  samplesSeen = view.samples.count;
  events = events.concat(view.events.list).filter((event) => view.now - event.at < 3600e3).slice(-500);
  eventsSeen = view.events.count;
}

// ---- formats ----

function span(ms) {
  if (ms === null || ms === undefined) return "";
  const s = ms / 1000;
  if (s < 0.0995) return `${Math.max(0, Math.round(ms))} ms`;
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

const ago = (at) => `${span(Math.max(1, Math.round((state.now - at) / 1000)) * 1000).replace(".0", "")} ago`;
const clock = (at) => new Date(at).toLocaleTimeString([], { hour12: false });

function latency(us) {
  return us === null ? "" : us < 10000 ? `${(us / 1000).toFixed(2)} ms` : `${Math.round(us / 1000)} ms`;
}

// ---- tiles and plots ----

const tiles = new Map();

function tile(label, text, bad) {
  let node = tiles.get(label);
  if (!node) {
    node = element("div", "tile");
    node.append(element("b"), element("span", "", label));
    tiles.set(label, node);
    byID("tiles").append(node);
  }
  node.firstChild.textContent = text;
  node.classList.toggle("bad", Boolean(bad));
}

function drawTiles() {
  const rate = (name) => brief(recent(samples[name]) ?? 0);
  const took = (name) => duration(recent(samples[name]));
  tile("grants/s", rate("granted"));
  tile("refusals/s", rate("refused"));
  tile("NOQUORUM/s", rate("no_quorum"), recent(samples.no_quorum) > 0);
  tile("relayed/s", state.upstream ? rate("relayed") : "–");
  tile("LOCK p50", took("lock_p50_ms"));
  tile("LOCK p99", took("lock_p99_ms"));
  tile("waiters", brief(state.proxy.waiters));
  tile("clients", brief(state.proxy.clients), state.proxy.clients >= state.proxy.clients_limit);
  if (state.proxy.uncovered_locks > 0) tile("uncovered locks", brief(state.proxy.uncovered_locks), true);
  if (state.proxy.stray_locks > 0) tile("locks set at the upstream", brief(state.proxy.stray_locks), true);
}

const plots = {
  locks: new Plot("Locks per second", brief, ["granted", "refused", "NOQUORUM"], true),
  took: new Plot("LOCK, ms", duration, ["p50", "p99"], false),
  relayed: new Plot("Commands relayed per second", brief, ["relayed"], true),
  trips: new Plot("Round trips to masters, ms", duration, null, false),
};
byID("plots").append(...Object.values(plots).map((plot) => plot.element));

function drawPlots() {
  const keep = state.samples.keep;
  plots.locks.draw([samples.granted, samples.refused, samples.no_quorum], keep);
  plots.took.draw([samples.lock_p50_ms, samples.lock_p99_ms], keep);
  plots.relayed.element.hidden = !state.upstream;
  if (state.upstream) plots.relayed.draw([samples.relayed], keep);
  plots.trips.draw(samples.master_ms, keep);
}

// ---- the banner ----

function setBanner(mood, text) {
  const node = byID("banner");
  node.className = `banner ${mood}`;
  if (node.textContent !== text) node.textContent = text;
}

// locations are the texts for locks_at, which is empty if the locks cannot be moved.
const locations = {
  upstream: " · locks at the upstream",
  masters: " · locks on the masters",
  "moving-to-masters": " · locks are moving to the masters",
  "moving-to-upstream": " · locks are moving to the upstream",
  unknown: " · the location of the locks is unknown",
};

function drawBanner() {
  const { quorum, proxy, upstream } = state;
  const votes = `${quorum.voting} of ${quorum.masters} masters vote, ${quorum.majority} needed`;
  document.title = `${quorum.ok ? "" : "⚠ "}redlock-proxy ${quorum.voting}/${quorum.masters}`;
  const upstreamDown = upstream && !upstream.up ? ` The upstream ${upstream.name} is down: ${upstream.cause}` : "";
  if (quorum.paused) setBanner("note", `◐ Commands on locks wait: ${quorum.cause}.${upstreamDown}`);
  else if (!quorum.ok) setBanner("bad", `✕ Locks are not available: ${quorum.cause}.${upstreamDown}`);
  else if (proxy.state !== "serving") setBanner("note", `◐ The proxy is ${proxy.state}. ${votes}.${upstreamDown}`);
  else if (upstreamDown) setBanner("note", `◐ Locks are available: ${votes}.${upstreamDown}`);
  else if (quorum.voting < quorum.masters) setBanner("note", `◐ Locks are available: ${votes}.`);
  else setBanner("good", `✓ Locks are available: ${votes}.`);
  const role = upstream ? ` · upstream ${upstream.name}` : " · lock server, without an upstream";
  byID("about").textContent = `${proxy.version} · ${proxy.listen}${role}${locations[proxy.locks_at] || ""} · up ${span(state.now - proxy.started)}`;
}

// ---- tables ----

// row returns a table row. A cell is a text or a node. A narrow page shows the label next to it.
function row(labels, cells, classes = {}) {
  const tr = element("tr");
  cells.forEach((cell, i) => {
    const td = element("td", classes[labels[i]] || "");
    td.dataset.label = labels[i];
    if (cell instanceof Node) td.append(cell);
    else if (cell) td.append(element("span", "", cell));
    tr.append(td);
  });
  return tr;
}

const masterLabels = ["Server", "Role", "State", "Vote", "Latency", "Clock", "Since", "Why"];
const masterClasses = { Server: "mono wrap", Role: "tight", State: "tight", Vote: "tight", Latency: "n", Clock: "n", Since: "tight", Why: "wrap" };
const moods = { voting: "good", quarantine: "note", unfit: "bad", down: "bad", held: "good", free: "", split: "note", unclear: "note" };

// serverName returns a master's name with the colour of its curve.
function serverName(master, i) {
  const node = element("span");
  node.append(element("span", `swatch s${i % 7}`), master.name);
  return node;
}

function masterRow(master, i) {
  const why = master.quarantine ? master.quarantine.text : master.cause;
  const vote = master.votes ? "✓ counts" : "✕ none";
  const clockText = master.clock_offset_ms === null ? "" : `${master.clock_offset_ms > 0 ? "+" : ""}${master.clock_offset_ms} ms`;
  const stateNode = element("span");
  stateNode.append(element("span", `badge ${moods[master.state] || ""}`, master.state));
  if (master.quarantine && master.quarantine.left_ms !== null) stateNode.append(element("span", "dim", ` ${span(master.quarantine.left_ms)}`));
  const more = [];
  if (why) more.push(why);
  if (master.removals_owed) more.push(`${master.removals_owed} ${master.removals_owed === 1 ? "removal" : "removals"} pending`);
  if (master.catch_ups) more.push(`caught up ${master.catch_ups}×`);
  const took = latency(master.latency_us);
  const node = row(masterLabels, [serverName(master, i), master.role, stateNode, vote, took, clockText, ago(master.since), more.join("; ")], masterClasses);
  if (master.latency_of_probe && took) node.children[4].title = "round trip of the probe that brought the master up: no lock operation used it in the last seconds";
  return node;
}

function drawMasters() {
  byID("masters").replaceChildren(...state.masters.map(masterRow));
  byID("masters-count").textContent = `${state.quorum.voting} of ${state.quorum.masters} vote`;
}

const nodeLabels = ["Port", "Node", "Role", "State", "Slots", "Clients", "Why"];
const nodeClasses = { Port: "n", Node: "mono wrap", Role: "tight", State: "tight", Slots: "n", Clients: "n", Why: "wrap" };

function nodeRow(node) {
  const stateNode = element("span", `badge ${node.up ? "good" : "bad"}`, node.up ? "up" : "down");
  return row(nodeLabels, [String(node.listen), node.name, node.role, stateNode, String(node.slots), String(node.clients), node.cause], nodeClasses);
}

// drawNodes shows the nodes of the cluster that is the upstream.
function drawNodes() {
  const nodes = state.upstream ? state.upstream.nodes : [];
  byID("nodes-section").hidden = nodes.length === 0;
  byID("nodes").replaceChildren(...nodes.map(nodeRow));
  byID("nodes-count").textContent = `${nodes.filter((node) => node.up).length} of ${nodes.length} nodes up`;
}

const lockLabels = ["Key", "State", "Left", "Votes", "Waiters", "Since", "Client"];
const lockClasses = { Key: "mono wrap", State: "tight", Left: "n", Waiters: "n", Since: "tight", Client: "wrap" };

function lockRow(lock, at) {
  const votes = element("span", "dots");
  for (const vote of lock.votes) {
    const dot = element("span", "", vote.says === "held" ? "●" : vote.says === "free" ? "○" : vote.says === "other" ? "◐" : "✕");
    dot.title = `${vote.server}: ${vote.says}`;
    votes.append(dot);
  }
  const left = lock.left_ms === null ? "" : lock.left_ms < 0 ? "no end" : span(lock.left_ms - (state.now - at));
  const client = [lock.name, lock.addr].filter(Boolean).join(" · ");
  const since = lock.since === null ? "" : ago(lock.since);
  return row(lockLabels, [lock.key, element("span", `badge ${moods[lock.state] || ""}`, [lock.state, lock.shared, lock.kept ? "kept" : ""].filter(Boolean).join(", ")), left, votes, lock.waiters ? String(lock.waiters) : "", since, client], lockClasses);
}

let locks = null;

function drawLocks() {
  const on = state.locks;
  byID("search").hidden = byID("locks-table").hidden = !on;
  if (!on) {
    byID("locks-count").textContent = "";
    byID("locks-note").textContent = "This page does not show locks, because keys may be secrets. Enable the setting admin-locks to show them, or use LOCKLIST as a client with the permission.";
    return;
  }
  if (!locks) return;
  const current = locks.locks.filter((lock) => lock.left_ms === null || lock.left_ms < 0 || lock.left_ms > state.now - locks.at);
  const held = current.length;
  const waiting = current.reduce((sum, lock) => sum + lock.waiters, 0);
  byID("locks-count").textContent = `${held}${locks.more ? " or more" : ""} held${waiting ? `, ${waiting} ${waiting === 1 ? "waiter" : "waiters"}` : ""}`;
  const notes = [];
  if (locks.error) notes.push(locks.error);
  if (locks.more) notes.push(`The list has the first ${held} locks. To see others, filter by a glob such as order:*.`);
  if (!held && !locks.error) notes.push("No locks are held.");
  byID("locks-note").textContent = notes.join(" ");
  byID("locks-table").hidden = held === 0;
  byID("locks").replaceChildren(...current.map((lock) => lockRow(lock, locks.at)));
}

function drawEvents() {
  byID("events-count").textContent = events.length ? "" : "none";
  byID("events").replaceChildren(...events.toReversed().map((event) => {
    const li = element("li");
    const what = element("span");
    what.append(element("span", `badge ${event.mood}`, event.what));
    li.append(element("time", "", clock(event.at)), what, element("span", "text", [event.about, event.detail].filter(Boolean).join(": ")));
    return li;
  }));
}

function draw() {
  drawBanner();
  drawTiles();
  drawPlots();
  drawMasters();
  drawNodes();
  drawLocks();
  drawEvents();
}

// ---- requests ----

async function get(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(requestTimeout), cache: "no-store" });
  if (!answer.ok) throw new Error(await answer.text());
  const view = await answer.json();
  if (view.version !== 1) throw new Error("the proxy has a different version: reload this page");
  return view;
}

async function refresh() {
  try {
    const seen = samplesSeen;
    let view = await get(`/status/v1?samples=${seen}&events=${eventsSeen}`);
    if (view.proxy.started !== started) { // the proxy restarted
      reset();
      if (started || seen) view = await get("/status/v1");
      started = view.proxy.started;
    }
    update(view);
    draw();
    if (!locks) refreshLocksNow();
  } catch (error) {
    const since = lastAnswer ? ` This page shows its state of ${clock(lastAnswer + offset)}.` : "";
    setBanner("bad", `✕ The proxy does not answer: ${error.message}.${since}`);
  }
}

async function refreshLocks() {
  if (!state || !state.locks) return;
  const query = new URLSearchParams({ match: byID("match").value.trim() || "*", db: byID("db").value || "0" });
  try {
    const view = await get(`/status/v1/locks?${query}`);
    if (view.at || !locks || locks.match !== view.match || locks.db !== view.db) locks = view;
  } catch (error) {
    locks = { error: error.message, locks: [], more: false, at: 0 };
  }
  drawLocks();
}

// repeat calls a function at an interval in ms while the page is visible, one call at a time. It
// returns a function that calls it at once.
function repeat(task, interval) {
  let timer = 0, running = false;
  const go = async () => {
    clearTimeout(timer);
    if (running || document.hidden) return;
    running = true;
    await task();
    running = false;
    timer = setTimeout(go, interval);
  };
  document.addEventListener("visibilitychange", go);
  go();
  return go;
}

repeat(refresh, statusInterval);
const refreshLocksNow = repeat(refreshLocks, locksInterval);
let typing = 0;
byID("search").addEventListener("submit", (event) => { event.preventDefault(); refreshLocksNow(); });
byID("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(refreshLocksNow, 600); });
