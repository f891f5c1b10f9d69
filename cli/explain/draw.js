// SPDX-License-Identifier: BSD-2-Clause
// Draws the ladder. Only what is visible is in the document, so a story of many thousand events stays quick.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const ROW = 22;          // pixels from event to event
const GAP_FROM = 20000;  // ns: a longer pause between two events is written at the margin
const MARGIN = 104;      // pixels at the left, for times
const SIDE = 240;        // pixels beside the outer lines, for labels
const LABELS_FROM = 11;  // pixels of a row: below that there are no labels
const MOST_LANES = 24;
const QUIET = new Set(["command", "state", "eqe", "interrupt", "posted"]);
const OWNED = new Set(["doorbell", "wqe", "post_recv", "flow"]);    // shown if they belong to a message

function makeTime(ns) {
  if (Math.abs(ns) < 1000) { return `${ns} ns`; }
  if (Math.abs(ns) < 1e6) { return `${(ns / 1e3).toFixed(ns % 1000 ? 2 : 0)} µs`; }
  if (Math.abs(ns) < 1e9) { return `${(ns / 1e6).toFixed(3)} ms`; }
  return `${(ns / 1e9).toFixed(4)} s`;
}

function element(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) { made.setAttribute(key, attributes[key]); }
  if (text !== undefined) { made.textContent = text; }
  if (parent) { parent.appendChild(made); }
  return made;
}

// What is shown where: rows (an event each), and lanes (a host or a queue pair each).
class Layout {
  constructor(story) {
    this.story = story;
    this.zoom = 1;
    this.toScale = this.byQp = this.all = this.alone = false;
    this.message = -1;
    this.arrowOf = new Map();   // event -> its arrow
    story.arrows.forEach((arrow) => {
      for (const at of [arrow.sent, arrow.received]) { if (at >= 0) { this.arrowOf.set(at, arrow); } }
    });
    this.lay();
  }

  isShown(at) {
    const event = this.story.events[at];
    if (this.alone && this.message >= 0) { return event.message === this.message; }
    if (this.all) { return true; }
    if (QUIET.has(event.kind)) { return false; }
    if (OWNED.has(event.kind) || "fcs" in event.data || "rqn" in event.data || (event.kind === "cqe" && event.data.of_send)) {
      return event.message >= 0;  // otherwise it belongs to the driver's own queues
    }
    return !("text" in event.data);
  }

  lay() {
    const events = this.story.events;
    this.rows = [];
    this.rowOf = new Int32Array(events.length).fill(-1);
    for (let at = 0; at < events.length; at++) {
      if (this.isShown(at)) {
        this.rowOf[at] = this.rows.length;
        this.rows.push(at);
      }
    }
    this.begin = this.rows.length ? events[this.rows[0]].t : 0;
    this.layLanes();
    this.layTimes();
  }

  laneKey(host, qpn) { return this.byQp && qpn >= 0 ? `${host}/${qpn}` : `${host}`; }

  layLanes() {
    const found = new Map();
    const add = (host, qpn) => {
      const key = this.laneKey(host, qpn);
      if (!found.has(key)) { found.set(key, {key, host, qpn: this.byQp ? qpn : -1, qpns: new Set()}); }
      if (qpn > 0) { found.get(key).qpns.add(qpn); }
    };
    for (const at of this.rows) {
      const event = this.story.events[at];
      add(event.host, event.qpn);
      const arrow = this.arrowOf.get(at);
      if (arrow && arrow.sent === at && arrow.to >= 0 && arrow.received < 0) { add(arrow.to, this.far(at)); }
      if (arrow && arrow.sent < 0 && arrow.from >= 0) { add(arrow.from, -1); }
    }
    this.lanes = [...found.values()].sort((a, b) => a.host - b.host || a.qpn - b.qpn);
    if (this.byQp && this.lanes.length > MOST_LANES) {
      this.byQp = false;
      this.layLanes();
      return;
    }
    this.laneOf = new Map(this.lanes.map((lane, at) => [lane.key, at]));
  }

  far(at) {
    const data = this.story.events[at].data;
    return typeof data.dqpn === "number" ? data.dqpn : -1;
  }

  lane(host, qpn) {
    const found = this.laneOf.get(this.laneKey(host, qpn));
    return found === undefined ? this.laneOf.get(`${host}`) ?? 0 : found;
  }

  // The place of each row. By default all rows have the same distance, and a pause takes one more.
  layTimes() {
    const events = this.story.events;
    const step = ROW * this.zoom;
    let y = step;
    this.y = new Float64Array(this.rows.length);
    this.pause = new Float64Array(this.rows.length);
    const first = this.rows.length ? events[this.rows[0]].t : 0;
    const whole = this.rows.length ? events[this.rows[this.rows.length - 1]].t - first : 0;
    const perNs = whole ? ROW * this.rows.length / whole * this.zoom : 0;
    for (let row = 0; row < this.rows.length; row++) {
      if (this.toScale) {
        y = step + (events[this.rows[row]].t - first) * perNs;
      } else if (row) {
        const pause = events[this.rows[row]].t - events[this.rows[row - 1]].t;
        y += pause >= GAP_FROM ? 2.2 * step : step;
        this.pause[row] = pause >= GAP_FROM ? pause : 0;
      }
      this.y[row] = y;
    }
    this.height = y + 3 * ROW;
  }

