// Small multiples of what GPUs of a node said, or one of them: a line a GPU, gaps where no sample was, marks where something happened.
import uPlot from "../vendor/uplot/uPlot.esm.js";
import { extend, since } from "./plot-history.js";
import { clock, now } from "./times.js";

const UNTOLD_MS = 60000; // then it is asked for although no message told of anything newer
const AFRESH_MS = 600000; // then all of it: what is exported, and what has no sample any more
const SPREAD_MS = 8000; // not all who look at a node of the cluster ask at once: a server puts few questions at a time
const HEIGHT_PX = 150;
const LATE_MS = 120000; // samples come some time after their instants
const MARKS = { xid: "--bad", finding: "--ink", plan: "--hold" }; // what else happened is dashed
const SYNC = "node-plots";
const SOURCES = { prometheus: ", from the cluster's Prometheus", exporters: ", from the exporters, at one minute, last 24 h" };
const AROUND = "around"; // the window of a finding
// Told apart by colour-blind eyes, too; the ninth to sixteenth are dashed.
const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#8b5fbf", "#a6761d", "#c2185b", "#3f7f93", "#4a5866"];
const DARK = ["#56b4e9", "#f28e2b", "#3fc79a", "#b7a0f5", "#e6c229", "#ff8fb1", "#8fd3e0", "#a6b3bf"];
// How a plot's unit is written. What is a ratio on the wire is read as a percentage.
const SHOWN = {
  gpu_utilisation_ratio: { unit: "%", factor: 100, digits: 0, range: [0, 100] },
  tensor_active_ratio: { unit: "%", factor: 100, digits: 0, range: [0, 100] },
  memory_active_ratio: { unit: "%", factor: 100, digits: 0, range: [0, 100] },
  memory_busy_ratio: { unit: "%", factor: 100, digits: 0, range: [0, 100] },
  pcie_transmitted: { unit: "GB/s", factor: 1e-9, digits: 2 },
  pcie_received: { unit: "GB/s", factor: 1e-9, digits: 2 },
  nvlink_mib_per_s: { unit: "GiB/s", factor: 1 / 1024, digits: 2 },
  memory_used_mib: { unit: "GiB", factor: 1 / 1024, digits: 1 },
};

// A value between two gaps is no line: it is drawn as a point.
const LONE = { show: true, size: 4, filter: (chart, number) => lone(chart.data[number]) };

class NodePlots {
  constructor(place) {
    this.place = place;
    this.about = aboutOf(place);
    this.until = Date.parse(place.dataset.until); // NaN: its time goes on
    this.plots = [];
    this.asked = 0;
    this.answered = 0; // which of those that were asked for
    this.isAsking = this.isOwed = false; // that something newer came while it was asking
    this.shown = {}; // the span that is drawn, and with whom it is compared
    this.window = place.querySelector("[data-window]") ? "1h" : "";
    this.said = place.querySelector("[data-said]");
    this.frame = place.querySelector("[data-plots]");
    this.marks = place.querySelector("[data-marks]");
    this.source = place.querySelector("[data-source]");
    this.beside = place.querySelector("#comparable-node"); // null: it is compared with nobody
    this.ended = new AbortController();
    const { signal } = this.ended;
    for (const button of place.querySelectorAll("[data-window]")) button.addEventListener("click", () => this.choose(button.dataset.window), { signal });
    place.addEventListener("click", ({ target }) => target.closest("[data-alone]") && this.alone(), { signal });
    place.addEventListener("htmx:beforeRequest", (event) => this.toggle(event), { signal });
    place.addEventListener("htmx:afterSwap", () => this.compared(), { signal });
    place.addEventListener("htmx:responseError", ({ detail }) => this.refused(`answered ${detail.xhr.status}`), { signal });
    place.addEventListener("htmx:sendError", () => this.refused("did not answer"), { signal });
    this.resized = new ResizeObserver(() => this.fit());
    this.resized.observe(this.frame);
    document.addEventListener("theme:changed", () => this.known && this.draw(this.known), { signal });
    document.addEventListener("visibilitychange", () => this.again(), { signal });
    for (const name of ["live:changed", "live:gap"]) document.addEventListener(name, ({ detail }) => this.isAbout(detail) && this.againSoon(), { signal });
    document.addEventListener("live:poll", () => this.againSoon(), { signal });
    this.load();
  }

