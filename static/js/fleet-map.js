// The map: one canvas, one cell per GPU, a block per node, framed by pool, the worst first. Arrow keys walk it.
import { addCells, Cells, drawState } from "./map-cells.js";
import { describe } from "./map-words.js";

const TITLE_PX = 20, GROUP_GAP_PX = 18, BESIDE = 1e6;

class FleetMap {
  constructor(place) {
    this.place = place;
    this.canvas = place.querySelector("canvas");
    this.tip = place.querySelector(".map-tip");
    this.frame = place.querySelector(".map-frame");
    this.said = place.querySelector("[aria-live]");
    this.groups = [];
    this.boxes = []; // what is where: [x, y, width, height, node, columns, group]
    this.etag = "";
    this.chosen = null; // the id of the node that the keyboard is on
  }

  async load() {
    this.isDue = false;
    const headers = this.etag ? { "If-None-Match": this.etag } : {};
    const response = await fetch(this.place.dataset.map, { headers, redirect: "manual" });
    if (response.status === 304 || !response.ok) return;
    this.etag = response.headers.get("ETag") || "";
    this.groups = (await response.json()).groups;
    this.draw();
  }

  // A change is drawn at once where its message told it; the numbers and the order follow with the next fetch.
  apply({ nodes }) {
    const codes = new Map((nodes || []).map(([id, code]) => [id, code]));
    for (const group of this.groups) for (const node of group.nodes) if (codes.has(node[0])) node[2] = codes.get(node[0]);
    requestAnimationFrame(() => this.draw());
    this.loadSoon();
  }

  loadSoon() {
    if (this.isDue) return;
    this.isDue = true;
    setTimeout(() => this.load(), 1500 + Math.random() * 500);
  }

  colours() {
    const style = getComputedStyle(this.canvas);
    const of = (name) => style.getPropertyValue(name).trim();
    return {
      taken: of("--accent"), free: mix(of("--accent"), of("--panel"), 0.28), missing: of("--bad"), bad: of("--bad"),
      move: of("--move"), hold: of("--hold"), warn: of("--warn"), idle: of("--idle"), line: of("--line-strong"), ink: of("--ink-2"), panel: of("--panel"),
    };
  }

