// Pointing at the map and walking it: the tip beside a node, the marker around it, keys.
import { nextLine, placeOf, positionAt } from "./map-arrange.js";
import { describe } from "./map-words.js";

export class Pointer {
  constructor(map) {
    this.map = map;
    this.place = map.place;
    this.tip = this.place.querySelector(".map-tip");
    this.marker = this.place.querySelector(".map-marker");
    this.said = this.place.querySelector("[aria-live]");
    this.chosen = null; // the key of the node that the keyboard is on
    const { canvas } = map;
    canvas.addEventListener("mousemove", (event) => this.point(this.at(event)));
    canvas.addEventListener("mouseleave", () => this.point(-1));
    canvas.addEventListener("click", (event) => this.open(this.at(event)));
    this.place.addEventListener("keydown", (event) => this.press(event));
    this.place.addEventListener("focus", () => this.place.matches(":focus-visible") && this.walk(this.start()));
    this.place.addEventListener("blur", () => {
      this.showTip(-1);
      this.showChosen();
    });
  }

  // Somebody looks at one node: it should not go from under them.
  get isBusy() {
    return this.isPointedAt || this.isFocused();
  }

  isFocused() {
    return document.activeElement === this.place;
  }

  chosenPosition() {
    const node = this.map.index?.indexOf.get(this.chosen);
    return node === undefined || !this.map.positionOf ? -1 : this.map.positionOf[node];
  }

  start() {
    return Math.max(0, this.chosenPosition());
  }

  // Over the canvas, which would have to be drawn again for every step.
  showChosen() {
    const position = this.isFocused() ? this.chosenPosition() : -1;
    this.marker.hidden = position < 0;
    if (position >= 0) this.surround(position);
  }

  surround(position) {
    const { box, x, y } = placeOf(this.map.arranged.boxes, position);
    const { offsetLeft, offsetTop } = this.map.canvas, px = (size) => `${size / this.map.scale}px`;
    Object.assign(this.marker.style, {
      left: `calc(${offsetLeft - 3}px + ${px(x)})`, top: `calc(${offsetTop - 3}px + ${px(y)})`,
      width: `calc(6px + ${px(box.w)})`, height: `calc(6px + ${px(box.h)})`,
    });
  }

  at(event) {
    if (!this.map.arranged) return -1;
    const { left, top } = this.map.canvas.getBoundingClientRect();
    return positionAt(this.map.arranged.boxes, (event.clientX - left) * this.map.scale, (event.clientY - top) * this.map.scale);
  }

  point(position) {
    this.isPointedAt = position >= 0;
    this.map.canvas.style.cursor = position >= 0 ? "pointer" : "";
    this.showTip(position);
  }

  showTip(position) {
    this.tip.hidden = position < 0;
    if (position < 0) return;
    const { box, x, y } = placeOf(this.map.arranged.boxes, position);
    this.tip.textContent = describe(this.map.raster, this.map.index, this.map.arranged.order[position]).join("\n");
    const right = Math.min((x + box.w) / this.map.scale + 8, this.place.clientWidth - this.tip.offsetWidth - 4);
    const below = (y + box.h) / this.map.scale + 8, above = y / this.map.scale - this.tip.offsetHeight - 8;
    const isLow = this.map.canvas.getBoundingClientRect().top + below + this.tip.offsetHeight > window.innerHeight && above > 0;
    Object.assign(this.tip.style, { left: `${Math.max(0, right)}px`, top: `${isLow ? above : below}px` });
  }

  walk(position) {
    const node = this.map.arranged?.order[position];
    if (node === undefined) return;
    this.chosen = this.map.index.keys[node];
    this.showChosen();
    this.showTip(position);
    const { box, y } = placeOf(this.map.arranged.boxes, position);
    this.said.textContent = [...describe(this.map.raster, this.map.index, node), box.group.title, `${position + 1} of ${this.map.arranged.order.length}`].join(", ");
    const top = this.map.canvas.getBoundingClientRect().top + y / this.map.scale;
    if (top < 0 || top > window.innerHeight - 20) window.scrollBy({ top: top - window.innerHeight / 2 });
  }

  press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.map.arranged?.order.length) return;
    const position = this.start(), last = this.map.arranged.order.length - 1;
    if (event.key === "Enter") return this.open(position);
    if (event.key === "Escape") return this.showTip(-1);
    const next = {
      ArrowRight: () => Math.min(last, position + 1),
      ArrowLeft: () => Math.max(0, position - 1),
      ArrowDown: () => nextLine(this.map.arranged.boxes, position, 1),
      ArrowUp: () => nextLine(this.map.arranged.boxes, position, -1),
      Home: () => 0,
      End: () => last,
    }[event.key];
    if (!next) return;
    event.preventDefault();
    this.walk(next());
  }

  open(position) {
    if (position >= 0) location.href = `/nodes/${this.map.index.keys[this.map.arranged.order[position]]}`;
  }
}
