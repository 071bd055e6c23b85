// Where each node stands: in groups with a border and a label, in the largest cells that fit. Nothing here is drawn, and
// everything is in the screen's own pixels.
import { healthOf, isFault } from "./map-colours.js";

const KINDS = 16; // of health, and room for more
// The largest cell for so many nodes: a small fleet fills the width, too.
const CELL_PX = [[48, 28], [100, 20], [200, 12], [400, 8], [600, 6], [Infinity, 5]];
const LARGE_PX = 9, LARGE_HEIGHT_PX = 240; // larger cells than that may not push the rest of the page down
const FILLED = 0.88; // of the width: such a place is as good as a fuller one
const LEAST_CELL_PX = 2, LEAST_NODE_PX = 3, MOST_NODE_PX = 12;
const LABEL_PX = 14, PAD_PX = 3, GAP_PX = 5, FINE_PX = 5;
const LETTER_PX = 6.3, COUNTS_LETTERS = 24, LEAST_GROUP_PX = 72;
const FULL_ROWS = 3; // a group of as many rows has them for itself; smaller ones stand side by side
const SHELVES = [4, 2, 3, 6, 8, 12]; // how many rows of nodes those may have

export const GROUPS = [
  { key: "pool", title: "pool", none: "in no pool" },
  { key: "cluster", title: "cluster", none: "" },
  { key: "zone", title: "zone", none: "no zone" },
  { key: "nvlink_domain", title: "NVLink domain", none: "no NVLink domain" },
  { key: "gpu_product", title: "model", none: "no model" },
  { key: "driver_version", title: "driver", none: "no driver label" },
];
export const ORDERS = [
  { key: "worst", title: "worst first" },
  { key: "physical", title: "physical order" },
];

// The groups that are shown, each with its nodes in their order; `order` has them all in one row.
export function sortNodes(raster, index, { group, order, shows }) {
  const { values, at } = index.by[group.key];
  const buckets = new Map(); // value -> health or 0 -> nodes, as they stand in the racks
  for (const node of index.physical) {
    if (!shows(node)) continue;
    if (!buckets.has(at[node])) buckets.set(at[node], Array.from({ length: KINDS }, () => []));
    buckets.get(at[node])[order.key === "worst" ? healthOf(raster, node) : 0].push(node);
  }
  const groups = [...buckets].map(([value, kinds]) => ({
    title: values[value] || group.none,
    worst: kinds.findIndex((nodes) => nodes.length),
    nodes: kinds.flat(),
  }));
  countFaults(groups, raster);
  groups.sort((a, b) => (order.key === "worst" && a.worst - b.worst) || a.title.localeCompare(b.title, "en", { numeric: true }));
  let start = 0;
  for (const each of groups) {
    each.start = start;
    each.columns = Math.min(4, each.nodes.reduce((most, node) => Math.max(most, raster.sizes[node]), 1));
    each.rows = Math.ceil(each.nodes.reduce((most, node) => Math.max(most, raster.sizes[node]), 1) / each.columns);
    start += each.nodes.length;
  }
  return { groups, order: Uint32Array.from(groups.flatMap(({ nodes }) => nodes)) };
}

export function countFaults(groups, raster) {
  for (const group of groups) group.faults = group.nodes.filter((node) => isFault(raster, node)).length;
}

// The largest cells with which all groups fit into width × height: a cell a GPU, or else a cell a node.
export function arrange({ groups, order }, width, height, scale) {
  const px = (size) => Math.max(1, Math.round(size * scale));
  const largest = CELL_PX.find(([nodes]) => order.length <= nodes)[1];
  let smallest, widest;
  for (const isGpus of [true, false]) {
    const [most, least] = isGpus ? [largest, LEAST_CELL_PX] : [MOST_NODE_PX, LEAST_NODE_PX];
    let before = 0;
    for (let size = most; size >= least; size -= 0.5) {
      const cell = px(size), gap = px(1);
      if (cell === before) continue;
      before = cell;
      const isLarge = isGpus && size > LARGE_PX;
      if (widest && !isLarge) return widest;
      const tall = isLarge ? Math.min(height, px(LARGE_HEIGHT_PX)) : height;
      for (const isRoomy of [true, false]) {
        for (const shelf of SHELVES) {
          smallest = { ...place(groups, { isGpus, cell, gap, shelf, isRoomy, width, px }), order, isGpus, cell, gap, width };
          if (smallest.height > tall) continue;
          const found = { ...smallest, fits: true };
          if (found.filled >= FILLED * width || !isLarge) return found;
          if (!widest || found.filled > widest.filled) widest = found;
        }
      }
    }
  }
  return widest ?? { ...smallest, fits: false };
}