  // Its element is gone, or is about something else now.
  end() {
    this.ended.abort();
    clearTimeout(this.untold);
    clearTimeout(this.soon);
    this.resized.disconnect();
    for (const plot of this.plots) plot.destroy();
  }

  // Newer telemetry of its cluster, or that its source answers or does not: of which cluster, the section says.
  isAbout({ topic, kinds }) {
    const { cluster } = this.place.dataset;
    return topic === `telemetry-${cluster}` || (topic === `cluster-${cluster}` && Boolean(kinds?.includes("telemetry")));
  }

  againSoon() {
    this.soon ??= setTimeout(() => {
      this.soon = null;
      this.again();
    }, Math.random() * SPREAD_MS);
  }

  again() {
    if (!this.place.isConnected) return this.end();
    if (document.hidden || this.isOver) return undefined;
    if (this.isAsking && performance.now() - this.askedAt < UNTOLD_MS) return void (this.isOwed = true);
    return this.hasAll ? this.follow() : this.load();
  }

  // Whether only what came since is missing.
  get hasAll() {
    const { known } = this;
    return known && !known.trouble && this.shown.span === this.window && this.shown.comparable === this.comparable && !known.comparable?.trouble && performance.now() - this.loadedAt < AFRESH_MS;
  }

  // Whether all of its time is drawn, with what came late: it does not change any more.
  get isOver() {
    return !this.known?.trouble && this.drawnAt + (now() - Date.now()) > this.until + LATE_MS;
  }

  choose(window) {
    this.window = window;
    for (const button of this.place.querySelectorAll("[data-window]")) button.setAttribute("aria-pressed", String(button.dataset.window === window));
    this.load();
  }

  // Whom it is compared with; null: nobody.
  get comparable() {
    return this.place.querySelector("[data-comparable]");
  }

  // The button that opens and closes it.
  get comparer() {
    return this.place.querySelector("[aria-controls='comparable-node']");
  }

  // Pressed again it asks for nothing.
  toggle(event) {
    if (this.comparer.getAttribute("aria-expanded") !== "true") return;
    event.preventDefault();
    this.alone();
  }

  compared() {
    this.comparer.setAttribute("aria-expanded", "true");
    document.getElementById("announcer").textContent = this.beside.querySelector("[data-told]")?.textContent ?? "";
    this.load();
  }

  refused(what) {
    const words = Object.assign(document.createElement("p"), { className: "is-warn", textContent: `The server ${what} at ${clock(now())} UTC: the comparable healthy node is unknown. Try again.` });
    words.setAttribute("role", "alert");
    this.beside.replaceChildren(words);
  }

  alone() {
    this.beside.replaceChildren();
    this.comparer.setAttribute("aria-expanded", "false");
    this.comparer.focus();
    if (this.known) this.draw({ ...this.known, comparable: null });
    this.load(); // what is on its way is of both
  }

  // All of it. Where there is none, what is drawn stays, and is said to be of before.
  async load() {
    const span = this.window, comparable = this.comparable, at = Date.now();
    const known = await this.ask(async () => {
      const own = this.fetch(this.place.dataset.history, span);
      const its = comparable && this.other(comparable, span);
      return { ...(await own), comparable: await its };
    });
    if (!known || span !== this.window || comparable !== this.comparable) return;
    if (known.trouble && this.known?.plots.length && this.shown.span === span && this.shown.comparable === comparable) return this.tellOfBefore(known.trouble);
    this.shown = { span, comparable };
    this.loadedAt = performance.now();
    this.drawnAt = at;
    this.draw(known);
  }

  // What came since, and nothing else is drawn anew.
  async follow() {
    const { known, comparable, window: span } = this, at = Date.now();
    const came = await this.ask(async () => {
      const own = this.fetch(this.place.dataset.history, span, since(known));
      const its = comparable && this.fetch(comparable.dataset.comparable, span, since(known.comparable));
      return { own: await own, its: await its };
    });
    if (!came || known !== this.known || span !== this.window || comparable !== this.comparable) return;
    if (came.own.trouble) return this.tellOfBefore(came.own.trouble);
    const most = span ? known.times.length : Infinity;
    if (!extend(known, came.own, most) || (comparable && (came.its.trouble || !extend(known.comparable, came.its, most)))) return this.load();
    this.drawnAt = at;
    this.drawOn(known);
  }