  draw() {
    const width = this.canvas.clientWidth;
    const count = this.groups.reduce((sum, group) => sum + group.nodes.length, 0);
    const cell = count <= 100 ? 9 : count <= 600 ? 6 : 4;
    const layout = this.arrange(width, cell);
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = width * scale;
    this.canvas.height = layout.height * scale;
    this.canvas.style.height = `${layout.height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    const colours = this.colours();
    pen.font = `500 12px ${getComputedStyle(document.body).fontFamily}`;
    pen.textBaseline = "top";
    for (const { title, x, y } of layout.titles) {
      pen.fillStyle = colours.ink;
      pen.fillText(title, x, y);
    }
    const cells = new Cells(colours);
    for (const box of this.boxes) addCells(cells, box, cell);
    cells.paint(pen);
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    pen.globalAlpha = 0.5;
    for (const [x, y, w, h] of this.boxes) pen.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
    pen.globalAlpha = 1;
    for (const box of this.boxes) drawState(pen, box, cell, colours);
    this.showChosen();
    this.place.dataset.drawn = this.boxes.length;
  }

  // Over the canvas, which would have to be drawn again for every step.
  showChosen() {
    const box = this.isFocused() && this.chosenBox();
    this.frame.hidden = !box;
    if (!box) return;
    const { offsetLeft, offsetTop } = this.canvas;
    const [x, y, w, h] = box;
    Object.assign(this.frame.style, { left: `${offsetLeft + x - 3}px`, top: `${offsetTop + y - 3}px`, width: `${w + 6}px`, height: `${h + 6}px` });
  }

  // Blocks fill rows from the left; a pool begins a new row.
  arrange(width, cell) {
    const titles = [];
    this.boxes = [];
    let y = 0;
    for (const group of this.groups) {
      const number = group.nodes.length;
      titles.push({ title: `${group.title}  ·  ${number} node${number === 1 ? "" : "s"}`, x: 3, y });
      y += TITLE_PX;
      const columns = Math.max(1, ...group.nodes.map(columnsOf));
      const rows = Math.max(1, ...group.nodes.map((node) => Math.ceil(cellsOf(node) / columns)));
      const w = columns * (cell + 1) + 5, h = rows * (cell + 1) + 5;
      const perRow = Math.max(1, Math.floor((width - 2) / (w + 4)));
      group.nodes.forEach((node, index) => {
        this.boxes.push([3 + (index % perRow) * (w + 4), y + Math.floor(index / perRow) * (h + 4), w, h, node, columns, group.title]);
      });
      y += Math.ceil(number / perRow) * (h + 4) + GROUP_GAP_PX;
    }
    return { titles, height: Math.max(60, y - GROUP_GAP_PX + 4) };
  }

  isFocused() {
    return document.activeElement === this.place;
  }

  chosenBox() {
    return this.boxes.find((box) => box[4][0] === this.chosen);
  }

  at(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    const x = event.clientX - left, y = event.clientY - top;
    return this.boxes.find(([bx, by, w, h]) => x >= bx && x <= bx + w && y >= by && y <= by + h);
  }

  showTip(box) {
    this.tip.hidden = !box;
    if (!box) return;
    this.tip.textContent = describe(box[4]).join("\n");
    const right = Math.min(box[0] + box[2] + 18, this.place.clientWidth - this.tip.offsetWidth - 8);
    this.tip.style.left = `${Math.max(0, right)}px`;
    this.tip.style.top = `${box[1] + box[3] + 14}px`;
  }

  choose(box) {
    if (!box) return;
    this.chosen = box[4][0];
    this.showChosen();
    this.showTip(box);
    const index = this.boxes.indexOf(box) + 1;
    this.said.textContent = [...describe(box[4]), box[6], `${index} of ${this.boxes.length}`].join(", ");
    const top = this.canvas.getBoundingClientRect().top + box[1];
    if (top < 0 || top + box[3] > window.innerHeight) window.scrollBy({ top: top - window.innerHeight / 2 });
  }

  press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const box = this.chosenBox() ?? this.boxes[0];
    if (!box) return;
    if (event.key === "Enter") return void (location.href = hrefOf(box));
    if (event.key === "Escape") return this.showTip(null);
    const next = this.nextOf(box, event.key);
    if (!next) return;
    event.preventDefault();
    this.choose(next);
  }

  nextOf(box, key) {
    const index = this.boxes.indexOf(box), last = this.boxes.length - 1;
    const found = { ArrowRight: Math.min(last, index + 1), ArrowLeft: Math.max(0, index - 1), Home: 0, End: last }[key];
    if (found !== undefined) return this.boxes[found];
    if (key === "ArrowDown") return this.nearest(box, 1);
    return key === "ArrowUp" ? this.nearest(box, -1) : undefined;
  }

  // In the next row of blocks, the one most straight below or above; at the edge it stays where it is.
  nearest(box, way) {
    const away = ([x, y]) => (y - box[1]) * way * BESIDE + Math.abs(x - box[0]);
    const rows = this.boxes.filter((each) => (each[1] - box[1]) * way > 0);
    return rows.reduce((best, each) => (away(each) < away(best) ? each : best), rows[0]) ?? box;
  }
}

const cellsOf = (node) => Math.max(1, node[5] + node[11]);
const columnsOf = (node) => Math.min(4, cellsOf(node));
const hrefOf = (box) => `/nodes/${box[4][0]}`;

function mix(one, other, share) {
  const read = (hex) => [1, 3, 5].map((at) => Number.parseInt((hex.length === 4 ? hex.replace(/[^#]/g, "$&$&") : hex).slice(at, at + 2), 16));
  const [a, b] = [read(one), read(other)];
  return `rgb(${a.map((value, at) => Math.round(value * share + b[at] * (1 - share))).join(" ")})`;
}

for (const place of document.querySelectorAll("[data-map]")) {
  const map = new FleetMap(place);
  map.load();
  document.addEventListener("live:changed", ({ detail }) => detail.topic.startsWith("cluster-") && map.apply(detail));
  document.addEventListener("live:gap", () => map.loadSoon());
  document.addEventListener("live:poll", () => map.loadSoon());
  document.addEventListener("theme:changed", () => map.draw());
  new ResizeObserver(() => map.draw()).observe(map.canvas.parentElement);
  map.canvas.addEventListener("mousemove", (event) => map.showTip(map.at(event)));
  map.canvas.addEventListener("mouseleave", () => map.showTip(null));
  map.canvas.addEventListener("click", (event) => {
    const box = map.at(event);
    if (box) location.href = hrefOf(box);
  });
  place.addEventListener("keydown", (event) => map.press(event));
  place.addEventListener("focus", () => place.matches(":focus-visible") && map.choose(map.chosenBox() ?? map.boxes[0]));
  place.addEventListener("blur", () => {
    map.showTip(null);
    map.showChosen();
  });
}
