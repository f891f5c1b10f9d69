// SPDX-License-Identifier: BSD-2-Clause
// What a reader does with the ladder: select, follow a message, search, zoom. story.py says what the story has.

const story = JSON.parse(document.getElementById("story").textContent);
const byId = (id) => document.getElementById(id);
const layout = new Layout(story);
const painter = new Painter(byId("drawing"), layout);
const scroll = byId("scroll");
const MESSAGE_HEIGHT = 44;
let hits = [], hit = -1;

function make(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) { made.textContent = text; }
  if (className) { made.className = className; }
  return made;
}

// -- drawing

let isDue = false;
function draw() {
  if (!isDue) {
    isDue = true;
    requestAnimationFrame(() => { isDue = false; drawNow(); });
  }
}

function drawNow() {
  byId("space").style.height = `${layout.height}px`;
  painter.paint(scroll.scrollTop, scroll.clientHeight, scroll.clientWidth);
  const heads = byId("heads");
  heads.replaceChildren();
  layout.lanes.forEach((lane, at) => {
    const head = make("div", story.hosts[lane.host], "head");
    const qpns = [...lane.qpns].map((qpn) => `0x${qpn.toString(16)}`);
    head.appendChild(make("small", qpns.length ? `QP ${qpns.slice(0, 4).join(", ")}${qpns.length > 4 ? " …" : ""}` : " "));
    head.style.left = `${layout.x(at, scroll.clientWidth)}px`;
    heads.appendChild(head);
  });
  drawMessages();
}

function drawMessages() {
  const list = byId("messages");
  const from = Math.max(0, Math.floor(list.scrollTop / MESSAGE_HEIGHT) - 1);
  const to = Math.min(story.messages.length, from + Math.ceil(list.clientHeight / MESSAGE_HEIGHT) + 3);
  const end = make("div");
  list.replaceChildren();
  end.style.height = `${story.messages.length * MESSAGE_HEIGHT}px`;
  list.appendChild(end);
  for (let at = from; at < to; at++) {
    const message = story.messages[at];
    const item = make("div", undefined, `message${at === layout.message ? " chosen" : ""}`);
    const line = make("span");
    line.appendChild(make("i", message.title));
    if (message.repeated) { line.appendChild(make("b", `↻${message.repeated}`, "repeated")); }
    if (message.lost) { line.appendChild(make("b", `✕${message.lost}`, "failed")); }
    if (message.status && message.status !== "success") { line.appendChild(make("b", "failed", "failed")); }
    item.appendChild(line);
    item.appendChild(make("small", `${story.hosts[message.host]} · QP 0x${message.qpn.toString(16)} · WQE ${message.wqe}`));
    item.style.top = `${at * MESSAGE_HEIGHT}px`;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", at === layout.message);
    item.dataset.message = at;
    list.appendChild(item);
  }
}

// -- selection and the panel

function select(at, chooseMessage = true) {
  painter.selected = at;
  if (chooseMessage && at >= 0) { layout.message = story.events[at].message; }
  if (layout.alone) { layout.lay(); }
  if (at >= 0 && layout.rowOf[at] < 0) {
    layout.all = true;
    byId("quiet").setAttribute("aria-pressed", true);
    layout.lay();
  }
  showPanel();
  if (at >= 0) { reveal(at); }
  draw();
}

function reveal(at) {
  const row = layout.rowOf[at];
  if (row < 0) { return; }
  const y = layout.y[row];
  if (y < scroll.scrollTop + 2 * ROW || y > scroll.scrollTop + scroll.clientHeight - 2 * ROW) {
    scroll.scrollTop = y - scroll.clientHeight / 3;
  }
}

function chooseMessage(at) {
  layout.message = at;
  const message = story.messages[at];
  if (message) {
    const list = byId("messages"), y = at * MESSAGE_HEIGHT;
    if (y < list.scrollTop || y > list.scrollTop + list.clientHeight - MESSAGE_HEIGHT) { list.scrollTop = y - 2 * MESSAGE_HEIGHT; }
    select(message.events[0]);
  }
}

