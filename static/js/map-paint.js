// The map's pixels. Cells are written into one image by a palette and put on the canvas at once; labels lie over it on a
// canvas of their own.
import { placeOf } from "./map-arrange.js";

const UNKNOWN = 2, MISSES = 3, HAS_FINDINGS = 4, UPGRADING = 5, RECONFIGURING = 6, CORDONED = 7;
const HATCH = 6, DASH = 3, MOST_ONE_BY_ONE = 200;
const FAINT = 0.22, UNSEEN = 0.4;

const MIXED = {
  allocatedFaint: ["allocated", 0.3], okFaint: ["ok", 0.42],
  heat1: ["ink", 0.12], heat2: ["ink", 0.32], heat3: ["ink", 0.55], heat4: ["warn", 0.8], heat5: ["bad", 1],
  busy1: ["ink", 0.12], busy2: ["ok", 0.25], busy3: ["ok", 0.5], busy4: ["ok", 0.75], busy5: ["ok", 1],
};
const NAMES = ["allocated", "ok", "warn", "bad", "move", "hold", "idle", "ink", "panel", "line", "apart1", "apart2", "apart3", "apart4", "apart5", "apart6"];

// The page's own colours as it shows them now: light, dark, or those that the system forces.
export function paletteOf(element) {
  const probe = element.appendChild(document.createElement("i"));
  const of = {};
  for (const name of NAMES) {
    probe.style.color = `var(--${name === "ink" ? "ink-2" : name === "line" ? "line-strong" : name})`;
    of[name] = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  }
  probe.remove();
  for (const [name, [base, share]] of Object.entries(MIXED)) of[name] = mix(of[base], of.panel, share);
  return of;
}

const mix = (one, other, share) => one.map((value, at) => Math.round(value * share + other[at] * (1 - share)));
const packed = ([r, g, b]) => (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
export const css = (colour) => `rgb(${colour.join(" ")})`;

// A cell of a look as pixels, row by row.
function tile(look, palette, share, w, h) {
  const [fore, ground, pattern] = look;
  const [a, b] = [fore, ground].map((name) => packed(mix(palette[name], palette.panel, share)));
  const pixels = new Uint32Array(w * h);
  const edge = Math.max(1, Math.floor(Math.min(w, h) / 4));
  const stroke = Math.max(0.5, Math.min(w, h) / 7);
  for (let y = 0; y < h; y += 1) {
    for (let x = 0; x < w; x += 1) pixels[y * w + x] = isInk(pattern, x, y, w, h, edge, stroke) ? a : b;
  }
  return pixels;
}

function isInk(pattern, x, y, w, h, edge, stroke) {
  const across = (x + 0.5) / w, down = (y + 0.5) / h;
  if (pattern === "full") return true;
  if (pattern === "ring") return x < edge || y < edge || x >= w - edge || y >= h - edge;
  if (pattern === "half") return across <= 1 - down;
  if (pattern === "stripe") return Math.floor(y / edge) % 2 === 0;
  return Math.abs(across - down) * w <= stroke || Math.abs(across + down - 1) * w <= stroke; // cross
}

export class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d", { alpha: false });
  }

  // Everything anew, for another size, order, colour or theme.
  begin(arranged, out, palette) {
    const { width, height, cell } = arranged;
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    if (this.image?.width !== width || this.image?.height !== height) {
      this.image = this.pen.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.arranged = arranged;
    this.stride = width;
    this.ground = packed(palette.panel);
    this.edges = Object.fromEntries(["bad", "warn", "move", "hold", "idle", "line"].map((name) => [name, packed(palette[name])]));
    this.tiles = [1, UNSEEN, FAINT].map((share) => out.looks.map((look) => tile(look, palette, share, cell, cell)));
    this.blank = tile(["idle", "panel", "ring"], palette, 1, cell, cell);
    this.pixels.fill(this.ground);
    for (const box of arranged.boxes) this.outline(box.x, box.y + this.half(), box.width, box.height - this.half(), mixedLine(palette));
  }

  half() {
    return Math.round((7 * this.arranged.gap)); // the border runs through the middle of its label
  }

  // A node at its place. `isFaint`: which of the kinds are only hinted at.
  node(raster, out, node, position, isFaint) {
    const { boxes, isGpus, cell, gap } = this.arranged;
    const { box, x, y } = placeOf(boxes, position);
    const isSeen = raster.isSeen(node);
    // Of what is not down, a critical finding fills the gaps between the cells: whatever these are coloured by.
    const isCritical = isGpus && raster.isCritical(node) && raster.code(node) > UNKNOWN;
    this.fill(x - gap, y - gap, box.w + 2 * gap, box.h + 2 * gap, isCritical ? this.edges.bad : this.ground);
    if (isGpus) this.gpus(raster, out, node, box, x, y, isSeen, isFaint);
    else this.put(x, y, cell, raster.sizes[node] || out.colour.unit === "node" ? this.tiles[isSeen ? 0 : 1][worstLook(raster, out, node, isFaint)] : this.blank);
    if (!isSeen) this.hatch(x, y, box.w, box.h);
    this.around(raster, out, node, x, y, box);
  }

  gpus(raster, out, node, box, x, y, isSeen, isFaint) {
    const { cell, gap } = this.arranged, { columns } = box.group;
    const start = raster.starts[node], size = raster.sizes[node];
    if (!size) this.put(x, y, cell, out.colour.unit === "node" ? this.tiles[isSeen ? 0 : 1][out.ofNode[node]] : this.blank);
    for (let at = 0; at < size; at += 1) {
      const look = out.ofGpu[start + at];
      const kind = out.colour.unit === "node" ? out.ofNode[node] : look;
      const tiles = this.tiles[isFaint(kind) ? 2 : isSeen ? 0 : 1];
      this.put(x + (at % columns) * (cell + gap), y + Math.floor(at / columns) * (cell + gap), cell, tiles[look]);
    }
  }

  put(x, y, cell, pixels) {
    for (let row = 0, from = 0, to = y * this.stride + x; row < cell; row += 1, to += this.stride) {
      for (let column = 0; column < cell; column += 1, from += 1) this.pixels[to + column] = pixels[from];
    }
  }

  fill(x, y, w, h, colour) {
    for (let row = y; row < y + h; row += 1) this.pixels.fill(colour, row * this.stride + x, row * this.stride + x + w);
  }

  // What is around a node, whatever it is coloured by.
  around(raster, out, node, x, y, { w, h }) {
    const { gap, isGpus } = this.arranged, code = raster.code(node);
    if (!isGpus && gap < 2) return; // no room
    const isBad = code <= UNKNOWN, isChanging = code === UPGRADING || code === RECONFIGURING;
    const isWarned = code === CORDONED || code === HAS_FINDINGS || code === MISSES;
    const name = isBad || (isWarned && raster.isCritical(node)) ? "bad" : isChanging ? "move" : isWarned ? "warn" : "";
    if (name) this.outline(x - gap, y - gap, w + 2 * gap, h + 2 * gap, this.edges[name], isChanging ? DASH : 0);
    // Over cells of its own colour it is cut out.
    if (isBad) this.cross(x, y, w, h, out.colour.key === "health" && code !== UNKNOWN ? this.ground : this.edges.bad);
    if (raster.isHeld(node)) this.fill(x + w - gap, y - gap, 2 * gap, 2 * gap, this.edges.hold); // within its own room
  }

  outline(x, y, w, h, colour, dash = 0) {
    const dot = (column, row, at) => {
      if (!dash || at % (2 * dash) < dash) this.pixels[row * this.stride + column] = colour;
    };
    for (let at = 0; at < w; at += 1) {
      dot(x + at, y, at);
      dot(x + at, y + h - 1, at);
    }
    for (let at = 0; at < h; at += 1) {
      dot(x, y + at, at);
      dot(x + w - 1, y + at, at);
    }
  }

  cross(x, y, w, h, colour) {
    for (let at = 0; at < w; at += 1) {
      const row = Math.round((at * (h - 1)) / (w - 1 || 1));
      this.pixels[(y + row) * this.stride + x + at] = colour;
      this.pixels[(y + h - 1 - row) * this.stride + x + at] = colour;
    }
  }

  hatch(x, y, w, h) {
    for (let row = y; row < y + h; row += 1) {
      for (let column = x; column < x + w; column += 1) if ((row + column) % HATCH === 0) this.pixels[row * this.stride + column] = this.edges.idle;
    }
  }

  // A few nodes that changed are put one by one: to put the whole image takes longer.
  show(positions, isWhole) {
    if (isWhole || positions.length > MOST_ONE_BY_ONE) return this.pen.putImageData(this.image, 0, 0);
    const { boxes, gap } = this.arranged;
    for (const position of positions) {
      const { box, x, y } = placeOf(boxes, position);
      this.pen.putImageData(this.image, 0, 0, x - gap, y - gap, box.w + 2 * gap, box.h + 2 * gap);
    }
  }
}

