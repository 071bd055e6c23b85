// What the map is drawn from: an index, which nodes there are and what each is found by, and a raster, a byte for each
// node and for each of its GPUs. `fleet/map_cells/cell.py` says what the bytes are.
const HEAD_AT = 8, STATE = 0x0f, HELD = 0x10, HAS_PARTS = 0x20, CRITICAL = 0x40, TAKEN_AT = 4;

export const WHOLE = 0, MISSING = 1, AWAY = 2, PARTS = 3, PARTS_MISSING = 4, PARTS_AWAY = 5, NOT_OFFERED = 6; // a GPU's states
export const ALL = 1, SOME = 2; // what is taken of one
export const gpuState = (byte) => byte & STATE;
export const taken = (byte) => byte >> TAKEN_AT;

export class Index {
  constructor({ version, keys, names, by }) {
    let key = 0;
    this.version = version;
    this.keys = keys.map((step) => (key += step));
    this.names = names;
    this.by = by; // what nodes are grouped by -> { values, at: which of them each node has }
    this.indexOf = new Map(this.keys.map((each, index) => [each, index]));
    const sortable = names.map((name) => name.replace(/\d+/g, (digits) => digits.padStart(12, "0")));
    this.physical = Uint32Array.from(names.keys()).sort((a, b) => (sortable[a] < sortable[b] ? -1 : sortable[a] > sortable[b] ? 1 : a - b));
  }

  value(by, node) {
    const column = this.by[by];
    return column.values[column.at[node]];
  }
}

export class Raster {
  constructor(buffer) {
    const head = HEAD_AT + new DataView(buffer).getUint32(4, true);
    const { index, clusters } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, HEAD_AT, head - HEAD_AT)));
    this.index = index;
    this.clusters = clusters;
    this.clusterOf = clusters.flatMap((cluster) => Array(cluster.nodes).fill(cluster));
    this.size = this.clusterOf.length;
    this.states = new Uint8Array(buffer, head, this.size);
    this.sizes = new Uint8Array(buffer, head + this.size, this.size);
    this.starts = new Uint32Array(this.size + 1);
    for (let node = 0; node < this.size; node += 1) this.starts[node + 1] = this.starts[node] + this.sizes[node];
    const gpusAt = head + 2 * this.size;
    this.gpus = new Uint8Array(buffer, gpusAt, this.starts[this.size]);
    this.metrics = {}; // name -> a byte a GPU, in the same order
    this.parts = new Map(); // node -> slices and shares: allocated, allocatable, expected
    const rest = new Uint8Array(buffer, gpusAt + this.gpus.length);
    for (let node = 0, at = 0; node < this.size; node += 1) {
      if (this.states[node] & HAS_PARTS) at = this.readParts(node, rest, at);
    }
  }

  // Where the GPUs of a cluster begin and end; undefined: it has none here.
  placeOf(key) {
    const first = this.clusterOf.findIndex(({ id }) => id === key);
    return first < 0 ? undefined : { from: this.starts[first], to: this.starts[first + this.clusterOf[first].nodes] };
  }

  // Whose a GPU is.
  nodeAt(place) {
    let low = 0, high = this.size;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (this.starts[middle] <= place) low = middle;
      else high = middle;
    }
    return low;
  }

  readParts(node, bytes, at) {
    const numbers = [];
    while (numbers.length < 3) {
      let number = 0, shift = 0;
      for (; bytes[at] & 0x80; at += 1, shift += 7) number += (bytes[at] & 0x7f) << shift;
      numbers.push(number + (bytes[at] << shift));
      at += 1;
    }
    this.parts.set(node, numbers);
    return at;
  }

  code(node) {
    return this.states[node] & STATE;
  }

  isHeld(node) {
    return Boolean(this.states[node] & HELD);
  }

  // What is wrong with it includes a critical finding.
  isCritical(node) {
    return Boolean(this.states[node] & CRITICAL);
  }

  isSeen(node) {
    return this.clusterOf[node].is_seen;
  }

  knowsPods(node) {
    return this.clusterOf[node].knows_pods;
  }

  // One node of a message. False: it is not as it was laid out, and all is to be fetched.
  apply(node, text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const size = bytes[1];
    if (size !== this.sizes[node]) return false;
    this.states[node] = bytes[0];
    this.gpus.set(bytes.subarray(2, 2 + size), this.starts[node]);
    if (bytes[0] & HAS_PARTS) this.readParts(node, bytes, 2 + size);
    else this.parts.delete(node);
    return true;
  }
}

export async function answered(asked) {
  const response = await asked;
  if (response.type === "opaqueredirect") throw new Error("it asks to sign in");
  if (!response.ok && response.status !== 304) throw new Error(`it answered ${response.status}`);
  return response;
}
