// Small multiples of what a node's GPUs said: a line a GPU, gaps where no sample was, marks where something happened.
import uPlot from "../vendor/uplot/uPlot.esm.js";
import { clock } from "./times.js";

const EVERY_MS = 30000;
const HEIGHT_PX = 150;
const SYNC = "node-plots";
// Told apart by colour-blind eyes, too; the ninth to sixteenth are dashed.
const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#8b5fbf", "#a6761d", "#c2185b", "#3f7f93", "#4a5866"];
const DARK = ["#56b4e9", "#f28e2b", "#3fc79a", "#b7a0f5", "#e6c229", "#ff8fb1", "#8fd3e0", "#a6b3bf"];
// How a plot's unit is written. What is a ratio on the wire is read as a percentage.
const SHOWN = {
  gpu_utilisation_ratio: { unit: "%", factor: 100, digits: 0, range: [0, 100] },
  memory_used_mib: { unit: "GiB", factor: 1 / 1024, digits: 1 },
};

class NodePlots {
  constructor(place) {
    this.place = place;
    this.plots = [];
    this.window = "1h";
    this.said = place.querySelector("[data-said]");
    this.frame = place.querySelector("[data-plots]");
    this.marks = place.querySelector("[data-marks]");
    for (const button of place.querySelectorAll("[data-window]")) button.addEventListener("click", () => this.choose(button.dataset.window));
    new ResizeObserver(() => this.fit()).observe(this.frame);
    document.addEventListener("theme:changed", () => this.known && this.draw(this.known));
    document.addEventListener("visibilitychange", () => !document.hidden && this.load());
    setInterval(() => document.hidden || this.load(), EVERY_MS);
    this.load();
  }

  choose(window) {
    this.window = window;
    for (const button of this.place.querySelectorAll("[data-window]")) button.setAttribute("aria-pressed", String(button.dataset.window === window));
    this.load();
  }

  async load() {
    const asked = this.window;
    let words = "";
    try {
      const response = await fetch(`${this.place.dataset.history}?window=${asked}`, { headers: { Accept: "application/json" }, redirect: "manual" });
      if (asked !== this.window) return;
      if (response.ok) return this.draw(await response.json());
      words = `The server answered ${response.status || "with another page"} at ${clock(Date.now())} UTC`;
    } catch {
      words = `The server did not answer at ${clock(Date.now())} UTC`;
    }
    this.say(`${words}: ${this.known ? "this is how it was before. " : ""}It is asked again in ${EVERY_MS / 1000} s.`, "is-warn");
  }

  say(words, look = "muted") {
    this.said.textContent = words;
    this.said.className = look;
    this.said.hidden = !words;
  }

  draw(known) {
    this.known = known;
    this.place.removeAttribute("aria-busy");
    for (const plot of this.plots) plot.destroy();
    this.plots = [];
    this.frame.replaceChildren(...known.plots.map((plot) => this.figure(plot, known)));
    this.say(known.trouble || (known.not_drawn.length ? `No samples in this time: ${known.not_drawn.join(", ")}.` : ""), known.trouble ? "is-warn" : "muted");
    this.list(known);
  }

  figure(plot, known) {
    const figure = document.createElement("figure");
    const title = document.createElement("figcaption");
    const { unit } = shown(plot);
    title.textContent = plot.title + (unit ? `, ${unit}` : "");
    if (plot.left_out) title.append(small(` first ${plot.lines.length}, ${plot.left_out} more are not drawn`));
    const values = document.createElement("p");
    values.className = "plot-values";
    const canvas = document.createElement("div");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", summary(plot, known));
    figure.append(title, canvas, values);
    this.plots.push(this.chart(plot, known, canvas, values));
    return figure;
  }