function place(groups, { isGpus, cell, gap, shelf, isRoomy, width, px }) {
  const pad = px(PAD_PX), label = px(LABEL_PX), between = px(GAP_PX);
  const boxes = [];
  let x = 0, y = 0, low = 0;
  const newShelf = () => {
    if (low) y += low + between;
    x = low = 0;
  };
  for (const group of groups) {
    const w = isGpus ? group.columns * (cell + gap) - gap : cell;
    const h = isGpus ? group.rows * (cell + gap) - gap : cell;
    const space = !isGpus ? gap : cell > px(FINE_PX) ? 4 * gap : 2 * gap; // between two nodes: room for what is around each
    const number = group.nodes.length;
    const most = Math.max(1, Math.floor((width - 2 * pad) / (w + space)));
    const isWide = number > FULL_ROWS * most;
    const columns = isWide ? most : Math.min(most, Math.ceil(number / shelf));
    const lines = Math.ceil(number / columns);
    const words = isRoomy ? LETTER_PX * (group.title.length + COUNTS_LETTERS) : LEAST_GROUP_PX;
    const needed = Math.max(columns * (w + space) + 2 * pad, Math.min(width, px(words)));
    const wide = isWide ? width : needed;
    if (isWide || x + wide > width) newShelf();
    const tall = label + lines * (h + space) + pad;
    boxes.push({ group, x, y, width: wide, height: tall, left: x + pad + gap, top: y + label + gap, w, h, space, columns, lines });
    x += wide + between;
    low = Math.max(low, tall);
    if (isWide) newShelf();
  }
  return { boxes, height: y + low + 1, filled: boxes.reduce((most, each) => Math.max(most, each.x + each.width), 0) };
}

// The box that a place in the order is in.
export function boxOf(boxes, position) {
  let low = 0, high = boxes.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (boxes[middle].group.start <= position) low = middle;
    else high = middle - 1;
  }
  return boxes[low];
}

export function placeOf(boxes, position) {
  const box = boxOf(boxes, position), at = position - box.group.start;
  return {
    box,
    x: box.left + (at % box.columns) * (box.w + box.space),
    y: box.top + Math.floor(at / box.columns) * (box.h + box.space),
  };
}

// What is at a point: a place in the order, or -1.
export function positionAt(boxes, x, y) {
  const box = boxes.find((each) => x >= each.x && x < each.x + each.width && y >= each.y && y < each.y + each.height);
  if (!box) return -1;
  const column = Math.floor((x - box.left) / (box.w + box.space)), line = Math.floor((y - box.top) / (box.h + box.space));
  const at = line * box.columns + column;
  return column >= 0 && column < box.columns && line >= 0 && at < box.group.nodes.length ? box.group.start + at : -1;
}

// The places in the order whose nodes touch an area.
export function positionsIn(boxes, left, top, right, bottom) {
  const found = [];
  for (const { group, left: x, top: y, w, h, space, columns, lines } of boxes) {
    const first = Math.max(0, Math.ceil((left - x - w) / (w + space))), last = Math.min(columns - 1, Math.floor((right - x) / (w + space)));
    const high = Math.max(0, Math.ceil((top - y - h) / (h + space))), low = Math.min(lines - 1, Math.floor((bottom - y) / (h + space)));
    for (let line = high; line <= low; line += 1) {
      for (let at = line * columns + first; at <= line * columns + last && at < group.nodes.length; at += 1) found.push(group.start + at);
    }
  }
  return found;
}

// One line up or down in its group; from its edge into the group above or below that is most straight there.
export function nextLine(boxes, position, way) {
  const { box, x, y } = placeOf(boxes, position);
  const at = position - box.group.start, next = at + way * box.columns;
  const lines = Math.floor(at / box.columns) + way;
  if (lines >= 0 && lines < box.lines) return box.group.start + Math.min(next, box.group.nodes.length - 1);
  const away = (each) => Math.abs(each.y - box.y) * 4 + Math.max(0, each.x - x, x - each.x - each.width);
  const beyond = boxes.filter((each) => (each.y - box.y) * way > 0);
  if (!beyond.length) return position;
  const into = beyond.reduce((best, each) => (away(each) < away(best) ? each : best));
  const column = Math.max(0, Math.min(into.columns - 1, Math.round((x - into.left) / (into.w + into.space))));
  const line = way > 0 ? 0 : into.lines - 1;
  return into.group.start + Math.min(line * into.columns + column, into.group.nodes.length - 1);
}