  rowAt(y) {
    let low = 0, high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.y[middle] < y) { low = middle + 1; } else { high = middle; }
    }
    return low;
  }

  x(lane, width) {
    const left = MARGIN + SIDE, right = width - SIDE;
    return this.lanes.length < 2 ? (left + right) / 2 : left + (right - left) * lane / (this.lanes.length - 1);
  }
}

// Draws the rows of a layout between two heights.
class Painter {
  constructor(svg, layout) {
    this.svg = svg;
    this.layout = layout;
    this.story = layout.story;
    this.hits = new Set();
    this.selected = -1;
  }

  paint(top, height, width) {
    const {layout, svg} = this;
    this.width = width;
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    svg.style.top = `${top}px`;
    svg.setAttribute("viewBox", `0 ${top} ${width} ${height}`);
    svg.replaceChildren();
    this.labels = layout.toScale || ROW * layout.zoom >= LABELS_FROM;
    this.lastLabel = -1e9;
    const from = Math.max(0, layout.rowAt(top - 4 * ROW)), to = Math.min(layout.rows.length, layout.rowAt(top + height) + 2);
    const bands = element("g", {}, svg), lines = element("g", {}, svg), arrows = element("g", {}, svg),
      marks = element("g", {}, svg);
    layout.lanes.forEach((lane, at) => {
      const x = layout.x(at, width);
      element("line", {class: "lane", x1: x, x2: x, y1: top, y2: top + height}, lines);
    });
    const drawn = new Set();
    for (let row = from; row < to; row++) { this.paintRow(row, bands, lines, arrows, marks, drawn); }
    this.paintLong(from, to, arrows, drawn);
  }

  // Arrows that begin above what is visible and end below its top.
  paintLong(from, to, arrows, drawn) {
    const {layout} = this;
    for (const arrow of this.story.arrows) {
      if (arrow.sent < 0 || arrow.received < 0 || drawn.has(arrow)) { continue; }
      if (layout.rowOf[arrow.sent] >= 0 && layout.rowOf[arrow.sent] < from && layout.rowOf[arrow.received] >= to) {
        this.paintArrow(arrow, arrows);
      }
    }
  }

  paintRow(row, bands, lines, arrows, marks, drawn) {
    const {layout, story, width} = this;
    const at = layout.rows[row], event = story.events[at], y = layout.y[row], half = Math.min(ROW * layout.zoom, ROW) / 2;
    const left = MARGIN - 8;
    if (layout.message >= 0 && !layout.alone && event.message === layout.message) {
      element("rect", {class: "band", x: left, y: y - half, width: width - left, height: 2 * half}, bands);
    }
    if (this.hits.has(at)) {
      element("rect", {class: "hit", x: left, y: y - half, width: width - left, height: 2 * half}, bands);
    }
    if (at === this.selected) {
      element("rect", {class: "here", x: left, y: y - half, width: width - left - 4, height: 2 * half, rx: 3}, bands);
    }
    if (layout.pause[row]) {
      const middle = y - 1.1 * ROW * layout.zoom;
      element("line", {class: "gapline", x1: left, x2: width, y1: middle, y2: middle}, lines);
      element("text", {class: "gap", x: 8, y: middle + 4}, lines, `+ ${makeTime(layout.pause[row])}`);
    }
    if (this.labels && (!layout.toScale || y - this.lastLabel > 14)) {
      element("text", {class: "time", x: 8, y: y + 4}, marks, makeTime(event.t - layout.begin));
      this.labelled = true;
      this.lastLabel = y;
    } else {
      this.labelled = false;
    }
    const arrow = layout.arrowOf.get(at);
    if (!arrow) {
      this.paintMark(at, event, y, marks);
    } else if (!drawn.has(arrow)) {
      drawn.add(arrow);
      this.paintArrow(arrow, arrows);
    }
  }

  paintMark(at, event, y, marks) {
    const {layout} = this, lane = layout.lane(event.host, event.qpn), x = layout.x(lane, this.width);
    const failed = (event.kind === "cqe" && "syndrome" in event.data) ||
      (event.kind === "poll" && event.data.status !== "success");
    const item = element("g", {class: `item ${event.kind}${failed ? " failed" : ""} ${standing(layout, event)}`,
      "data-event": at}, marks);
    const shape = {post: `M${x - 6},${y - 6}h12l-6,11z`, post_recv: `M${x - 6},${y - 6}h12l-6,11z`,
      lost: `M${x - 5},${y - 5}l10,10m0,-10l-10,10`, fault: `M${x},${y - 7}l6,12h-12z`, doorbell: `M${x - 5},${y + 4}a5,6 0 0 1 10,0z`,
      cqe: `M${x},${y - 6}l6,6l-6,6l-6,-6z`, poll: `M${x - 6},${y + 5}h12l-6,-11z`,
      flow: `M${x - 4},${y}a4,4 0 1 0 8,0a4,4 0 1 0 -8,0`}[event.kind] ||
      `M${x - 5},${y - 5}h10v10h-10z`;
    element("path", {class: "mark", d: shape}, item);
    element("title", {}, item, event.title);
    if (this.labels && this.labelled) { this.label(item, lane, x, y, event.title); }
  }

