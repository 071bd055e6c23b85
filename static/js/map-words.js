// What the map says of a node: in the tip beside it, and to who walks it by keyboard.
const STATES = ["upgrade failed", "not ready", "not reporting", "GPUs missing", "has findings", "upgrading", "changing MIG", "cordoned", "held", "ready"];

// [id, name, state, allocated, allocatable, whole, held, seen, parts allocated, allocatable, expected, others]
export function describe([, name, code, taken, allocatable, whole, isHeld, isSeen, partsTaken, partsAllocatable, parts, others]) {
  const words = [name, isSeen ? STATES[code] : "not seen"];
  words.push(whole + others ? gpus(whole + others) : "number of GPUs not known");
  if (whole) words.push(`${known(taken)} of ${whole}${others ? " whole" : ""} allocated${missing(whole - allocatable, code)}`);
  if (parts) words.push(`${known(partsTaken)} of ${parts} slices and shares allocated${missing(parts - partsAllocatable, code)}`);
  if (isHeld && STATES[code] !== "held") words.push("held");
  return words;
}

const gpus = (number) => `${number} GPU${number === 1 ? "" : "s"}`;
const known = (number) => number ?? "no data"; // null: pods were never read
const missing = (number, code) => (number > 0 ? `, ${number} ${STATES[code] === "changing MIG" ? "away" : "missing"}` : "");