function fieldsTable(data) {
  const table = make("table");
  for (const [key, value] of Object.entries(data)) {
    const row = make("tr"), cell = make("td", undefined, "value");
    row.appendChild(make("td", key));
    if (value !== null && typeof value === "object") {
      cell.appendChild(fieldsTable(value));
    } else {
      cell.textContent = /qpn$/.test(key) && typeof value === "number" ? `0x${value.toString(16)}` : String(value);
    }
    row.appendChild(cell);
    table.appendChild(row);
  }
  return table;
}

function showPanel() {
  const panel = byId("panel"), at = painter.selected;
  panel.replaceChildren();
  if (at < 0) {
    panel.append(make("h2", "Nothing is selected"), make("p", "Click an arrow, a mark or a message. Press ? for the keys."));
    return;
  }
  const event = story.events[at], arrow = layout.arrowOf.get(at);
  panel.append(make("h2", event.kind), make("h3", event.title),
    make("p", `${story.hosts[event.host]}, at ${makeTime(event.t - layout.begin)}`));
  if (arrow) { panel.appendChild(packetText(arrow)); }
  panel.appendChild(fieldsTable(event.data));
  if (event.message >= 0) { showMessage(panel, event.message, at); }
}

function packetText(arrow) {
  const text = make("p");
  if (arrow.why) { text.append(make("span", arrow.why, arrow.repeated ? "badge repeated" : "badge"), " "); }
  if (arrow.lost) { text.append(make("span", arrow.lost, "badge failed"), " "); }
  if (arrow.sent >= 0 && arrow.received >= 0) {
    text.append(`on the way for ${makeTime(story.events[arrow.received].t - story.events[arrow.sent].t)}`);
  }
  return text;
}

function showMessage(panel, at, here) {
  const message = story.messages[at], events = message.events;
  const took = story.events[events[events.length - 1]].t - story.events[events[0]].t;
  const words = [`${message.packets} packets`];
  if (message.repeated) { words.push(`${message.repeated} repeated (${message.reasons.join(", ")})`); }
  if (message.lost) { words.push(`${message.lost} lost`); }
  words.push(`${makeTime(took)} in all`);
  panel.append(make("h2", "Its message"), make("h3", message.title), make("p", words.join(", ")));
  for (const step of message.receives) {      // they were posted before, often long before
    const button = make("button", undefined, `step${step === here ? " here" : ""}`);
    button.append(make("time", makeTime(story.events[step].t - story.events[events[0]].t)),
      make("span", story.events[step].title));
    button.addEventListener("click", () => select(step));
    panel.appendChild(button);
  }
  for (const step of events) {
    const event = story.events[step], arrow = layout.arrowOf.get(step);
    if (arrow && arrow.received === step && arrow.sent >= 0 && !arrow.lost) { continue; }  // its sending is in the list
    const button = make("button", undefined, `step${step === here ? " here" : ""}`);
    if (arrow && arrow.repeated) { button.classList.add("repeated"); }
    if ((arrow && arrow.lost) || event.kind === "lost" || event.kind === "fault") { button.classList.add("lost"); }
    button.append(make("time", makeTime(event.t - story.events[events[0]].t)), make("span", event.title));
    button.addEventListener("click", () => select(step));
    panel.appendChild(button);
  }
}

// -- search

// The words that are sought: all must be there. "qp 0x42" and "psn 100" look at those numbers only.
function parseSearch(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean), tests = [];
  for (let at = 0; at < words.length; at++) {
    const value = Number(words[at + 1]);
    if ((words[at] === "qp" || words[at] === "psn" || words[at] === "wqe") && at + 1 < words.length && !Number.isNaN(value)) {
      const key = words[at++];
      tests.push((event) => key === "qp" ? event.qpn === value || event.data.dqpn === value : event.data[key] === value);
    } else {
      const word = words[at];
      tests.push((event, said) => said().includes(word));
    }
  }
  return tests;
}

