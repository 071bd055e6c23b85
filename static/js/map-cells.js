// How the map draws a node: a cell for each of its GPUs, and its state around them.
const FAILED = 0, NOT_READY = 1, UNKNOWN = 2, HAS_FINDINGS = 4, UPGRADING = 5, RECONFIGURING = 6, CORDONED = 7;

// Cells of one colour are painted together: to change the colour costs more than to paint one.
export class Cells {
  constructor(colours) {
    this.colours = colours;
    this.seen = {};
    this.unseen = {};
  }

  add(isSeen, colour, x, y, w, h) {
    if (w > 0) ((isSeen ? this.seen : this.unseen)[colour] ??= []).push(x, y, w, h);
  }

  paint(pen) {
    for (const [alpha, layer] of [[1, this.seen], [0.35, this.unseen]]) {
      pen.globalAlpha = alpha;
      for (const [colour, places] of Object.entries(layer)) {
        pen.fillStyle = this.colours[colour];
        for (let at = 0; at < places.length; at += 4) pen.fillRect(places[at], places[at + 1], places[at + 2], places[at + 3]);
      }
    }
    pen.globalAlpha = 1;
  }
}

export function addCells(cells, [x, y, , , node, columns], cell) {
  const [, , code, taken, allocatable, whole, , isSeen, partsTaken, partsAllocatable, parts, others] = node;
  const gone = code === RECONFIGURING ? "idle" : "missing";
  for (let index = 0; index < whole + others; index += 1) {
    const cx = x + 3 + (index % columns) * (cell + 1), cy = y + 3 + Math.floor(index / columns) * (cell + 1);
    if (index < whole) {
      cells.add(isSeen, index >= allocatable ? gone : taken === null ? "line" : index < taken ? "taken" : "free", cx, cy, cell, cell);
      continue;
    }
    const until = (end) => clip((end / parts) * others - (index - whole)) * cell;
    const ends = parts ? [["taken", until(partsTaken ?? 0)], [partsTaken === null ? "line" : "free", until(partsAllocatable)], [gone, until(parts)]] : [["line", cell]];
    addParts(cells, isSeen, cx, cy, (cell - 1) / 2, ends);
  }
}

// A GPU that is cut or shared: two bars, filled as far as the node's slices and shares are taken, red where they are missing.
function addParts(cells, isSeen, x, y, bar, ends) {
  let from = 0;
  for (const [colour, end] of ends) {
    cells.add(isSeen, colour, x + from, y, end - from, bar);
    cells.add(isSeen, colour, x + from, y + bar + 1, end - from, bar);
    from = Math.max(from, end);
  }
}

const clip = (share) => Math.max(0, Math.min(1, share));

// What is around the cells of a node, and over them.
export function drawState(pen, [x, y, w, h, node, columns], cell, colours) {
  const [, , code, , allocatable, whole, isHeld, isSeen] = node;
  const isChanging = code === UPGRADING || code === RECONFIGURING;
  const isBad = code === NOT_READY || code === FAILED || code === UNKNOWN;
  for (let index = allocatable; cell > 4 && code !== RECONFIGURING && index < whole; index += 1) {
    cross(pen, x + 3 + (index % columns) * (cell + 1), y + 3 + Math.floor(index / columns) * (cell + 1), cell, colours.panel);
  }
  if (!isSeen) hatch(pen, x, y, w, h, colours.idle);
  const edge = isBad ? colours.bad : isChanging ? colours.move : code === CORDONED || code === HAS_FINDINGS ? colours.warn : "";
  if (edge) {
    pen.lineWidth = 2;
    pen.strokeStyle = edge;
    pen.setLineDash(isChanging ? [4, 2] : []);
    pen.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
    pen.setLineDash([]);
  }
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