  // Null: another was asked for since, or there is no answer, which is said.
  async ask(questions) {
    const number = (this.asked += 1);
    clearTimeout(this.untold);
    this.untold = setTimeout(() => this.again(), UNTOLD_MS);
    this.isAsking = true;
    this.askedAt = performance.now();
    let answer = null, words = "";
    try {
      answer = await questions();
    } catch (error) {
      words = error.message;
    }
    if (this.ended.signal.aborted || number < this.answered) return null;
    this.answered = number;
    if (number === this.asked) this.rest();
    if (answer) return answer;
    this.say(`${words} at ${clock(now())} UTC. ${this.known ? "The plots show the last data. " : ""}The page tries again.`, "is-warn");
    return null;
  }

  // What came while it was asking is fetched after it.
  rest() {
    this.isAsking = false;
    if (this.isOwed) this.againSoon();
    this.isOwed = false;
  }

  tellOfBefore(trouble) {
    this.say(`${trouble} The plots are from ${clock(this.drawnAt + (now() - Date.now()))} UTC.`, "is-warn");
  }

  async fetch(address, span, from) {
    const asked = new URLSearchParams({ ...(from && { since: from }), ...(span && { window: span }) });
    let response;
    try {
      response = await fetch(String(asked) ? `${address}?${asked}` : address, { headers: { Accept: "application/json" }, redirect: "manual", signal: this.ended.signal });
    } catch {
      throw new Error("The server did not answer");
    }
    if (!response.ok) throw new Error(`The server answered ${response.status || "with another page"}`);
    return response.json();
  }

  // What the compared node said at the same time. Without an answer nothing of it is drawn, and that is said.
  async other(comparable, span) {
    const { name } = comparable.dataset, { pairs } = this.place.dataset;
    try {
      return { name, pairs, ...(await this.fetch(comparable.dataset.comparable, span)) };
    } catch {
      return { name, times: [], plots: [], marks: [], trouble: "The server gave no reason." };
    }
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
    this.tellBeside(known);
  }

  // The same plots, a little later.
  drawOn(known) {
    known.plots.forEach((plot, number) => {
      const chart = this.plots[number];
      chart.setData([known.times, ...valuesOf(plot, known)]);
      chart.root.parentElement.setAttribute("aria-label", summary(plot, known));
    });
    this.tellBeside(known);
  }

  tellBeside(known) {
    const words = known.trouble || missing(known) + (known.comparable?.trouble ? ` No line for ${known.comparable.name}: ${known.comparable.trouble}` : "");
    this.say(words, known.trouble || known.silent_since ? "is-warn" : "muted");
    if (known.add_source_href) this.said.append(" ", Object.assign(document.createElement("a"), { href: known.add_source_href, textContent: "Add a Prometheus" }));
    this.source.textContent = known.plots.length ? SOURCES[known.drawn_from] : "";
    this.list(known);
  }

  figure(plot, known) {
    const figure = document.createElement("figure");
    const title = document.createElement("figcaption");
    const { unit } = shown(plot);
    title.textContent = plot.title + (unit ? `, ${unit}` : "");
    if (plot.limits.length) title.append(small(` ${plot.limits.map((limit) => limitOf(limit, plot, "")).join(", ")} ${unit}`));
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
    const { factor, digits, range } = shown(plot), hasSubject = plot.lines.some((line) => line.is_subject);
    const comparables = comparablesOf(plot, known);
    const limits = plot.limits.map(({ severity, value }) => ({ severity, value: value * factor }));
    const ends = limits.map(({ value }) => value);
    const axis = { stroke: of("--ink-3"), grid: { stroke: of("--line"), width: 1 }, ticks: { stroke: of("--line"), width: 1 }, font: `12px ${getComputedStyle(document.body).fontFamily}` };
    const options = {
      width: this.width(), height: HEIGHT_PX, legend: { show: false }, tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      cursor: { sync: { key: SYNC }, points: { size: 5 }, drag: { x: false, y: false } },
      scales: { y: { range: range ? () => range : (_, low, high) => roomy(low === null ? low : Math.min(low, ...ends), high === null ? high : Math.max(high, ...ends)) } },
      axes: [{ ...axis, size: 26, values: (_, at) => at.map((each) => clock(each * 1000).slice(0, 5)) }, { ...axis, size: 46, values: (_, at) => at.map(short) }],
      series: [{}, ...plot.lines.map((line, number) => ({
        label: line.name, stroke: hasSubject && !line.is_subject ? of("--line-strong") : colours[number % colours.length],
        width: line.is_subject ? 2.5 : 1.5, spanGaps: false, points: LONE,
        dash: number >= colours.length && !hasSubject && !comparables.length ? [4, 3] : undefined,
      }))],
      hooks: {
        drawAxes: [(chart) => drawLimits(chart, limits, of)],
        draw: [(chart) => drawMarks(chart, known.marks, of)],
        setCursor: [(chart) => tell(chart, plot, known, values, { factor, digits })],
        setData: [(chart) => tell(chart, plot, known, values, { factor, digits })],
      },
    };
    for (const line of comparables) {
      const number = plot.lines.findIndex((own) => isPair(own, line, known.comparable));
      options.series.push({ label: `${line.name} of ${known.comparable.name}`, stroke: number < 0 ? of("--ink-3") : colours[number % colours.length], width: 1, dash: [4, 3], spanGaps: false, points: LONE });
    }
    return new uPlot(options, [known.times, ...valuesOf(plot, known)], canvas);
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
      const look = Object.assign(document.createElement("i"), { className: `is-${mark.kind in MARKS ? mark.kind : "other"}` });
      line.className = mark.kind === "xid" ? "is-warn" : mark.kind === "finding" ? "is-event" : "";
      line.append(look, `${clock(mark.at)} `, mark.href ? Object.assign(document.createElement("a"), { href: mark.href, textContent: mark.sentence }) : mark.sentence);
      return line;
    }));
    const left = known.marks_left_out + Math.max(0, known.marks.length - 12);
    if (left) this.marks.append(Object.assign(document.createElement("li"), { textContent: `and ${left} earlier` }));
  }
}

