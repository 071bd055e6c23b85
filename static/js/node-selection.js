// The selected nodes: by ticks of the nodes table, on all its pages, and on the map. The table is fetched again by itself, and pages follow each other, so
// ticks are kept for the tab and set again. They are no form fields: their keys go in one field of the form.
const KEY = "quarterdeck-picked-nodes";
const form = document.getElementById("act-on-nodes");
const picked = new Set(JSON.parse(sessionStorage.getItem(KEY) ?? "[]"));
const ticks = () => [...document.querySelectorAll("[data-pick]")];

const most = Number(form.dataset.most);

function show() {
  for (const tick of ticks()) tick.ariaChecked = String(picked.has(tick.value));
  const all = document.querySelector("[data-pick-all]");
  if (all) all.ariaChecked = String(ticks().length > 0 && ticks().every((tick) => picked.has(tick.value)));
  form.hidden = picked.size === 0;
  const isTooMany = picked.size > most, number = picked.size.toLocaleString("en");
  const tooMany = isTooMany ? `: at most ${most.toLocaleString("en")} at once` : "";
  form.querySelector("[data-picked]").textContent = `${number} ${picked.size === 1 ? "node" : "nodes"} selected${tooMany}`;
  for (const button of form.querySelectorAll("[name=kind]")) button.disabled = isTooMany;
  form.elements.nodes.value = isTooMany ? "" : [...picked].join(",");
  sessionStorage.setItem(KEY, JSON.stringify([...picked]));
  document.dispatchEvent(new CustomEvent("nodes:selected", { detail: new Set(picked) }));
}

function pick(tick, isPicked) {
  if (isPicked) picked.add(tick.value);
  else picked.delete(tick.value);
}

document.addEventListener("click", ({ target }) => {
  if (target.matches("[data-pick-all]")) for (const tick of ticks()) pick(tick, target.ariaChecked !== "true");
  else if (target.matches("[data-pick]")) pick(target, !picked.has(target.value));
  else if (target.matches("[data-pick-none]")) picked.clear();
  else return;
  show();
});
// The map selects nodes, too.
document.addEventListener("nodes:select", ({ detail: { keys, how } }) => {
  if (how === "replace") picked.clear();
  for (const key of keys) picked[how === "remove" ? "delete" : "add"](key);
  show();
});
document.addEventListener("htmx:afterSwap", show);
window.addEventListener("pageshow", show);
show();
