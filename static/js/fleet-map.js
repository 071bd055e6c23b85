// The map: every node and GPU on one canvas. Rasters come by HTTP, what changes of them by the link. Arrow keys walk it.
import { arrange, countFaults, sortNodes } from "./map-arrange.js";
import { healthOf, isFault, sortOne, sortOut } from "./map-colours.js";
import { readChoice, showChoice, startControls, writeChoice } from "./map-controls.js";
import { answered, Index, Raster } from "./map-raster.js";
import { Lasso } from "./map-lasso.js";
import { Legend } from "./map-legend.js";
import { Measure } from "./map-measure.js";
import { Painter, paletteOf, writeLabels } from "./map-paint.js";
import { Pointer } from "./map-pointer.js";
import { count, titlesOf } from "./map-words.js";
import { clock, isLate, now } from "./times.js";

const LOOK_AGAIN_MS = 60000; // what no message tells: pools
const AT_MOST_EVERY_MS = 1500, AFTER_AN_ERROR_MS = 5000, REORDER_MS = 3000, STILL_LOADING_MS = 3000;
const LEAST_HEIGHT_PX = 180, SHARE_OF_A_SMALL_SCREEN = 0.7;
const TRIES = 3;

class FleetMap {
  constructor(panel) {
    this.panel = panel;
    this.place = panel.querySelector("[data-map]");
    [this.canvas, this.labels] = this.place.querySelectorAll("canvas");
    this.note = panel.querySelector(".map-note");
    this.painter = new Painter(this.canvas);
    this.choice = readChoice();
    this.legend = new Legend(panel.querySelector(".legend"), (key) => this.toggle(key));
    this.dirty = new Set(); // nodes to be painted anew
    this.measure = new Measure(this);
    this.late = new Map(); // topic of a cluster -> whether nothing was received of it for too long
    this.pointer = new Pointer(this);
    this.lasso = new Lasso(this);
    startControls(panel, this.choice, (change) => this.choose(change));
  }

  async load() {
    clearTimeout(this.timer);
    this.timer = null;
    if (document.hidden && this.raster) return; // once somebody looks
    try {
      await this.fetchAll();
      this.failedAt = null;
      this.measure.ifDue();
    } catch (error) {
      this.failedAt ??= now();
      this.reason = error.message;
      this.loadSoon(AFTER_AN_ERROR_MS);
    }
    this.tell();
  }

  // The index is asked for with the first raster, and after that only where a raster names another.
  async fetchAll() {
    let index = this.index ? null : fetchIndex(this.place);
    for (let tries = 0; tries < TRIES; tries += 1) {
      const headers = this.etag && this.index ? { "If-None-Match": this.etag } : {};
      const response = await answered(fetch(this.place.dataset.map, { headers, redirect: "manual" }));
      if (response.status === 304) return;
      const raster = new Raster(await response.arrayBuffer());
      if (index) this.index = await index;
      if (raster.index === this.index.version) {
        this.etag = response.headers.get("ETag");
        return this.take(raster);
      }
      index = fetchIndex(this.place);
    }
    this.loadSoon(AT_MOST_EVERY_MS);
  }

  loadSoon(wait = AT_MOST_EVERY_MS) {
    this.timer ??= setTimeout(() => this.load(), wait + Math.random() * 500);
  }

  // Each GPU that has another value of the metric now.
  recolour(places, name) {
    if (this.choice.colour.metric !== name || !this.out || this.choice.only.size) return this.redraw();
    if (this.drawing) return undefined;
    const nodes = new Set(places.map((place) => this.raster.nodeAt(place)));
    for (const node of nodes) {
      sortOne(this.out, this.raster, this.index, node, -1);
      sortOne(this.out, this.raster, this.index, node, 1);
      this.dirty.add(node);
    }
    if (nodes.size) this.paintSoon();
    return undefined;
  }

  // The age of a cluster's picture is the time since its last heartbeat.
  lastSeen({ topic, at }) {
    const cluster = this.clusters?.get(topic);
    if (!cluster) return;
    const was = this.late.get(topic) ?? !cluster.is_seen;
    this.late.set(topic, isLate(at));
    if (this.late.get(topic) !== was) this.loadSoon();
  }

  // Of a cluster, by its key.
  nameOf(key) {
    return this.index.value("cluster", this.raster.clusterOf.findIndex(({ id }) => id === key));
  }

  // Also what only grows older: no answer says that.
  lookAgain() {
    if (this.raster?.clusters.some((cluster) => !cluster.is_seen)) this.redraw();
    this.loadSoon(0);
  }

  take(raster) {
    const was = this.raster;
    if (was?.index === raster.index && was.gpus.length === raster.gpus.length) raster.metrics = was.metrics;
    this.raster = raster;
    performance.mark("map-raster");
    this.clusters = new Map(raster.clusters.map((cluster) => [`cluster-${cluster.id}`, cluster]));
    this.redraw();
  }