  chart(plot, known, canvas, values) {
    const isDark = document.documentElement.getAttribute("data-bs-theme") === "dark";
    const colours = isDark ? DARK : LIGHT, style = getComputedStyle(this.place);
    const of = (name) => style.getPropertyValue(name).trim();
    const { factor, digits, range } = shown(plot);
    const axis = { stroke: of("--ink-3"), grid: { stroke: of("--line"), width: 1 }, ticks: { stroke: of("--line"), width: 1 }, font: "11px system-ui, sans-serif" };
    const options = {
      width: this.width(), height: HEIGHT_PX, legend: { show: false }, tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      cursor: { sync: { key: SYNC }, points: { size: 5 }, drag: { x: false, y: false } },
      scales: { y: { range: range ? () => range : (_, low, high) => roomy(low, high) } },
      axes: [{ ...axis, size: 26, values: (_, at) => at.map((each) => clock(each * 1000).slice(0, 5)) }, { ...axis, size: 46 }],
      series: [{}, ...plot.lines.map((line, number) => ({
        label: line.name, stroke: colours[number % colours.length], width: 1.5, spanGaps: false, points: { show: false },
        dash: number >= colours.length ? [4, 3] : undefined,
      }))],
      hooks: {
        draw: [(chart) => drawMarks(chart, known.marks, of)],
        setCursor: [(chart) => tell(chart, plot, known, values, { factor, digits })],
      },
    };
    const lines = plot.lines.map((line) => line.values.map((value) => (value === null ? null : value * factor)));
    const chart = new uPlot(options, [known.times, ...lines], canvas);
    tell(chart, plot, known, values, { factor, digits });
    return chart;
  }

  width() {
    const columns = getComputedStyle(this.frame).gridTemplateColumns.split(" ").length;
    return Math.max(200, Math.floor((this.frame.clientWidth - 14 * (columns - 1)) / columns));
  }

  fit() {
    const width = this.width();
    for (const plot of this.plots) if (plot.width !== width) plot.setSize({ width, height: HEIGHT_PX });
  }

  list(known) {
    this.marks.replaceChildren(...known.marks.slice(-12).reverse().map((mark) => {
      const line = document.createElement("li");
      line.className = mark.kind === "xid" ? "is-warn" : "";
      line.textContent = `${clock(mark.at)} ${mark.sentence}`;
      return line;
    }));
    const left = known.marks_left_out + Math.max(0, known.marks.length - 12);
    if (left) this.marks.append(Object.assign(document.createElement("li"), { textContent: `and ${left} earlier` }));
  }
}

function shown(plot) {
  return SHOWN[plot.key] ?? { unit: plot.unit, factor: 1, digits: 0 };
}

function roomy(low, high) {
  if (low === null) return [0, 1];
  const room = Math.max((high - low) * 0.1, 1);
  return [Math.max(0, Math.floor(low - room)), Math.ceil(high + room)];
}

// Under the pointer, else the newest of each: what the plot says in numbers.
function tell(chart, plot, known, place, { factor, digits }) {
  const chosen = chart.cursor.idx;
  const words = plot.lines.map((line, number) => {
    const at = chosen ?? newest(line.values);
    const value = at === null ? null : line.values[at];
    const said = document.createElement("span");
    const key = Object.assign(document.createElement("i"), { className: number > 7 ? "is-dashed" : "" });
    key.style.borderColor = chart.series[number + 1].stroke();
    said.append(key, `${line.name} `, Object.assign(document.createElement("b"), { textContent: value === null ? "no sample" : (value * factor).toFixed(digits) }));
    return said;
  });
  if (chosen !== null && chosen !== undefined) words.unshift(small(`${clock(known.times[chosen] * 1000)} `));
  place.replaceChildren(...words);
}

function newest(values) {
  for (let at = values.length - 1; at >= 0; at -= 1) if (values[at] !== null) return at;
  return null;
}

function summary(plot, known) {
  const some = plot.lines.flatMap((line) => line.values).filter((value) => value !== null);
  const { factor, digits, unit } = shown(plot);
  const [low, high] = [Math.min(...some), Math.max(...some)].map((value) => (value * factor).toFixed(digits));
  return `${plot.title} of ${plot.lines.length} over ${known.window}: from ${low} to ${high} ${unit}`;
}

function drawMarks(chart, marks, of) {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const mark of marks) {
    const x = Math.round(chart.valToPos(Date.parse(mark.at) / 1000, "x", true));
    ctx.strokeStyle = ctx.fillStyle = of(mark.kind === "xid" ? "--bad" : "--move");
    ctx.setLineDash(mark.kind === "xid" ? [] : [4, 3]);
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (mark.kind === "xid") ctx.fillRect(x - 3 * devicePixelRatio, bbox.top, 6 * devicePixelRatio, 6 * devicePixelRatio);
  }
  ctx.restore();
}

function small(words) {
  return Object.assign(document.createElement("span"), { className: "faint", textContent: words });
}

for (const place of document.querySelectorAll("[data-history]")) new NodePlots(place);
