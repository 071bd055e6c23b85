// The map: one canvas, one cell per GPU, a block per node, framed by pool. The nodes table is its twin for the keyboard.
const READY = 0, UNKNOWN = 1, NOT_READY = 2, FAILED = 3, UPGRADING = 5, CORDONED = 6, RECONFIGURING = 8;
const WORDS = ["ready", "not reporting", "not ready", "upgrade failed", "GPUs missing", "upgrading", "cordoned", "held", "changing MIG"];
const TITLE_PX = 20, GROUP_GAP_PX = 18;

class FleetMap {
  constructor(place) {
    this.place = place;
    this.canvas = place.querySelector("canvas");
    this.tip = place.querySelector(".map-tip");
    this.groups = [];
    this.boxes = []; // what is where: [x, y, width, height, node]
    this.etag = "";
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

  // A change is drawn at once where its message told it; the numbers follow with the next fetch.
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
      move: of("--move"), hold: of("--hold"), warn: of("--warn"), idle: of("--idle"), line: of("--line-strong"), ink: of("--ink-2"), faint: of("--ink-3"), panel: of("--panel"),
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
    for (const box of this.boxes) drawNode(pen, box, cell, colours);
  }

  // Blocks fill rows from the left; a pool begins a new row.
  arrange(width, cell) {
    const titles = [];
    this.boxes = [];
    let y = 0;
    for (const group of this.groups) {
      titles.push({ title: `${group.title}  ·  ${group.nodes.length} nodes`, x: 0, y });
      y += TITLE_PX;
      const columns = Math.max(1, ...group.nodes.map((node) => columnsOf(node)));
      const rows = Math.max(1, ...group.nodes.map((node) => Math.ceil(Math.max(node[5], 1) / columns)));
      const w = columns * (cell + 1) + 5, h = rows * (cell + 1) + 5;
      const perRow = Math.max(1, Math.floor((width + 4) / (w + 4)));
      group.nodes.forEach((node, index) => {
        this.boxes.push([(index % perRow) * (w + 4), y + Math.floor(index / perRow) * (h + 4), w, h, node, columns]);
      });
      y += Math.ceil(group.nodes.length / perRow) * (h + 4) + GROUP_GAP_PX;
    }
    return { titles, height: Math.max(60, y - GROUP_GAP_PX + 4) };
  }

  at(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    const x = event.clientX - left, y = event.clientY - top;
    return this.boxes.find(([bx, by, w, h]) => x >= bx && x <= bx + w && y >= by && y <= by + h);
  }

  hover(event) {
    const box = this.at(event);
    this.tip.hidden = !box;
    if (!box) return;
    const [, name, code, taken, allocatable, expected, isHeld, isSeen, partsTaken, parts] = box[4];
    const missing = Math.max(0, expected - allocatable);
    const words = [name, isSeen ? WORDS[code] : "not seen"];
    if (expected || !parts) words.push(`${taken} of ${allocatable} GPUs allocated`);
    if (parts) words.push(`${partsTaken} of ${parts} slices and shares allocated`);
    if (missing) words.push(`${missing} of ${expected} ${code === RECONFIGURING ? "away" : "missing"}`);
    if (isHeld) words.push("held");
    this.tip.textContent = words.join("\n");
    const right = Math.min(box[0] + box[2] + 18, this.place.clientWidth - this.tip.offsetWidth - 8);
    this.tip.style.left = `${Math.max(0, right)}px`;
    this.tip.style.top = `${box[1] + box[3] + 14}px`;
  }
}

const columnsOf = (node) => (node[5] > 4 ? 4 : Math.max(1, node[5]));

function drawNode(pen, [x, y, w, h, node, columns], cell, colours) {
  const [, , code, taken, allocatable, expected, isHeld, isSeen, partsTaken, parts] = node;
  const isChanging = code === UPGRADING || code === RECONFIGURING;
  const isBad = code === NOT_READY || code === FAILED || code === UNKNOWN;
  pen.globalAlpha = isSeen ? 1 : 0.35;
  for (let index = 0; index < Math.max(expected, allocatable); index += 1) {
    pen.fillStyle = index < taken ? colours.taken : index < allocatable ? colours.free : code === RECONFIGURING ? colours.idle : colours.missing;
    const cx = x + 3 + (index % columns) * (cell + 1), cy = y + 3 + Math.floor(index / columns) * (cell + 1);
    pen.fillRect(cx, cy, cell, cell);
    if (index >= allocatable && cell > 4 && code !== RECONFIGURING) cross(pen, cx, cy, cell, colours.panel);
  }
  if (parts && !expected) {
    // Slices and shares are no GPUs: one bar, filled as far as they are taken.
    pen.fillStyle = colours.free;
    pen.fillRect(x + 3, y + h / 2 - 2, w - 6, 4);
    pen.fillStyle = colours.taken;
    pen.fillRect(x + 3, y + h / 2 - 2, ((w - 6) * Math.min(partsTaken, parts)) / parts, 4);
  }
  pen.globalAlpha = 1;
  if (!isSeen) hatch(pen, x, y, w, h, colours.idle);
  const edge = isBad ? colours.bad : isChanging ? colours.move : code === CORDONED ? colours.warn : "";
  pen.lineWidth = edge ? 2 : 1;
  pen.strokeStyle = edge || colours.line;
  pen.globalAlpha = edge ? 1 : 0.5;
  pen.setLineDash(isChanging ? [4, 2] : []);
  pen.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
  pen.setLineDash([]);
  pen.globalAlpha = 1;
  if (isBad) cross(pen, x, y, Math.min(w, h), colours.bad, w, h);
  if (isHeld) dot(pen, x + w - 2, y + 2, colours);
}

function cross(pen, x, y, size, colour, w = size, h = size) {
  pen.strokeStyle = colour;
  pen.lineWidth = 1.4;
  pen.beginPath();
  pen.moveTo(x + 2, y + 2);
  pen.lineTo(x + w - 2, y + h - 2);
  pen.moveTo(x + w - 2, y + 2);
  pen.lineTo(x + 2, y + h - 2);
  pen.stroke();
}

function hatch(pen, x, y, w, h, colour) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, w, h);
  pen.clip();
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let at = -h; at < w; at += 5) {
    pen.moveTo(x + at, y + h);
    pen.lineTo(x + at + h, y);
  }
  pen.stroke();
  pen.restore();
}

function dot(pen, x, y, colours) {
  pen.beginPath();
  pen.arc(x, y, 3.5, 0, 7);
  pen.fillStyle = colours.hold;
  pen.fill();
  pen.lineWidth = 1.5;
  pen.strokeStyle = colours.panel;
  pen.stroke();
}

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
  new ResizeObserver(() => map.draw()).observe(place);
  map.canvas.addEventListener("mousemove", (event) => map.hover(event));
  map.canvas.addEventListener("mouseleave", () => { map.tip.hidden = true; });
  map.canvas.addEventListener("click", (event) => {
    const box = map.at(event);
    if (box) location.href = `/nodes/${box[4][0]}`;
  });
}
