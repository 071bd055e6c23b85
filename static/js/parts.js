// Parts of the page that follow what changed: each is fetched again at most every 2 s, with jitter, and morphed in place;
// for what a part has in `data-slowly`, kinds or topics that always have news, at most every 15 s, or `data-slowly-s`.
// There `any` is every message about its cluster, and `last-seen` a new time of observation.
import { clock, isLate, now } from "./times.js";

const AT_MOST_EVERY_MS = 2000;
const SLOWLY_MS = 15000;
const SPREAD_MS = 1000; // of what all who look hear of in the same instant
const AGAIN_AFTER_AN_ERROR_MS = 5000;
const due = new Map(); // id of a part -> its timer, and when that is
const late = new Map(); // topic of a cluster -> whether nothing was received of it for too long
const lastSeen = new Map(); // topic of a cluster -> when it was last observed
const fetchedAt = new Map(); // by performance.now(): clocks are set, and the browser's is not the server's

let isOver = false; // the session: all there is to fetch is the page to sign in at

const parts = () => [...document.querySelectorAll("[data-part]")].filter((part) => part.id);

const EVERY = { fleet: "cluster", plans: "plan", telemetry: "telemetry" }; // what a part is on -> the kind of the topics

function follows(part, topic) {
  const [kind] = topic.split("-");
  return (part.dataset.on ?? "").split(" ").some((on) => on === topic || EVERY[on] === kind);
}

function isAbout(part, message) {
  const kinds = message.kinds;
  if (!kinds) return true;
  const { node, kinds: wanted } = part.dataset;
  const hasNode = node && (message.all || message.nodes?.some(([id]) => id === Number(node)));
  if (node && hasNode) return true;
  return wanted ? wanted.split(" ").some((kind) => kinds.includes(kind)) : !node;
}

// How often at most it is fetched for this; null: it is not about it.
function paceOf(part, message, isGap) {
  const [kind] = message.topic.split("-");
  if (!message.kinds || isGap) return isSlow(part, kind) ? slowestOf(part) : AT_MOST_EVERY_MS;
  if (isAbout(part, message)) return AT_MOST_EVERY_MS;
  return ["any", ...message.kinds].some((each) => isSlow(part, each)) ? slowestOf(part) : null;
}

const isSlow = (part, what) => (part.dataset.slowly ?? "").split(" ").includes(what);
const slowestOf = (part) => Number(part.dataset.slowlyS || 0) * 1000 || SLOWLY_MS;

function receive(message, isGap) {
  for (const part of parts()) {
    const pace = follows(part, message.topic) ? paceOf(part, message, isGap) : null;
    if (pace !== null) schedule(part, pace);
  }
}

function schedule(part, atMostEvery = AT_MOST_EVERY_MS) {
  const idle = performance.now() - (fetchedAt.get(part.id) ?? -atMostEvery);
  const spread = atMostEvery >= SLOWLY_MS ? SPREAD_MS : idle > atMostEvery ? 120 : 500;
  const at = performance.now() + Math.max(0, atMostEvery - idle) + Math.random() * spread;
  const known = due.get(part.id);
  if (known && known.at <= at) return;
  clearTimeout(known?.timer);
  due.set(part.id, { at, timer: setTimeout(() => fetchPart(part.id), at - performance.now()) });
}

function fetchPart(id) {
  due.delete(id);
  if (isOver) return undefined;
  const part = document.getElementById(id);
  if (!part?.dataset.part) return undefined; // its last answer has no address: without one, htmx fetches the whole page
  if (document.hidden) return missed.add(id);
  fetchedAt.set(id, performance.now());
  return htmx.ajax("GET", part.dataset.part, { source: part, target: part, swap: "morph:outerHTML" });
}

const missed = new Set(); // while nobody looked: one fetch when somebody does

