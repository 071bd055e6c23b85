// What the map is coloured by: one entry each. `unit`: whether a node or a GPU falls under one of the `kinds`, which the
// legend counts. `look`: the fore colour, the ground behind it, and a pattern, so that no colour speaks alone.
//
// A metric is one line: a row of COLOURS with `metric(its name in the address, unit, where its steps begin, their looks)`.
import { ALL, AWAY, gpuState, MISSING, NOT_OFFERED, PARTS_AWAY, PARTS_MISSING, SOME, taken } from "./map-raster.js";
import { now } from "./times.js";

const MINUTE_MS = 60000, HOUR_MS = 3600000;
export const NO_DATA = 255; // as health/web/map_metrics.py writes it, and the next two
const NOT_OF_NOW = 254, NOT_EXPORTED = 253;
const FAULTS = 4; // the last state that is one

// The state of a node, as fleet/states/node.py numbers it, the worst first. Two of them are two kinds each: one of which
// a finding is critical, and the same without.
const HEALTH = [
  [0, "upgrade-failed", "upgrade failed", ["bad", "panel", "cross"]],
  [1, "not-ready", "not ready", ["bad", "panel", "full"]],
  [2, "unknown", "not reporting", ["bad", "panel", "ring"]],
  [3, "gpus-missing-critical", "GPUs missing, critical", ["bad", "okFaint", "cross"]],
  [4, "findings-critical", "critical findings", ["bad", "panel", "half"]],
  [3, "gpus-missing-warned", "GPUs missing", ["warn", "panel", "cross"]],
  [4, "findings-warned", "warnings", ["warn", "panel", "full"]],
  [5, "upgrading", "upgrading", ["move", "panel", "stripe"]],
  [6, "reconfiguring", "changing MIG", ["move", "panel", "ring"]],
  [7, "cordoned", "cordoned", ["warn", "panel", "ring"]],
  [8, "held", "held", ["hold", "panel", "full"]],
  [9, "ready", "ready", ["okFaint", "panel", "full"]],
].map(([code, key, title, look]) => ({ code, key, title, look }));
// What a kept address calls both of them.
export const BOTH = { "gpus-missing": ["gpus-missing-critical", "gpus-missing-warned"], "has-findings": ["findings-critical", "findings-warned"] };
const CODES = [...new Set(HEALTH.map(({ code }) => code))].sort((a, b) => a - b);
const WORSE = CODES.map((each) => HEALTH.findIndex(({ code }) => code === each));
const MILDER = CODES.map((each) => HEALTH.findLastIndex(({ code }) => code === each));

// Which of the kinds a node is: the lower, the worse.
export const healthOf = (raster, node) => (raster.isCritical(node) ? WORSE : MILDER)[raster.code(node)];
export const healthTitle = (raster, node) => HEALTH[healthOf(raster, node)].title;
export const isFault = (raster, node) => raster.code(node) <= FAULTS;

// A node that misses some of its GPUs is drawn with those crossed out and the others as they are.
const READY = HEALTH.length - 1, MISSES = 3, LOST = HEALTH.length;
const LOST_LOOK = ["bad", "panel", "cross"];

function healthOfGpu(kind, byte) {
  const state = gpuState(byte);
  if (state === MISSING || state === PARTS_MISSING) return LOST;
  return HEALTH[kind].code === MISSES ? READY : kind;
}

const ALLOCATION = [
  ["allocated", "allocated", ["allocated", "panel", "full"]],
  ["partly", "slices or shares partly allocated", ["allocated", "allocatedFaint", "half"]],
  ["free", "free", ["allocatedFaint", "panel", "full"]],
  ["missing", "missing", ["bad", "panel", "cross"]],
  ["parts-missing", "slices or shares missing", ["bad", "allocatedFaint", "half"]],
  ["away", "away: MIG changing", ["move", "panel", "ring"]],
  ["not-offered", "not offered", ["idle", "panel", "ring"]],
  ["no-pods", "no data of pods", ["idle", "panel", "stripe"]],
].map(([key, title, look]) => ({ key, title, look }));
const [ALLOCATED, PARTLY, FREE, IS_MISSING, IS_PARTS_MISSING, IS_AWAY, IS_NOT_OFFERED, NO_PODS] = ALLOCATION.keys();

function allocation(raster, node, byte) {
  const state = gpuState(byte);
  if (state === MISSING) return IS_MISSING;
  if (state === AWAY || state === PARTS_AWAY) return IS_AWAY;
  if (state === PARTS_MISSING) return IS_PARTS_MISSING;
  if (state === NOT_OFFERED) return IS_NOT_OFFERED;
  if (!raster.knowsPods(node)) return NO_PODS;
  return taken(byte) === ALL ? ALLOCATED : taken(byte) === SOME ? PARTLY : FREE;
}

const AGES = [
  ["live", "live", ["okFaint", "panel", "full"]],
  ["minutes", "up to 5 min old", ["warn", "panel", "stripe"]],
  ["hour", "up to 1 h old", ["warn", "panel", "full"]],
  ["old", "older", ["bad", "panel", "cross"]],
  ["never", "never observed", ["idle", "panel", "ring"]],
].map(([key, title, look]) => ({ key, title, look }));