function shown(plot) {
  return SHOWN[plot.key] ?? { unit: plot.unit, factor: 1, digits: 0 };
}

// On an axis, which has room for six characters: what a counter has reached in years is longer.
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
function short(value) {
  return Math.abs(value) < 1e5 ? value.toLocaleString("en") : COMPACT.format(value);
}

function roomy(low, high) {
  if (low === null) return [0, 1];
  const room = Math.max((high - low) * 0.1, 1);
  return [Math.max(0, Math.floor(low - room)), Math.ceil(high + room)];
}

// Under the pointer, else the newest of each: what the plot says in numbers.
function tell(chart, plot, known, place, { factor, digits }) {
  const chosen = chart.cursor.idx;
  const hasSubject = plot.lines.some((line) => line.is_subject);
  const words = plot.lines.map((line, number) => {
    const at = chosen ?? newest(line.values);
    const value = at === null ? null : line.values[at];
    const said = document.createElement("span");
    const key = Object.assign(document.createElement("i"), { className: number > 7 && !hasSubject ? "is-dashed" : "" });
    key.style.borderColor = chart.series[number + 1].stroke();
    if (hasSubject && !line.is_subject) said.className = "faint";
    said.append(key, `${line.name} `, Object.assign(document.createElement("b"), { textContent: value === null ? "no sample" : (value * factor).toFixed(digits) }));
    const comparable = comparablesOf(plot, known).find((other) => isPair(line, other, known.comparable));
    if (comparable) {
      const values = aligned(comparable.values, known.comparable.times, known.times);
      const its = values[chosen ?? newest(values)] ?? null;
      said.append(small(` (${its === null ? "no sample" : (its * factor).toFixed(digits)})`));
    }
    return said;
  });
  if (chosen !== null && chosen !== undefined) words.unshift(small(`${clock(known.times[chosen] * 1000)} `));
  place.replaceChildren(...words);
}

// A line each, in the unit that is read; those of the compared node after its own, on the same instants.
function valuesOf(plot, known) {
  const { factor } = shown(plot);
  const lines = [...plot.lines.map(({ values }) => values), ...comparablesOf(plot, known).map(({ values }) => aligned(values, known.comparable.times, known.times))];
  return lines.map((values) => values.map((value) => (value === null ? null : value * factor)));
}

function comparablesOf(plot, known) {
  return known.comparable?.plots.find(({ key }) => key === plot.key)?.lines ?? [];
}

// Which line of the compared node is to be held against which: of two GPUs that are compared, the slice of the same number.
function isPair(own, other, comparable) {
  return comparable.pairs === "slice" ? own.gi_id === other.gi_id : own.name === other.name;
}

// On the instants of the plot: two answers may be a step apart.
function aligned(values, times, wanted) {
  const found = new Map(times.map((at, place) => [at, values[place]]));
  return wanted.map((at) => found.get(at) ?? null);
}

