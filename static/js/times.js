// Relative times, kept current. The server wrote them first; the title holds the absolute time in UTC.
const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
const STALE_AFTER_MS = 90000; // the server calls a cluster stale after as much
let offset = 0; // the server's clock minus ours, in ms

export const now = () => Date.now() + offset;

export function learnServerTime(iso) {
  const server = Date.parse(iso);
  if (!Number.isNaN(server)) offset = server - Date.now();
}

export function spell(ms) {
  let left = Math.max(0, Math.floor(ms / 1000));
  const words = [];
  for (const [seconds, unit] of UNITS) {
    const number = Math.floor(left / seconds);
    left %= seconds;
    if (number) words.push(`${number} ${unit}`);
    else if (words.length) break;
  }
  return words.slice(0, 2).join(" ") || "0 s";
}

// Whether nothing was received of it since then for too long.
export const isLate = (at) => now() - Date.parse(at) > STALE_AFTER_MS;

export const clock = (at) => new Date(at).toISOString().slice(11, 19);

function tick() {
  for (const time of document.querySelectorAll("time[data-when]:not([data-when=''])")) {
    const at = Date.parse(time.getAttribute("datetime"));
    const kind = time.dataset.when;
    const words = kind === "until" ? spell(at - now()) : spell(now() - at) + (kind === "ago" ? " ago" : "");
    if (time.textContent !== words) time.textContent = words;
  }
}

export function startTimes() {
  tick();
  setInterval(tick, 1000);
  document.addEventListener("htmx:afterSwap", tick); // an unchanged part (304) has the words of its first answer
}