  // What one batch changed. A gap before it, a node that is not on the map: all is fetched.
  receive({ topic, seq, prev, nodes = [], all, index, kinds = [] }) {
    const cluster = this.clusters?.get(topic);
    if (!cluster || all || index || prev > cluster.seq || kinds.includes("bookmarks")) this.loadSoon();
    if (!cluster || all || seq < cluster.seq) return;
    performance.mark("map-batch");
    const isCounted = !this.drawing; // else all are sorted out anew, once the screen takes a picture: a tab behind others waits
    for (const [key, , cells] of nodes) {
      const node = this.index.indexOf.get(key);
      if (node === undefined || cells === undefined) {
        if (node !== undefined || cells !== undefined) this.loadSoon();
        continue;
      }
      const was = healthOf(this.raster, node), wasFault = isFault(this.raster, node);
      if (isCounted) sortOne(this.out, this.raster, this.index, node, -1);
      if (!this.raster.apply(node, cells)) this.loadSoon();
      if (!isCounted) continue;
      sortOne(this.out, this.raster, this.index, node, 1);
      this.dirty.add(node);
      if (healthOf(this.raster, node) !== was) this.reorderSoon();
      if (isFault(this.raster, node) !== wasFault) this.isFaultMoved = true;
    }
    cluster.seq = Math.max(cluster.seq, prev > cluster.seq ? cluster.seq : seq);
    if (this.dirty.size) this.paintSoon();
  }

  reorderSoon() {
    this.reordering ??= setTimeout(() => {
      this.reordering = null;
      if (this.pointer.isBusy) this.reorderSoon();
      else this.redraw();
    }, REORDER_MS);
  }

  choose(change) {
    if ("colour" in change) change.only = new Set();
    Object.assign(this.choice, change);
    writeChoice(this.choice);
    showChoice(this.panel, this.choice);
    if ("colour" in change) this.measure.fetch();
    this.redraw();
    this.tell();
  }

  toggle(key) {
    const only = new Set(this.choice.only);
    if (!only.delete(key)) only.add(key);
    this.choose({ only });
  }

  clear() {
    this.choose({ only: new Set(), faults: false });
  }

