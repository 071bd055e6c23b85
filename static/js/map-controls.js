// What somebody chose to see of the map: in the URL, so that it can be handed on, and in the controls above it.
import { BOTH, COLOURS } from "./map-colours.js";
import { GROUPS, ORDERS } from "./map-arrange.js";

const CHOICES = { group: GROUPS, colour: COLOURS, order: ORDERS };
const MOST_CHARS = 500;

export function readChoice() {
  const query = new URLSearchParams(location.search);
  const chosen = Object.entries(CHOICES).map(([name, table]) => [name, table.find(({ key }) => key === query.get(`map_${name}`)) ?? table[0]]);
  const only = (query.get("map_only") ?? "").slice(0, MOST_CHARS).split(",").filter(Boolean).flatMap((key) => BOTH[key] ?? [key]);
  return { ...Object.fromEntries(chosen), only: new Set(only), faults: query.get("map_faults") === "1" };
}

export function writeChoice(choice) {
  const url = new URL(location.href);
  const put = (name, value) => (value ? url.searchParams.set(name, value) : url.searchParams.delete(name));
  for (const [name, table] of Object.entries(CHOICES)) put(`map_${name}`, choice[name] === table[0] ? "" : choice[name].key);
  put("map_only", [...choice.only].join(","));
  put("map_faults", choice.faults ? "1" : "");
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}

// Fill the selects from the tables, and say when one is changed.
export function startControls(place, choice, changed) {
  for (const [name, table] of Object.entries(CHOICES)) {
    const select = place.querySelector(`[data-map-choice="${name}"]`);
    select.replaceChildren(...table.map(({ key, title }) => new Option(title, key, false, key === choice[name].key)));
    select.addEventListener("change", () => changed({ [name]: table.find(({ key }) => key === select.value) }));
  }
  const faults = place.querySelector("[data-map-faults]");
  faults.addEventListener("change", () => changed({ faults: faults.checked }));
  showChoice(place, choice);
}

export function showChoice(place, choice) {
  for (const name of Object.keys(CHOICES)) place.querySelector(`[data-map-choice="${name}"]`).value = choice[name].key;
  place.querySelector("[data-map-faults]").checked = choice.faults;
}
