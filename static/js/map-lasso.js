// Selects nodes on the map: a drag of the mouse, or Space and Shift with arrow keys. A finger scrolls, as before.
import { placeOf, positionsIn } from "./map-arrange.js";

const STARTS_PX = 6; // a shorter drag is a click
const LINE_PX = 2;

export class Lasso {
  constructor(map) {
    this.map = map;
    this.canvas = map.place.querySelector(".map-selection");
    this.frame = map.place.querySelector(".map-lasso");
    this.selected = new Set(); // keys of nodes, as the nodes table has them
    if (!this.canvas) return; // this person may not act
    map.canvas.addEventListener("pointerdown", (event) => this.begin(event));
    map.canvas.addEventListener("click", (event) => this.swallow(event), true);
    map.place.addEventListener("keydown", (event) => this.press(event)); // after the pointer's own: it has walked
    document.addEventListener("keydown", ({ key }) => key === "Escape" && this.cancel());
    document.addEventListener("nodes:selected", ({ detail }) => this.show(detail));
    document.dispatchEvent(new CustomEvent("nodes:select", { detail: { keys: [], how: "add" } }));
  }

  begin(event) {
    if (event.button !== 0 || event.pointerType === "touch" || !this.map.arranged) return;
    this.from = this.pointAt(event);
    this.isDragged = false;
    this.listening = new AbortController();
    const { signal } = this.listening;
    window.addEventListener("pointermove", (moved) => this.move(moved), { signal });
    window.addEventListener("pointerup", (up) => this.finish(up), { signal });
    window.addEventListener("pointercancel", () => this.end(), { signal });
  }

  pointAt({ clientX, clientY }) {
    const { left, top } = this.map.canvas.getBoundingClientRect();
    return { x: clientX - left, y: clientY - top };
  }

  move(event) {
    this.to = this.pointAt(event);
    const isFar = Math.hypot(this.to.x - this.from.x, this.to.y - this.from.y) >= STARTS_PX;
    if (!this.isDragged && !isFar) return;
    this.isDragged = true;
    event.preventDefault();
    this.drawing ??= requestAnimationFrame(() => this.drawFrame());
  }

  drawFrame() {
    this.drawing = null;
    if (!this.listening) return;
    const { offsetLeft, offsetTop } = this.map.canvas, { left, top, right, bottom } = this.area();
    Object.assign(this.frame.style, { left: `${offsetLeft + left}px`, top: `${offsetTop + top}px`, width: `${right - left}px`, height: `${bottom - top}px` });
    this.frame.hidden = false;
    this.map.pointer.showTip(-1);
    this.frame.textContent = this.positions().length.toLocaleString("en");
  }

  area() {
    const { from, to } = this;
    return { left: Math.min(from.x, to.x), top: Math.min(from.y, to.y), right: Math.max(from.x, to.x), bottom: Math.max(from.y, to.y) };
  }

  positions() {
    const { left, top, right, bottom } = this.area(), { scale } = this.map;
    return positionsIn(this.map.arranged.boxes, left * scale, top * scale, right * scale, bottom * scale);
  }

  finish(event) {
    const isDragged = this.isDragged;
    if (isDragged) {
      this.to = this.pointAt(event);
      this.select(this.positions(), event.shiftKey || event.ctrlKey || event.metaKey);
    }
    this.end();
    this.isClickOfDrag = isDragged;
    this.expireClick();
  }

  expireClick() {
    setTimeout(() => (this.isClickOfDrag = false)); // a drag that ends elsewhere has no click
  }

  // The button is still down: its release is a click, too.
  cancel() {
    if (!this.listening || !this.isDragged) return;
    this.end();
    this.isClickOfDrag = true;
    window.addEventListener("pointerup", () => this.expireClick(), { once: true });
  }

  end() {
    this.listening?.abort();
    this.listening = null;
    if (this.frame) this.frame.hidden = true;
  }

  // A drag ends with a click, which would open a node.
  swallow(event) {
    if (!this.isClickOfDrag) return;
    event.stopImmediatePropagation();
    this.isClickOfDrag = false;
  }

  // Space: this node. Shift with a key that walks: all from the first one on.
  press(event) {
    if (event.key === " ") {
      event.preventDefault();
      const position = this.map.pointer.start(), key = this.keyAt(position);
      if (key === undefined) return;
      this.anchor = position;
      this.change([key], this.selected.has(key) ? "remove" : "add");
    } else if (event.key === "Shift") {
      this.anchor = this.map.pointer.start();
      this.before = new Set(this.selected);
    } else if (event.shiftKey && /^(Arrow|Home|End)/.test(event.key)) {
      this.stretch();
    }
  }

  stretch() {
    const now = this.map.pointer.start(), first = Math.min(this.anchor ?? now, now), last = Math.max(this.anchor ?? now, now);
    const range = Array.from({ length: last - first + 1 }, (_, at) => this.keyAt(first + at));
    this.change([...(this.before ?? []), ...range], "replace");
  }

  keyAt(position) {
    const node = this.map.arranged?.order[position];
    return node === undefined ? undefined : String(this.map.index.keys[node]);
  }

  select(positions, isAdded) {
    this.change(positions.map((position) => this.keyAt(position)), isAdded ? "add" : "replace");
  }

  change(keys, how) {
    document.dispatchEvent(new CustomEvent("nodes:select", { detail: { keys, how } }));
  }

  show(selected) {
    this.selected = selected;
    this.draw();
  }

  // Over the map, so that a selection draws no node again. After each arrangement, and each change of the selection.
  draw() {
    const { map, canvas } = this;
    if (!canvas || !map.arranged) return;
    const { width, height } = map.canvas;
    canvas.hidden = !this.selected.size;
    if (canvas.hidden) return;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    Object.assign(canvas.style, { width: map.canvas.style.width, height: map.canvas.style.height });
    const pen = canvas.getContext("2d"), line = Math.max(1, Math.round(LINE_PX * map.scale));
    pen.clearRect(0, 0, width, height);
    pen.strokeStyle = getComputedStyle(map.place).getPropertyValue("--accent");
    pen.lineWidth = line;
    pen.beginPath();
    for (const key of this.selected) {
      const node = map.index.indexOf.get(Number(key)), position = node === undefined ? -1 : map.positionOf[node];
      if (position < 0) continue;
      const { box, x, y } = placeOf(map.arranged.boxes, position);
      pen.rect(x - line / 2, y - line / 2, box.w + line, box.h + line);
    }
    pen.stroke();
  }
}