// No message tells that a cluster became stale, or live again: it is drawn otherwise from then on.
function showLastSeen({ topic, at }) {
  const was = late.get(topic);
  late.set(topic, isLate(at));
  if (was !== undefined && was !== late.get(topic)) receive({ topic });
  const before = lastSeen.get(topic);
  lastSeen.set(topic, at);
  if (before !== undefined && before !== at) {
    for (const part of parts()) if (follows(part, topic) && isSlow(part, "last-seen")) schedule(part, slowestOf(part));
  }
  for (const place of document.querySelectorAll(`[data-last-seen="${CSS.escape(topic)}"]`)) {
    const time = place.querySelector("time[data-when='ago']");
    if (time) time.setAttribute("datetime", at);
    place.classList.toggle("is-late", isLate(at));
  }
}

function announce(part) {
  const words = part?.dataset?.announce;
  const announcer = document.getElementById("announcer");
  if (words && announcer && announcer.textContent !== words) announcer.textContent = words;
}

function keepOpen(name, node) {
  return !(name === "open" && (node.tagName === "DETAILS" || node.tagName === "DIALOG")) && !(name === "class" && node.isShown);
}

// What a script draws by itself: it is told by its name whether it is still about the same. A list that is unfolded
// stays until its new one is here.
function keepOwn(old, fresh) {
  if (fresh.dataset?.folded && old.parentElement?.open) {
    Object.assign(old.dataset, fresh.dataset);
    return false;
  }
  return !(old.dataset?.own && old.dataset.own === fresh.dataset?.own);
}

// What is folded is fetched when somebody unfolds it, and again where it has changed since.
function fetchUnfolded() {
  for (const list of document.querySelectorAll("details[open] > [data-folded]")) {
    const { own, asked, folded } = list.dataset;
    if (asked === own) continue;
    list.dataset.asked = own;
    htmx.ajax("GET", folded, { source: list, target: list, swap: "morph:innerHTML" });
  }
}

export function startParts() {
  Idiomorph.defaults.callbacks.beforeAttributeUpdated = keepOpen;
  Idiomorph.defaults.callbacks.beforeNodeMorphed = keepOwn;
  Idiomorph.defaults.ignoreActiveValue = true; // what somebody is typing is theirs
  document.addEventListener("live:changed", ({ detail }) => receive(detail, false));
  document.addEventListener("live:gap", ({ detail }) => receive(detail, true));
  document.addEventListener("live:poll", () => parts().forEach((part) => schedule(part)));
  document.addEventListener("live:last-seen", ({ detail }) => showLastSeen(detail));
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    for (const id of missed) fetchPart(id);
    missed.clear();
  });
  setInterval(() => {
    for (const part of parts()) {
      const every = Number(part.dataset.every || 0) * 1000;
      if (every && performance.now() - (fetchedAt.get(part.id) ?? startedAt) > every) schedule(part);
    }
  }, 1000);
  document.addEventListener("htmx:afterSwap", ({ detail }) => announce(document.getElementById(detail.target?.id)));
  document.addEventListener("toggle", fetchUnfolded, true); // it does not bubble
  document.addEventListener("htmx:afterSwap", fetchUnfolded);
  document.addEventListener("htmx:beforeSwap", signInInstead);
  document.addEventListener("htmx:responseError", ({ detail }) => showError(detail.elt, `answered ${detail.xhr.status}`));
  document.addEventListener("htmx:sendError", ({ detail }) => showError(detail.elt, "did not answer"));
  document.addEventListener("htmx:afterRequest", ({ detail }) => detail.successful && detail.elt?.removeAttribute("data-error"));
}

const startedAt = performance.now();

// A session that ended answers with the sign-in page: that is no part of this one. Nor is that loaded by itself: a form
// may be half filled in.
function signInInstead(event) {
  const { xhr } = event.detail;
  const path = new URL(xhr.responseURL || location.href, location.href).pathname;
  if (path !== document.body.dataset.signIn) return;
  event.preventDefault();
  isOver = true;
  document.dispatchEvent(new Event("live:signed-out"));
}

// Since the first of them: what is seen is from before that.
function showError(part, what) {
  if (part?.dataset?.folded) {
    delete part.dataset.asked;
    part.textContent = `The server ${what}. Unfold it again to ask again.`;
  }
  if (!part?.dataset?.part) return;
  part.dataset.error ??= `The server ${what} at ${clock(now())} UTC. The part shows its last state, and the page tries again.`;
  setTimeout(() => schedule(part), AGAIN_AFTER_AN_ERROR_MS);
}