const mixedLine = (palette) => packed(mix(palette.line, palette.panel, 0.7));

// One cell for a whole node: what most of its GPUs are, or the first kind that was asked for.
function worstLook(raster, out, node, isFaint) {
  if (out.colour.unit === "node") return out.ofNode[node];
  const counts = new Map();
  for (let at = raster.starts[node]; at < raster.starts[node + 1]; at += 1) {
    if (!isFaint(out.ofGpu[at])) counts.set(out.ofGpu[at], (counts.get(out.ofGpu[at]) ?? 0) + 1);
  }
  return [...counts].reduce((best, each) => (each[1] > best[1] ? each : best), [0, 0])[0];
}

// The titles of the groups, in the gap of their borders.
export function writeLabels(canvas, { boxes, width, height }, palette, scale, size) {
  Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d");
  pen.font = `${12 * scale}px ${getComputedStyle(document.body).fontFamily}`;
  pen.textBaseline = "middle";
  for (const { group, x, y, width: room } of boxes) {
    const words = size(group);
    const text = fitting(pen, words, room - 12 * scale);
    pen.fillStyle = css(palette.panel);
    pen.fillRect(x + 5 * scale, y, pen.measureText(text).width + 4 * scale, 14 * scale);
    pen.fillStyle = css(palette.ink);
    pen.fillText(text, x + 7 * scale, y + 7 * scale);
  }
}

// The longest of several ways to say it that there is room for; the last is cut.
function fitting(pen, ways, room) {
  const found = ways.find((words) => pen.measureText(words).width <= room);
  if (found !== undefined) return found;
  let cut = ways.at(-1);
  while (cut.length > 1 && pen.measureText(`${cut}…`).width > room) cut = cut.slice(0, -1);
  return `${cut}…`;
}

// A sample of a look, for the legend.
export function drawSwatch(canvas, look, palette, scale) {
  const size = Math.round(11 * scale);
  Object.assign(canvas, { width: size, height: size });
  const image = new ImageData(size, size);
  new Uint32Array(image.data.buffer).set(tile(look, palette, 1, size, size));
  canvas.getContext("2d").putImageData(image, 0, 0);
}
