// The legend: each kind with how many there are, a button that leaves only these.
import { drawSwatch } from "./map-paint.js";

export class Legend {
  constructor(place, toggle) {
    this.place = place;
    this.toggle = toggle;
    this.buttons = new Map();
  }

  show({ colour, kinds, counts }, only) {
    const shape = JSON.stringify([colour.key, kinds.map(({ key }) => key)]);
    if (shape !== this.shape) this.build(kinds, colour);
    this.shape = shape;
    kinds.forEach((kind, at) => {
      const { button, number } = this.buttons.get(kind.key);
      const words = counts[at].toLocaleString("en");
      if (number.textContent !== words) number.textContent = words;
      button.setAttribute("aria-pressed", String(only.has(kind.key)));
      button.hidden = !counts[at] && !only.has(kind.key);
    });
  }

  draw(palette, scale) {
    for (const { swatch, look } of this.buttons.values()) drawSwatch(swatch, look, palette, scale);
  }

  build(kinds, colour) {
    this.buttons.clear();
    for (const kind of kinds) {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: "map-kind", title: `Show only these ${colour.unit}s` });
      button.dataset.kind = kind.key;
      const swatch = document.createElement("canvas"), number = document.createElement("b");
      swatch.setAttribute("aria-hidden", "true");
      button.append(swatch, number, ` ${kind.title}`);
      button.addEventListener("click", () => this.toggle(kind.key));
      this.buttons.set(kind.key, { button, swatch, number, look: kind.look });
    }
    this.place.replaceChildren(...[...this.buttons.values()].map(({ button }) => button));
  }
}
