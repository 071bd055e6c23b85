// How the map draws a node: a cell for each of its GPUs, and its state around them.
const UNKNOWN = 1, NOT_READY = 2, FAILED = 3, UPGRADING = 5, CORDONED = 6, RECONFIGURING = 8, HAS_FINDINGS = 9;

export function drawNode(pen, [x, y, w, h, node, columns], cell, colours) {
  const [, , code, taken, allocatable, whole, isHeld, isSeen, partsTaken, partsAllocatable, parts, others] = node;
  const isChanging = code === UPGRADING || code === RECONFIGURING;
  const gone = code === RECONFIGURING ? colours.idle : colours.missing;
  const isBad = code === NOT_READY || code === FAILED || code === UNKNOWN;
  const place = (index) => [x + 3 + (index % columns) * (cell + 1), y + 3 + Math.floor(index / columns) * (cell + 1)];
  pen.globalAlpha = isSeen ? 1 : 0.35;
  for (let index = 0; index < whole; index += 1) {
    pen.fillStyle = index < taken ? colours.taken : index < allocatable ? colours.free : gone;
    pen.fillRect(...place(index), cell, cell);
    if (index >= allocatable && cell > 4 && code !== RECONFIGURING) cross(pen, ...place(index), cell, colours.panel);
  }
  for (let index = 0; index < others; index += 1) {
    const ends = parts ? [partsTaken, partsAllocatable, parts].map((end) => clip((end / parts) * others - index)) : [0, 0, 0];
    drawParts(pen, place(whole + index), cell, ends, { ...colours, missing: gone });
  }
  pen.globalAlpha = 1;
  if (!isSeen) hatch(pen, x, y, w, h, colours.idle);
  const edge = isBad ? colours.bad : isChanging ? colours.move : code === CORDONED || code === HAS_FINDINGS ? colours.warn : "";
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

const clip = (share) => Math.max(0, Math.min(1, share));

// A GPU that is cut or shared: two bars, filled as far as the node's slices and shares are taken, red where they are missing.
function drawParts(pen, [x, y], cell, [taken, allocatable, end], colours) {
  const bar = (cell - 1) / 2;
  const fill = (from, to, colour) => {
    pen.fillStyle = colour;
    for (const top of [y, y + bar + 1]) pen.fillRect(x + from * cell, top, (to - from) * cell, bar);
  };
  if (!end) return fill(0, 1, colours.line);
  fill(0, taken, colours.taken);
  fill(taken, allocatable, colours.free);
  fill(allocatable, end, colours.missing);
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