function search(text) {
  const tests = parseSearch(text);
  hits = [];
  hit = -1;
  if (tests.length) {
    story.events.forEach((event, at) => {
      let said;
      const saying = () => said ??= `${event.kind} ${event.title} ${JSON.stringify(event.data)}`.toLowerCase();
      const arrow = layout.arrowOf.get(at);
      const isShown = layout.rowOf[at] >= 0 && !(arrow && arrow.received === at && arrow.sent >= 0);
      if (isShown && tests.every((test) => test(event, saying))) { hits.push(at); }
    });
  }
  painter.hits = new Set(hits);
  byId("hits").textContent = tests.length ? `${hits.length} hits` : "";
  draw();
}

function step(by) {
  if (!hits.length) { return; }
  hit = (hit + by + hits.length) % hits.length;
  byId("hits").textContent = `${hit + 1} of ${hits.length}`;
  select(hits[hit]);
}

// -- view

function zoom(by) {
  const middle = layout.rowAt(scroll.scrollTop + scroll.clientHeight / 2);
  layout.zoom = Math.min(40, Math.max(0.04, layout.zoom * by));
  layout.layTimes();
  byId("space").style.height = `${layout.height}px`;
  if (middle < layout.rows.length) { scroll.scrollTop = layout.y[middle] - scroll.clientHeight / 2; }
  draw();
}

function toggle(id, member) {
  layout[member] = !layout[member];
  layout.lay();
  byId(id).setAttribute("aria-pressed", layout[member]);
  byId("space").style.height = `${layout.height}px`;
  if (painter.selected >= 0) { reveal(painter.selected); }
  draw();
}

function move(by) {
  const row = painter.selected >= 0 ? layout.rowOf[painter.selected] : -1;
  const next = Math.min(layout.rows.length - 1, Math.max(0, row + by));
  if (layout.rows.length) { select(layout.rows[next]); }
}

function moveMessage(by) {
  const count = story.messages.length;
  if (count) { chooseMessage((layout.message + by + count) % count); }
}

const keys = {
  ArrowDown: () => move(1), ArrowUp: () => move(-1), Home: () => move(-1e9), End: () => move(1e9),
  "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), "/": () => byId("search").focus(),
  n: () => step(1), N: () => step(-1), m: () => moveMessage(1), M: () => moveMessage(-1),
  t: () => toggle("scale", "toScale"), q: () => toggle("lanes", "byQp"), c: () => toggle("quiet", "all"),
  f: () => toggle("alone", "alone"), "?": () => byId("keys").showModal(),
  Escape: () => { layout.message = -1; select(-1); },
};

document.addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT") {
    if (event.key === "Enter") { step(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { event.target.blur(); }
    return;
  }
  if (!event.ctrlKey && !event.metaKey && !event.altKey && keys[event.key] && !byId("keys").open) {
    event.preventDefault();
    keys[event.key]();
  }
});
byId("drawing").addEventListener("click", (event) => {
  const item = event.target.closest("[data-event]");
  if (item) { select(Number(item.dataset.event)); }
});
byId("messages").addEventListener("click", (event) => {
  const item = event.target.closest("[data-message]");
  if (item) { chooseMessage(Number(item.dataset.message)); }
});
scroll.addEventListener("wheel", (event) => {
  if (event.ctrlKey) {
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2);
  }
}, {passive: false});
scroll.addEventListener("scroll", draw);
byId("messages").addEventListener("scroll", drawMessages);
byId("search").addEventListener("input", (event) => search(event.target.value));
for (const [id, action] of [["previous", () => step(-1)], ["next", () => step(1)], ["closer", () => zoom(1.4)],
  ["farther", () => zoom(1 / 1.4)], ["scale", keys.t], ["lanes", keys.q], ["quiet", keys.c], ["alone", keys.f],
  ["help", keys["?"]]]) {
  byId(id).addEventListener("click", action);
}
addEventListener("resize", draw);
byId("name").textContent = document.title.replace(" – hcasim", "");
{
  const events = story.events, lost = story.arrows.filter((arrow) => arrow.lost).length,
    repeated = story.arrows.filter((arrow) => arrow.repeated).length;
  byId("where").textContent = `${events.length} events, ${story.arrows.length} packets (${lost} lost, ${repeated} repeated), ` +
    `${story.messages.length} messages, ${makeTime(events[events.length - 1].t)}`;
}
showPanel();
drawNow();
