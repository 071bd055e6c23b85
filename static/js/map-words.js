// What the map says of a node: in the tip beside it, and to who walks it by keyboard.
import { healthTitle } from "./map-colours.js";
import { ALL, AWAY, gpuState, MISSING, taken, WHOLE } from "./map-raster.js";
import { clock } from "./times.js";

const BY = [["gpu_product", ""], ["driver_version", "driver "], ["zone", "zone "]];

export function describe(raster, index, node) {
  const { is_seen: isSeen, last_seen_at: lastSeenAt } = raster.clusterOf[node];
  const title = healthTitle(raster, node);
  const words = [index.names[node]];
  words.push(isSeen ? title : `${title} when it was last seen${lastSeenAt ? `, at ${clock(lastSeenAt)} UTC` : ""}`);
  const whole = wholeOf(raster, node), others = raster.sizes[node] - whole.expected, parts = raster.parts.get(node);
  if (raster.isCritical(node) && !title.includes("critical")) words.push("critical findings");
  words.push(raster.sizes[node] ? gpus(raster.sizes[node]) : "number of GPUs not known");
  const known = (number) => (raster.knowsPods(node) ? number : "no data"); // of pods that were never read
  if (whole.expected) words.push(`${known(whole.taken)} of ${whole.expected}${others ? " whole" : ""} allocated${missing(whole.missing, title)}`);
  if (parts) words.push(`${known(parts[0])} of ${parts[2]} slices and shares allocated${missing(parts[2] - parts[1], title)}`);
  if (raster.isHeld(node) && title !== "held") words.push("held");
  const found = BY.filter(([by]) => index.value(by, node)).map(([by, prefix]) => prefix + index.value(by, node));
  return found.length ? [...words, found.join(", ")] : words;
}

function wholeOf(raster, node) {
  const found = { taken: 0, expected: 0, missing: 0 };
  for (const byte of raster.gpus.subarray(raster.starts[node], raster.starts[node + 1])) {
    const state = gpuState(byte), isGone = state === MISSING || state === AWAY;
    if (state !== WHOLE && !isGone) continue;
    found.expected += 1;
    found.missing += isGone;
    found.taken += taken(byte) === ALL;
  }
  return found;
}

export const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
const gpus = (number) => count(number, "GPU");
const missing = (number, title) => (number > 0 ? `, ${number} ${title === "changing MIG" ? "away" : "missing"}` : "");

// The ways to call a group, the longest first.
export function titlesOf({ title, nodes, faults }) {
  const number = count(nodes.length, "node");
  const wrong = faults ? ` · ${count(faults, "fault")}` : "";
  return [`${title} · ${number}${wrong}`, `${title} · ${nodes.length}${faults ? ` · ✕${faults}` : ""}`, `${title} ${nodes.length}`, title];
}
