// The metric that the map is coloured by: a byte for each GPU, in the order of the raster. It is fetched when there is
// newer telemetry, of the cluster that has it.
import { NO_DATA } from "./map-colours.js";
import { answered } from "./map-raster.js";

const UNTOLD_MS = 60000; // then it is fetched although no message told of anything newer
const AFTER_AN_ERROR_MS = 15000;
const SPREAD_MS = 1000; // not all who look at the map ask in the same instant

export class Measure {
  constructor(map) {
    this.map = map;
    this.tag = {}; // the address of what was taken last, and its ETag: after another's bytes it says nothing any more
    this.measuredAt = -Infinity; // all of it, by performance.now(): clocks are set
    this.newer = new Set(); // keys of the clusters that have newer telemetry
    this.trouble = new Map(); // key of a cluster, or null: all of them -> why it is not known
  }

  get name() {
    return this.map.choice.colour.metric;
  }

  // Newer telemetry of one cluster: whether the topic is one. Who does not look fetches all of it once they do.
  receive(topic) {
    const [kind, cluster] = topic.split("-");
    if (kind !== "telemetry") return false;
    this.newer.add(Number(cluster));
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.again();
    }, Math.random() * SPREAD_MS);
    return true;
  }

  again() {
    const { raster } = this.map;
    if (!this.name || !raster || document.hidden) return this.forget();
    const keys = [...this.newer];
    return keys.length === 1 && raster.metrics[this.name] ? this.fetch(keys[0]) : this.fetch();
  }

  // It is fetched before it is drawn again.
  forget() {
    this.measuredAt = -Infinity;
    this.newer.clear();
  }

  // With each look at the map: what is not known, and what no message told.
  ifDue() {
    const { raster } = this.map;
    const isLacking = raster && !(this.name in raster.metrics);
    if (isLacking || performance.now() - this.measuredAt > UNTOLD_MS) this.fetch();
  }

  // Of one cluster, or of all. Until it is known anew, as it was.
  async fetch(cluster = null) {
    const { map, name } = this, { raster } = map;
    if (!name || !raster) return;
    clearTimeout(this.retry);
    if (cluster === null) this.newer.clear();
    else this.newer.delete(cluster);
    const all = { from: 0, to: raster.gpus.length }, place = cluster === null ? all : raster.placeOf(cluster);
    if (!place) return;
    if (place.to - place.from === all.to) this.measuredAt = performance.now();
    const address = `${map.place.dataset.map}/metrics/${name}?index=${raster.index}${cluster === null ? "" : `&cluster=${cluster}`}`;
    const headers = raster.metrics[name] && this.tag.address === address ? { "If-None-Match": this.tag.etag } : {};
    try {
      const response = await fetch(address, { headers, redirect: "manual" });
      if (response.status === 409) return this.isLaidOutAnew();
      await answered(response);
      this.isWell(cluster);
      if (response.status === 304) return;
      const bytes = new Uint8Array(await response.arrayBuffer());
      if (bytes.length !== place.to - place.from) return this.isLaidOutAnew(); // a node has more GPUs by now, or fewer
      this.tag = { address, etag: response.headers.get("ETag") };
      this.take(raster, name, bytes, place);
    } catch (error) {
      if (cluster === null) this.trouble.clear();
      this.trouble.set(cluster, error.message);
      if (cluster !== null) this.newer.add(cluster);
      clearTimeout(this.retry);
      this.retry = setTimeout(() => this.again(), AFTER_AN_ERROR_MS);
      this.lose(raster, name, place);
      map.tell();
    }
  }

  isWell(cluster) {
    const was = this.trouble.size;
    if (cluster === null) this.trouble.clear();
    else this.trouble.delete(cluster);
    if (this.trouble.size !== was) this.map.tell();
  }

  // What is not known now is not shown as if it were: of who was asked about, and of no other.
  lose(raster, name, place) {
    this.tag = {};
    const known = raster.metrics[name];
    if (known && place.to - place.from < known.length) this.take(raster, name, new Uint8Array(place.to - place.from).fill(NO_DATA), place);
    else {
      raster.metrics[name] = null;
      if (raster.metrics === this.map.raster.metrics) this.map.redraw();
    }
  }

  isLaidOutAnew() {
    this.forget();
    this.map.loadSoon();
  }

  // What did not change is not drawn again.
  take(raster, name, bytes, { from }) {
    const known = raster.metrics[name];
    if (!known) {
      raster.metrics[name] = bytes;
      if (raster.metrics === this.map.raster.metrics) this.map.redraw();
      return;
    }
    const changed = [...bytes.keys()].filter((at) => known[from + at] !== bytes[at]);
    known.set(bytes, from);
    if (raster.metrics === this.map.raster.metrics) this.map.recolour(changed.map((at) => from + at), name);
  }

  *sentences(title) {
    if (!this.name) return;
    if (this.trouble.size) {
      const [reason] = this.trouble.values();
      const names = [...this.trouble.keys()].filter((key) => key !== null).map((key) => this.map.nameOf(key));
      yield `The ${title} of the GPUs${names.length ? ` of ${names.join(", ")}` : ""} was not fetched (${reason}). The page tries again every ${AFTER_AN_ERROR_MS / 1000} s.`;
    }
    yield "The cells of a node are its GPUs by their index; a GPU without a value in its exporter has none here.";
  }
}