  // Labels of the first lane stand at its left, those of the others at their right.
  label(item, lane, x, y, text) {
    const isLeft = lane === 0 && this.layout.lanes.length > 1;
    const most = isLeft || lane === this.layout.lanes.length - 1 ? 31 : 60;
    const short = text.length > most ? `${text.slice(0, most - 1)}…` : text;
    element("text", {x: isLeft ? x - 11 : x + 11, y: y + 4, "text-anchor": isLeft ? "end" : "start"}, item, short);
  }

  // From the sender's lane to the receiver's. What is lost ends with a cross on the way.
  paintArrow(arrow, arrows) {
    const {layout, story, width} = this;
    const start = arrow.sent, end = arrow.received;
    const event = story.events[start >= 0 ? start : end];
    const startRow = start >= 0 ? layout.rowOf[start] : -1, endRow = end >= 0 ? layout.rowOf[end] : -1;
    let y1 = startRow >= 0 ? layout.y[startRow] : -1, y2 = endRow >= 0 ? layout.y[endRow] : -1;
    if (y1 < 0 && y2 < 0) { return; }
    y1 = y1 < 0 ? y2 : y1;
    const lost = arrow.lost !== "" && end < 0;
    if (y2 < 0) { y2 = y1 + (lost ? 0.8 : 0.5) * ROW * Math.min(1, layout.zoom); }
    const from = start >= 0 ? layout.lane(event.host, event.qpn) : layout.lane(arrow.from, -1);
    const to = end >= 0 ? layout.lane(story.events[end].host, story.events[end].qpn) : layout.lane(arrow.to, layout.far(start));
    const x1 = layout.x(from, width);
    let x2 = layout.x(to, width);
    const isLoop = from === to;
    if (isLoop) { x2 = x1 + 60; }
    const dx = Math.sign(x2 - x1) || 1;
    const part = lost ? 0.62 : 1;
    const ex = x1 + (x2 - x1) * part, ey = y1 + (y2 - y1) * part;
    const isAnswer = /ACK|CNP|RESP/.test(event.data.opcode || "");
    const classes = ["item", "packet", arrow.repeated ? "repeated" : "", arrow.lost ? "lost" : "", standing(layout, event)];
    const item = element("g", {class: classes.filter(Boolean).join(" "), "data-event": start >= 0 ? start : end}, arrows);
    const path = isLoop ? `M${x1},${y1}C${x1 + 90},${y1} ${x1 + 90},${y2} ${x1},${y2}` : `M${x1},${y1}L${ex},${ey}`;
    element("path", {d: path, stroke: "transparent", "stroke-width": 12, fill: "none"}, item);
    element("path", {class: `arrow${isAnswer ? " ack" : ""}`, d: path}, item);
    element("title", {}, item, event.title + (arrow.why ? ` (${arrow.why})` : "") + (arrow.lost ? ` (${arrow.lost})` : ""));
    if (lost || arrow.lost) {
      element("path", {class: "cross", fill: "none", d: `M${ex - 6},${ey - 6}l12,12m0,-12l-12,12`}, item);
    } else if (isLoop) {
      element("path", {class: "headmark", d: `M${x1 + 1},${y2}l9,-5v10z`}, item);
    } else {
      const angle = Math.atan2(ey - y1, ex - x1);
      const back = (turn) => `${ex - 10 * Math.cos(angle + turn)},${ey - 10 * Math.sin(angle + turn)}`;
      element("path", {class: "headmark", d: `M${ex},${ey}L${back(0.4)}L${back(-0.4)}z`}, item);
    }
    if (this.labels && (this.labelled || !layout.toScale)) { this.labelArrow(item, arrow, event, {x1, x2, y1, dx, isLoop}); }
  }

  // The text stands near the sender, above the line, in the row of the sending.
  labelArrow(item, arrow, event, {x1, x2, y1, dx, isLoop}) {
    const why = arrow.why ? ` – ${arrow.why.replace("repeated: ", "again: ")}` : "";
    const lost = arrow.lost && arrow.received < 0 ? "" : arrow.lost ? ` – ${arrow.lost}` : "";
    const room = Math.abs(x2 - x1);
    const place = isLoop ? {x: x1 + 75, anchor: "start"} : {x: x1 + dx * 14, anchor: dx > 0 ? "start" : "end"};
    const most = Math.max(12, Math.floor(room / 7.3));
    const text = event.title + why + lost;
    element("text", {x: place.x, y: y1 - 4, "text-anchor": place.anchor}, item,
      text.length > most ? `${text.slice(0, most - 1)}…` : text);
  }
}

// How an event stands to the selected message.
function standing(layout, event) {
  return layout.message < 0 || layout.alone ? "" : event.message === layout.message ? "mine" : "dim";
}
