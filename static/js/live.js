// The one WebSocket of a page: connecting, live, stale, lost. It says what changed; the parts fetch it themselves.
import { clock, learnServerTime, now, spell } from "./times.js";

const BEAT_MS = 5000;
const STALE_AFTER_MS = 2.6 * BEAT_MS; // two beats missed
const DROPPED_AFTER_MS = 6 * BEAT_MS; // a network that forgot the connection ends it for nobody: the server gives up sooner
const SIGNED_OUT = 4401;
const NOT_YOURS = 4404;

class Link {
  constructor(topics, seq) {
    this.topics = topics;
    this.seq = seq; // topic -> the number this page's picture is at
    this.tries = 0;
    this.lastSeenAt = null;
    this.askedAt = null; // when this socket was opened, until something is received through it
    this.state = "connecting";
  }

  open() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    this.socket = new WebSocket(`${scheme}//${location.host}/live/?topics=${encodeURIComponent(this.topics)}`);
    this.socket.onmessage = (event) => this.receive(JSON.parse(event.data));
    this.socket.onclose = (event) => this.closed(event.code, event.reason);
    this.askedAt = Date.now();
    this.show();
  }

  receive(message) {
    this.lastSeenAt = Date.now();
    this.askedAt = null;
    this.state = "live";
    if (message.type === "hello" || message.type === "heartbeat") {
      learnServerTime(message.server_time);
      this.tries = 0;
      this.lostAt = null;
      for (const [topic, seq] of Object.entries(message.seq)) this.compare(topic, seq);
      for (const [topic, at] of Object.entries(message.last_seen || {})) emit("live:last-seen", { topic, at });
    } else {
      this.changed(message);
    }
    this.show();
  }

  // A number ahead of ours with no message that said so: something was lost, whatever it was is fetched again.
  compare(topic, seq) {
    if (seq > (this.seq[topic] ?? 0)) emit("live:gap", { topic });
    this.seq[topic] = Math.max(seq, this.seq[topic] ?? 0);
  }

  changed(message) {
    const known = this.seq[message.topic] ?? 0;
    // Who looked before a flush that is known here tells of it with an older number: news, but not how it is now.
    const isToFetch = message.seq < known || message.prev > known;
    this.seq[message.topic] = Math.max(message.seq, known);
    emit(isToFetch ? "live:gap" : "live:changed", message);
  }

  closed(code, reason) {
    this.socket = this.askedAt = null;
    if (code === SIGNED_OUT) return this.end(`${reason || "You are signed out."} This page is not kept current any more: load it again to go on.`);
    if (code === NOT_YOURS) return this.end("The subject of this page was deleted, or you may no longer see it.");
    this.state = this.lostAt || this.lastSeenAt ? "lost" : "connecting";
    this.lostAt ??= Date.now();
    this.tries += 1;
    if (this.tries > 2) this.state = "lost";
    const wait = Math.min(30000, 500 * 2 ** Math.min(this.tries, 6)) * (0.5 + Math.random() / 2);
    this.retryAt = Date.now() + wait;
    this.timer = setTimeout(() => this.open(), wait);
    this.show();
  }

  end(words) {
    this.state = "ended";
    this.words = words;
    this.show();
  }

  // Nothing comes through it any more, and it does not end by itself.
  drop(code) {
    clearTimeout(this.timer);
    if (this.socket) {
      this.socket.onmessage = this.socket.onclose = null;
      this.socket.close();
    }
    this.closed(code);
  }

  retryNow() {
    if (this.state === "ended") return location.reload();
    if (this.state === "stale") this.drop();
    clearTimeout(this.timer);
    if (!this.socket) this.open();
  }

  tick() {
    const silentFor = Math.abs(Date.now() - this.lastSeenAt); // a clock that was set back tells nothing, either
    if (this.state === "live" && silentFor > STALE_AFTER_MS) this.state = "stale";
    if (this.state === "stale" && silentFor > DROPPED_AFTER_MS) this.drop();
    // A proxy that never answers, or a server that lets in and then says nothing: no close comes of either.
    if (this.askedAt && Math.abs(Date.now() - this.askedAt) > STALE_AFTER_MS) this.drop();
    if (this.state === "lost" && this.tries >= 3 && Date.now() - (this.polledAt ?? 0) > 10000) {
      this.polledAt = Date.now();
      emit("live:poll", {});
    }
    this.show();
  }

  show() {
    const link = document.getElementById("link");
    const bar = document.getElementById("link-bar");
    if (!link || !bar) return;
    const state = this.state === "ended" ? "lost" : this.state;
    const words = this.say();
    if (link.dataset.state !== state) link.dataset.state = state;
    document.documentElement.dataset.link = state;
    setText(link.querySelector(".link-words"), words.short);
    const isTrouble = state === "lost" || state === "stale";
    bar.hidden = !isTrouble;
    if (isTrouble) setText(document.getElementById("link-bar-words"), words.long);
  }

  say() {
    const seen = this.lastSeenAt ? clock(this.lastSeenAt + (now() - Date.now())) : "";
    if (this.state === "live") return { short: "live" };
    if (this.state === "connecting") return { short: "connecting…" };
    if (this.state === "ended") return { short: "ended", long: this.words };
    if (this.state === "stale") {
      return { short: `stale since ${seen}`, long: `Nothing received from the server since ${seen} UTC. The page shows that moment.` };
    }
    const wait = Math.max(0, Math.ceil((this.retryAt - Date.now()) / 1000));
    const retry = this.askedAt ? "trying again now" : `next try in ${wait} s`;
    const polling = this.tries >= 3 ? " Asking every 10 s instead." : "";
    return {
      short: "link lost",
      long: `Live link lost ${spell(Date.now() - this.lostAt)} ago, ${retry}${seen ? `: showing ${seen} UTC` : ""}.${polling}`,
    };
  }
}

function setText(element, words) {
  if (element && element.textContent !== words) element.textContent = words;
}

function emit(name, detail) {
  document.dispatchEvent(new CustomEvent(name, { detail }));
}

export function startLink() {
  const { topics, seq } = document.body.dataset;
  const link = new Link(topics, JSON.parse(seq || "{}"));
  document.addEventListener("live:signed-out", () => link.drop(SIGNED_OUT));
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-link-retry]")) link.retryNow();
  });
  if (!topics) return;
  link.open();
  setInterval(() => link.tick(), 1000);
  // What ended is loaded again by who reads it: a form may be half filled in.
  window.addEventListener("online", () => link.state !== "ended" && link.retryNow());
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && link.state === "lost") link.retryNow();
  });
}