  // Sorted out, arranged and painted anew, in the next picture that the screen shows.
  redraw() {
    if (!this.raster || this.drawing) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = null;
      this.dirty.clear();
      this.scale = window.devicePixelRatio || 1;
      this.palette = paletteOf(this.place);
      this.out = sortOut(this.choice.colour, this.raster, this.index);
      this.sorted = sortNodes(this.raster, this.index, { ...this.choice, shows: this.filter() });
      this.lay();
      this.paint(Array.from(this.arranged.order.keys()), true);
      this.legend.draw(this.palette, this.scale);
      this.label();
      this.panel.querySelector(".map-borders").hidden = this.choice.colour.key === "health";
      this.pointer.showChosen();
      this.lasso.draw();
      this.tell();
      this.fitAgain();
    });
  }

  // What is said above the map moves it down; once, so that the two do not chase each other.
  fitAgain() {
    const isMoved = Math.abs(this.roomPx() - this.room) > 3;
    if (isMoved && !this.isSecond) this.redraw();
    this.isSecond = isMoved && !this.isSecond;
  }

  // Which nodes are shown at all.
  filter() {
    const { raster, out, choice } = this;
    const wanted = new Set(out.kinds.flatMap(({ key }, at) => (choice.only.has(key) ? [at] : [])));
    this.isFaint = wanted.size ? (kind) => !wanted.has(kind) : () => false;
    const has = (node) => {
      if (out.colour.unit === "node") return wanted.has(out.ofNode[node]);
      return out.ofGpu.subarray(raster.starts[node], raster.starts[node + 1]).some((kind) => wanted.has(kind));
    };
    return (node) => (!choice.faults || isFault(raster, node)) && (!choice.only.size || has(node));
  }

  lay() {
    this.drawnWidth = this.place.clientWidth;
    const width = Math.max(1, Math.floor(this.drawnWidth * this.scale));
    this.room = this.roomPx();
    this.arranged = arrange(this.sorted, width, Math.floor(this.room * this.scale), this.scale);
    this.arranged.height = Math.max(1, this.arranged.height);
    this.positionOf = new Int32Array(this.raster.size).fill(-1);
    this.arranged.order.forEach((node, position) => (this.positionOf[node] = position));
    const size = { width: `${width / this.scale}px`, height: `${this.arranged.height / this.scale}px` };
    for (const canvas of [this.canvas, this.labels]) Object.assign(canvas.style, size);
    this.painter.begin(this.arranged, this.out, this.palette);
  }

  // What is left of the screen below the map's head; where that is little, a part of the screen.
  roomPx() {
    const top = this.place.getBoundingClientRect().top + window.scrollY;
    const least = Math.max(LEAST_HEIGHT_PX, window.innerHeight * SHARE_OF_A_SMALL_SCREEN * (window.innerWidth < 1000));
    return Math.max(least, window.innerHeight - top - 10);
  }

  // What stands above each group; its faults do not wait until the nodes stand in their new order.
  label() {
    this.isFaultMoved = false;
    countFaults(this.sorted.groups, this.raster);
    writeLabels(this.labels, { ...this.arranged, height: this.canvas.height }, this.palette, this.scale, titlesOf);
  }

  paintSoon() {
    this.painting ??= requestAnimationFrame(() => {
      this.painting = null;
      const positions = [...this.dirty].map((node) => this.positionOf[node]).filter((position) => position >= 0);
      this.dirty.clear();
      this.paint(positions);
      if (this.isFaultMoved) this.label();
    });
  }

  paint(positions, isWhole = false) {
    const { order } = this.arranged;
    for (const position of positions) this.painter.node(this.raster, this.out, order[position], position, this.isFaint);
    this.painter.show(positions, isWhole);
    this.legend.show(this.out, this.choice.only);
    this.place.dataset.drawn = order.length;
    performance.mark("map-painted");
  }

  // What the picture does not say by itself.
  tell() {
    const state = !this.raster ? (this.failedAt ? "error" : "loading") : !this.raster.size ? "empty" : !this.arranged ? "loading" : !this.arranged.order.length ? "no-match" : "drawn";
    if (this.place.dataset.state !== state) this.place.dataset.state = state;
    const words = [...this.sentences(state)].join(" ");
    if (this.note.firstChild.textContent !== words) this.note.firstChild.textContent = words;
    this.note.querySelector("button").hidden = !(this.choice.only.size || this.choice.faults);
    this.note.hidden = !words;
  }

  *sentences(state) {
    if (this.failedAt) yield `The map was not fetched since ${clock(this.failedAt)} UTC (${this.reason}). The page tries again every ${AFTER_AN_ERROR_MS / 1000} s.`;
    if (state === "loading" && this.isSlow) yield "Still loading: waiting for the server.";
    if (state === "empty") yield "No known node with GPUs.";
    if (!this.raster?.size || !this.arranged) return;
    yield* this.measure.sentences(this.choice.colour.title);
    const shown = this.arranged.order.length, size = this.raster.size;
    if (shown < size) yield `${shown.toLocaleString("en")} of ${count(size, "node")} ${shown === 1 ? "is" : "are"} shown.`;
    if (!this.arranged.isGpus && shown) yield `A cell is a node: one for each of ${count(this.raster.gpus.length, "GPU")} does not fit here.`;
    if (!this.arranged.fits && shown) yield "The nodes do not fit on one screen: scroll down.";
    const unseen = this.raster.clusters.filter((cluster) => cluster.nodes && !cluster.is_seen).length;
    if (unseen) yield `Hatched: ${count(unseen, "cluster")} not seen now, as ${unseen === 1 ? "it was" : "they were"} last.`;
  }
}

async function fetchIndex(place) {
  const response = await answered(fetch(place.dataset.index, { redirect: "manual" }));
  return new Index(await response.json());
}

for (const panel of document.querySelectorAll("#map-panel")) {
  const map = new FleetMap(panel);
  map.load();
  setTimeout(() => {
    map.isSlow = true;
    map.tell();
  }, STILL_LOADING_MS);
  setInterval(() => document.hidden || map.lookAgain(), LOOK_AGAIN_MS);
  document.addEventListener("live:changed", ({ detail }) => map.measure.receive(detail.topic) || (detail.topic.startsWith("cluster-") && map.receive(detail)));
  document.addEventListener("live:gap", ({ detail }) => map.measure.receive(detail.topic) || map.loadSoon());
  document.addEventListener("live:last-seen", ({ detail }) => map.lastSeen(detail));
  document.addEventListener("live:poll", () => {
    map.measure.forget();
    map.loadSoon();
  });
  document.addEventListener("visibilitychange", () => document.hidden || map.loadSoon(0));
  document.addEventListener("theme:changed", () => map.redraw());
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(query).addEventListener("change", () => map.redraw());
  // The table's filter writes the URL, too, and knows nothing of the map.
  document.addEventListener("htmx:pushedIntoHistory", () => writeChoice(map.choice));
  window.addEventListener("popstate", () => map.choose(readChoice()));
  window.addEventListener("resize", () => map.redraw());
  new ResizeObserver(() => map.place.clientWidth !== map.drawnWidth && map.redraw()).observe(map.place);
  panel.querySelector("[data-map-clear]").addEventListener("click", () => map.clear());
}