function age(raster, node) {
  const { is_seen: isSeen, last_seen_at: lastSeenAt } = raster.clusterOf[node];
  if (isSeen) return 0;
  if (!lastSeenAt) return 4;
  const old = now() - Date.parse(lastSeenAt);
  return old <= 5 * MINUTE_MS ? 1 : old <= HOUR_MS ? 2 : 3;
}

// Colours that are told apart by who sees no red or no green; after as many, the same with another pattern.
const APART = ["apart1", "apart2", "apart3", "apart4", "apart5", "apart6"], PATTERNS = ["full", "stripe", "ring", "half", "cross"];

function versions({ by }) {
  const sorted = by.driver_version.values.filter(Boolean).sort((a, b) => b.localeCompare(a, "en", { numeric: true }));
  const looks = sorted.map((version, at) => ({
    key: version, title: version, look: [APART[at % APART.length], "panel", PATTERNS[Math.floor(at / APART.length) % PATTERNS.length]],
  }));
  return [...looks, { key: "no-label", title: "no label", look: ["idle", "panel", "ring"] }];
}

const WITHOUT = [NOT_OF_NOW, NOT_EXPORTED, NO_DATA]; // in the order of their kinds

// A metric is fetched as a byte for each GPU, in the order of the raster. `bounds`: where each step but the first begins.
export function metric(name, unit, bounds, looks) {
  const { length } = bounds;
  const titles = [`below ${bounds[0]} ${unit}`, ...bounds.slice(1).map((end, at) => `${bounds[at]}–${end} ${unit}`), `${bounds[length - 1]} ${unit} and more`];
  const kinds = titles.map((title, at) => ({ key: `${at}`, title, look: [looks[at], "panel", "full"] }));
  kinds.push({ key: "not-of-now", title: "not of now", look: ["idle", "panel", "ring"] });
  kinds.push({ key: "not-exported", title: "not exported", look: ["idle", "panel", "half"] });
  kinds.push({ key: "no-data", title: "no data", look: ["idle", "panel", "stripe"] });
  const of = (raster, node, byte, at) => {
    const value = raster.metrics[name]?.[at] ?? NO_DATA;
    if (value >= NOT_EXPORTED) return length + 1 + WITHOUT.indexOf(value);
    const step = bounds.findIndex((end) => value < end);
    return step < 0 ? length : step;
  };
  return { metric: name, unit: "GPU", kinds: () => kinds, of };
}

const WARMER = ["heat1", "heat2", "heat3", "heat4", "heat5"], BUSIER = ["busy1", "busy2", "busy3", "busy4", "busy5"];

export const COLOURS = [
  { key: "health", title: "health", unit: "node", kinds: () => HEALTH, of: healthOf, cell: healthOfGpu },
  { key: "allocation", title: "allocation", unit: "GPU", kinds: () => ALLOCATION, of: allocation },
  {
    key: "driver", title: "driver version", unit: "node", kinds: versions,
    of: (raster, node, byte, at, index, kinds) => kinds.findIndex(({ key }) => key === (index.value("driver_version", node) || "no-label")),
  },
  { key: "temperature", title: "temperature", ...metric("temperature", "°C", [40, 60, 75, 83], WARMER) },
  { key: "utilisation", title: "utilisation", ...metric("utilisation", "%", [2, 25, 50, 75], BUSIER) },
  { key: "age", title: "age of the data", unit: "node", kinds: () => AGES, of: age },
];

// Which of the kinds each node or GPU falls under, how many of each there are, and which of the looks each GPU is drawn in.
export function sortOut(colour, raster, index) {
  const kinds = colour.kinds(index);
  const ofNode = new Uint8Array(raster.size), ofGpu = new Uint8Array(raster.gpus.length);
  const looks = [...kinds.map(({ look }) => look), LOST_LOOK];
  const out = { colour, kinds, looks, ofNode, ofGpu, counts: Array(kinds.length).fill(0) };
  for (let node = 0; node < raster.size; node += 1) sortOne(out, raster, index, node, 1);
  return out;
}

// One node anew: its old kinds are taken from the counts before it changes, its new ones added after.
export function sortOne(out, raster, index, node, sign) {
  const { colour, kinds, ofNode, ofGpu, counts } = out;
  const byNode = colour.unit === "node";
  if (sign > 0 && byNode) ofNode[node] = colour.of(raster, node, 0, 0, index, kinds);
  if (byNode) counts[ofNode[node]] += sign;
  for (let at = raster.starts[node]; at < raster.starts[node + 1]; at += 1) {
    if (sign > 0) {
      const own = byNode ? ofNode[node] : colour.of(raster, node, raster.gpus[at], at, index, kinds);
      ofGpu[at] = colour.cell ? colour.cell(own, raster.gpus[at]) : own;
    }
    if (!byNode) counts[ofGpu[at]] += sign;
  }
}
