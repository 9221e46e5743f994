// The page asks for /status/v1 each second while somebody looks, and for the locks every few seconds. All that it shows is
// set as text: keys, names and causes are what others chose.
import { Plot, brief, duration, recent } from "./plot.js";

const pause = 1000, locksPause = 3500, patience = 8000;
const byID = (id) => document.getElementById(id);

// element makes one with text.
function element(name, className, text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

// ---- what is known ----

const columns = ["granted", "refused", "no_quorum", "relayed", "lock_p50_ms", "lock_p99_ms"];
let started = 0, samplesSeen = 0, eventsSeen = 0, samples = {}, events = [], state = null, offset = 0, lastAnswer = 0;

function forget() {
  samplesSeen = eventsSeen = 0;
  samples = Object.fromEntries(columns.map((name) => [name, []]));
  samples.master_ms = [];
  events = [];
}
forget();

// learn adds what came since the last time.
function learn(view) {
  state = view;
  offset = view.now - Date.now();
  lastAnswer = Date.now();
  const add = (have, more) => have.concat(more).slice(-view.samples.keep);
  for (const name of columns) samples[name] = add(samples[name], view.samples[name]);
  samples.master_ms = view.samples.master_ms.map((more, i) => add(samples.master_ms[i] || [], more));
  samplesSeen = view.samples.count;
  events = events.concat(view.events.list).filter((one) => view.now - one.at < 3600e3).slice(-500);
  eventsSeen = view.events.count;
}

// ---- words ----

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
  if (state.proxy.stray_locks > 0) tile("locks at the upstream directly", brief(state.proxy.stray_locks), true);
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

// places are where the locks are, where they can be moved.
const places = {
  upstream: " · locks at the upstream",
  masters: " · locks at the masters",
  "moving-to-masters": " · locks on their way to the masters",
  "moving-to-upstream": " · locks on their way to the upstream",
  unknown: " · the location of the locks is unknown",
};

function drawBanner() {
  const { quorum, proxy, upstream } = state;
  const votes = `${quorum.voting} of ${quorum.masters} masters vote, ${quorum.majority} are needed`;
  document.title = `${quorum.ok ? "" : "⚠ "}redlock-proxy ${quorum.voting}/${quorum.masters}`;
  const upstreamDown = upstream && !upstream.up ? ` The upstream ${upstream.name} is down: ${upstream.cause}` : "";
  if (quorum.paused) setBanner("note", `◐ Locks wait: ${quorum.cause}.${upstreamDown}`);
  else if (!quorum.ok) setBanner("bad", `✕ Locks are not available: ${quorum.cause}.${upstreamDown}`);
  else if (proxy.state !== "serving") setBanner("note", `◐ The proxy is ${proxy.state}. ${votes}.${upstreamDown}`);
  else if (upstreamDown) setBanner("note", `◐ Locks are available: ${votes}.${upstreamDown}`);
  else if (quorum.voting < quorum.masters) setBanner("note", `◐ Locks are available: ${votes}.`);
  else setBanner("good", `✓ Locks are available: ${votes}.`);
  const behind = upstream ? ` · upstream ${upstream.name}` : " · a lock server, without an upstream";
  byID("about").textContent = `${proxy.version} · ${proxy.listen}${behind}${places[proxy.locks_at] || ""} · up ${span(state.now - proxy.started)}`;
}

// ---- tables ----

// row makes one of cells; a cell is a text or a node, with the label that a narrow page shows.
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

// serverName has the colour of the master's curve before it.
function serverName(one, i) {
  const node = element("span");
  node.append(element("span", `swatch s${i % 7}`), one.name);
  return node;
}

function masterRow(one, i) {
  const why = one.quarantine ? one.quarantine.text : one.cause;
  const vote = one.votes ? "✓ counts" : "✕ none";
  const clockText = one.clock_offset_ms === null ? "" : `${one.clock_offset_ms > 0 ? "+" : ""}${one.clock_offset_ms} ms`;
  const stateNode = element("span");
  stateNode.append(element("span", `badge ${moods[one.state] || ""}`, one.state));
  if (one.quarantine && one.quarantine.left_ms !== null) stateNode.append(element("span", "dim", ` ${span(one.quarantine.left_ms)}`));
  const more = [];
  if (why) more.push(why);
  if (one.removals_owed) more.push(`${one.removals_owed} removals wait for it`);
  if (one.catch_ups) more.push(`caught up ${one.catch_ups}×`);
  const took = latency(one.latency_us);
  const node = row(masterLabels, [serverName(one, i), one.role, stateNode, vote, took, clockText, ago(one.since), more.join("; ")], masterClasses);
  if (one.latency_of_probe && took) node.children[4].title = "of the probe that brought it up: no lock has used it in the last seconds";
  return node;
}

function drawMasters() {
  byID("masters").replaceChildren(...state.masters.map(masterRow));
  byID("masters-count").textContent = `${state.quorum.voting} of ${state.quorum.masters} vote`;
}

const lockLabels = ["Key", "State", "Left", "Votes", "Waiters", "Since", "Client"];
const lockClasses = { Key: "mono wrap", State: "tight", Left: "n", Waiters: "n", Since: "tight", Client: "wrap" };

function lockRow(one, at) {
  const votes = element("span", "dots");
  for (const vote of one.votes) {
    const dot = element("span", "", vote.says === "held" ? "●" : vote.says === "free" ? "○" : vote.says === "other" ? "◐" : "✕");
    dot.title = `${vote.server}: ${vote.says}`;
    votes.append(dot);
  }
  const left = one.left_ms === null ? "" : one.left_ms < 0 ? "no end" : span(one.left_ms - (state.now - at));
  const client = [one.name, one.addr].filter(Boolean).join(" · ");
  const since = one.since === null ? "" : ago(one.since);
  return row(lockLabels, [one.key, element("span", `badge ${moods[one.state] || ""}`, one.state), left, votes, one.waiters ? String(one.waiters) : "", since, client], lockClasses);
}

let locks = null;

function drawLocks() {
  const on = state.locks;
  byID("search").hidden = byID("locks-table").hidden = !on;
  if (!on) {
    byID("locks-count").textContent = "";
    byID("locks-note").textContent = "Which locks are held is not shown here, because keys may be secrets: the setting admin-locks shows them. LOCKLIST shows them to clients that may ask.";
    return;
  }
  if (!locks) return;
  const standing = locks.locks.filter((one) => one.left_ms === null || one.left_ms < 0 || one.left_ms > state.now - locks.at);
  const held = standing.length;
  const waiting = standing.reduce((sum, one) => sum + one.waiters, 0);
  byID("locks-count").textContent = `${held}${locks.more ? " or more" : ""} held${waiting ? `, ${waiting} wait for them` : ""}`;
  const notes = [];
  if (locks.error) notes.push(locks.error);
  if (locks.more) notes.push(`The first ${held} are shown: filter by a glob, such as order:*.`);
  if (!held && !locks.error) notes.push("None is held.");
  byID("locks-note").textContent = notes.join(" ");
  byID("locks-table").hidden = held === 0;
  byID("locks").replaceChildren(...standing.map((one) => lockRow(one, locks.at)));
}

function drawEvents() {
  byID("events-count").textContent = events.length ? "" : "none";
  byID("events").replaceChildren(...events.toReversed().map((one) => {
    const li = element("li");
    const what = element("span");
    what.append(element("span", `badge ${one.mood}`, one.what));
    li.append(element("time", "", clock(one.at)), what, element("span", "text", [one.about, one.detail].filter(Boolean).join(": ")));
    return li;
  }));
}

function draw() {
  drawBanner();
  drawTiles();
  drawPlots();
  drawMasters();
  drawLocks();
  drawEvents();
}

// ---- asking ----

async function get(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(patience), cache: "no-store" });
  if (!answer.ok) throw new Error(await answer.text());
  const view = await answer.json();
  if (view.version !== 1) throw new Error("the proxy is of another version: load this page again");
  return view;
}

async function ask() {
  try {
    const asked = samplesSeen;
    let view = await get(`/status/v1?samples=${asked}&events=${eventsSeen}`);
    if (view.proxy.started !== started) { // another process: begin anew
      forget();
      if (started || asked) view = await get("/status/v1");
      started = view.proxy.started;
    }
    learn(view);
    draw();
    if (!locks) goLocks();
  } catch (error) {
    const since = lastAnswer ? ` What is shown is of ${clock(lastAnswer + offset)}.` : "";
    setBanner("bad", `✕ The proxy does not answer: ${error.message}.${since}`);
  }
}

async function askLocks() {
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

// repeat does something again and again while the page is looked at, one at a time.
function repeat(what, time) {
  let timer = 0, running = false;
  const go = async () => {
    clearTimeout(timer);
    if (running || document.hidden) return;
    running = true;
    await what();
    running = false;
    timer = setTimeout(go, time);
  };
  document.addEventListener("visibilitychange", go);
  go();
  return go;
}

repeat(ask, pause);
const goLocks = repeat(askLocks, locksPause);
let typing = 0;
byID("search").addEventListener("submit", (happened) => { happened.preventDefault(); goLocks(); });
byID("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(goLocks, 600); });