function newest(values) {
  for (let at = values.length - 1; at >= 0; at -= 1) if (values[at] !== null) return at;
  return null;
}

function limitOf({ severity, value }, plot, unit = ` ${shown(plot).unit}`) {
  return `${severity} from ${Number((value * shown(plot).factor).toFixed(1))}${unit}`;
}

// For who does not see it: whom it is about and those beside, those of the compared node or GPU, and limits.
function summary(plot, known) {
  const subjects = plot.lines.filter((line) => line.is_subject), others = plot.lines.filter((line) => !line.is_subject);
  const comparables = comparablesOf(plot, known);
  const said = subjects.map((line) => `${line.name} ${reach([line], plot)}`);
  if (others.length) said.push(`${others.length} ${said.length ? "beside" : "in all"} ${reach(others, plot)}`);
  if (comparables.length) said.push(`${comparables.length} of ${known.comparable.name} ${reach(comparables, plot)}`);
  said.push(...plot.limits.map((limit) => limitOf(limit, plot)));
  return `${plot.title} ${known.window === AROUND ? "around its start" : `over ${known.window}`}: ${said.join("; ")}`;
}

function reach(lines, plot) {
  const some = lines.flatMap((line) => line.values).filter((value) => value !== null);
  const { factor, digits, unit } = shown(plot);
  const [low, high] = [Math.min(...some), Math.max(...some)].map((value) => (value * factor).toFixed(digits));
  return `from ${low} to ${high} ${unit}`;
}

function drawMarks(chart, marks, of) {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const mark of marks) {
    const x = Math.round(chart.valToPos(Date.parse(mark.at) / 1000, "x", true));
    ctx.strokeStyle = ctx.fillStyle = of(MARKS[mark.kind] ?? "--move");
    ctx.setLineDash(mark.kind in MARKS ? [] : [4, 3]);
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (mark.kind === "xid") ctx.fillRect(x - 3 * devicePixelRatio, bbox.top, 6 * devicePixelRatio, 6 * devicePixelRatio);
    if (mark.kind === "plan") drawTriangle(ctx, x, bbox.top, 5 * devicePixelRatio);
  }
  ctx.restore();
}

function drawTriangle(ctx, x, top, half) {
  ctx.beginPath();
  ctx.moveTo(x - half, top);
  ctx.lineTo(x + half, top);
  ctx.lineTo(x, top + 1.6 * half);
  ctx.fill();
}

// From where on the rule calls it wrong: under the lines, with the word for how wrong.
function drawLimits(chart, limits, of) {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.setLineDash([6, 4]);
  ctx.lineWidth = devicePixelRatio;
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  ctx.font = `${12 * devicePixelRatio}px ${getComputedStyle(document.body).fontFamily}`;
  for (const { severity, value } of limits) {
    const y = Math.round(chart.valToPos(value, "y", true));
    ctx.strokeStyle = ctx.fillStyle = of(severity === "critical" ? "--bad" : "--warn");
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.fillText(severity, bbox.left + 4 * devicePixelRatio, y + (severity === "critical" ? -3 : 11) * devicePixelRatio);
  }
  ctx.restore();
}

// What is not drawn, and why: none of it is the same as 0.
function missing(known) {
  const words = [];
  if (known.silent_since) words.push(`The source of telemetry has been silent since ${clock(known.silent_since)} UTC.`);
  if (known.not_drawn.length) words.push(`No samples in this time: ${known.not_drawn.join("; ")}.`);
  if (known.not_kept.length) words.push(`Kept only with a Prometheus: ${known.not_kept.join("; ")}.`);
  if (known.not_exported.length) words.push(`Not exported: ${known.not_exported.join("; ")}.`);
  return words.join(" ");
}

function lone(values) {
  const isNone = (place) => values[place] == null;
  return [...values.keys()].filter((place) => !isNone(place) && isNone(place - 1) && isNone(place + 1));
}

function small(words) {
  return Object.assign(document.createElement("span"), { className: "faint", textContent: words });
}

const started = new WeakMap();

// A part that is fetched again keeps its elements: one may be about something else since.
function start() {
  for (const place of document.querySelectorAll("[data-history]")) {
    const plots = started.get(place);
    if (plots?.about === aboutOf(place)) continue;
    plots?.end();
    started.set(place, new NodePlots(place));
  }
}

function aboutOf({ dataset }) {
  return `${dataset.history} ${dataset.own}`;
}

start();
document.addEventListener("htmx:afterSwap", start);
