// One plot: axes, lines and areas, and the values under the cursor.

const SVG = "http://www.w3.org/2000/svg";
const TEXT_PX = 6.8; // about the width of a letter

function shape(parent, name, attributes, className) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (className) element.setAttribute("class", className);
  parent.append(element);
  return element;
}

function element(parent, name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}

/** What stands for a name on the page. */
const named = (name) => (name.trim() === "" ? "(no name)" : name);

/** The index of the last x that is not above the value; -1 if all are. */
function lastUpTo(xs, value) {
  let low = 0, high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The index of the point that speaks for the value, or -1. */
function pointAt(kind, xs, value) {
  const at = lastUpTo(xs, value);
  if (kind !== "lines" || xs.length === 0) return at;
  const next = Math.min(at + 1, xs.length - 1);
  return at < 0 || xs[next] - value < value - xs[at] ? next : at;
}

const isStacked = (panel, series) => panel.kind === "stacked-areas" && series.style === "solid";

/** Each series with the line below it and its own line, as y values. */
function layers(panel, shown) {
  let below = [];
  return shown.map((series) => {
    const [xs, ys] = series.points;
    if (!isStacked(panel, series)) return { series, xs, tops: ys };
    const bottoms = xs.map((_, at) => below[at] ?? 0);
    const tops = ys.map((y, at) => y + bottoms[at]);
    below = tops;
    return { series, xs, bottoms, tops };
  });
}

/** The path through points; steps go sideways first. */
function path(kind, xs, ys, x, y, end) {
  const pixel = (value) => value.toFixed(1);
  let text = "";
  for (let at = 0; at < xs.length; at++) {
    const to = `${pixel(x.from(xs[at]))} ${pixel(y.from(ys[at]))}`;
    if (at === 0) text += `M${to}`;
    else if (kind === "lines") text += `L${to}`;
    else text += `H${pixel(x.from(xs[at]))}V${pixel(y.from(ys[at]))}`;
  }
  const last = xs[xs.length - 1];
  if (kind !== "lines" && xs.length > 0 && end > last) text += `H${pixel(x.from(end))}`;
  return text;
}

/** The area between two lines with the same x values. */
function area(kind, xs, lows, highs, x, y) {
  const corners = (ys) => {
    const list = [];
    xs.forEach((at, index) => {
      if (kind !== "lines" && index > 0) list.push([at, ys[index - 1]]);
      list.push([at, ys[index]]);
    });
    return list;
  };
  const all = [...corners(highs), ...corners(lows).reverse()];
  const pixels = all.map(([a, b]) => `${x.from(a).toFixed(1)} ${y.from(b).toFixed(1)}`);
  return pixels.length ? `M${pixels.join("L")}Z` : "";
}

/** Draws the axes and returns their scales. */
function drawAxes(svg, panel, view, width, height) {
  const yCount = Math.max(2, Math.floor((height - 70) / 42));
  const [yLow, yHigh] = niceEnds(panel.y.scale, view.yMin, view.yMax, yCount);
  const formatY = TICK_FORMATS[panel.y.scale], formatX = TICK_FORMATS[panel.x.scale];
  const yLabels = tickValues(panel.y.scale, yLow, yHigh, yCount).map(formatY);
  const left = 12 + TEXT_PX * Math.max(...yLabels.map((label) => label.length));
  const right = width - 12, top = 26, bottom = height - 42;
  const y = scale(panel.y.scale, yLow, yHigh, bottom, top, yCount);
  const x = scale(panel.x.scale, view.xMin, view.xMax, left, right, Math.max(2, (right - left) / 72));
  for (const value of y.ticks) {
    const at = Math.round(y.from(value)) + 0.5;
    shape(svg, "line", { x1: left, x2: right, y1: at, y2: at }, value === yLow ? "axis" : "grid");
    const label = shape(svg, "text", { x: left - 6, y: at + 4, "text-anchor": "end" });
    label.textContent = formatY(value);
  }
  let free = -Infinity;
  for (const value of x.ticks) {
    const text = formatX(value), half = (text.length * TEXT_PX) / 2;
    const at = x.from(value);
    shape(svg, "line", { x1: at, x2: at, y1: bottom, y2: bottom + 4 }, "axis");
    const middle = Math.min(at, width - half - 2);
    if (middle - half < free) continue;
    free = middle + half + 10;
    const label = shape(svg, "text", { x: middle, y: bottom + 17, "text-anchor": "middle" });
    label.textContent = text;
  }
  shape(svg, "text", { x: 2, y: 14 }).textContent = panel.y.label;
  const label = shape(svg, "text", { x: right, y: height - 6, "text-anchor": "end" });
  label.textContent = panel.x.label;
  return { x, y, left, right, top, bottom };
}

let clips = 0;

/** A figure with one plot. `card` knows what is shown; see page.js. */
class Plot {
  constructor(card, run, caption) {
    this.card = card;
    this.run = run;
    this.figure = element(null, "figure", "plot");
    if (caption) element(this.figure, "figcaption", "", caption);
    this.svg = shape(this.figure, "svg", { tabindex: 0, role: "img" });
    const title = caption ? `${card.panel.title}, ${caption}` : card.panel.title;
    this.svg.setAttribute("aria-label", `${title}. Arrow keys read values, + and - zoom.`);
    this.values = element(this.figure, "div", "values");
    this.values.hidden = true;
    this.clip = `clip${clips++}`;
    this.listen();
  }

  draw() {
    const { panel } = this.card;
    const width = this.svg.clientWidth, height = this.svg.clientHeight;
    if (width < 60) return;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren();
    const view = this.card.view();
    const frame = (this.frame = drawAxes(this.svg, panel, view, width, height));
    const { x, y, left, right, top, bottom } = frame;
    const clip = shape(this.svg, "clipPath", { id: this.clip });
    shape(clip, "rect", { x: left, y: top - 2, width: right - left, height: bottom - top + 3 });
    const inside = shape(this.svg, "g", { "clip-path": `url(#${this.clip})` });
    this.layers = layers(panel, this.card.shown(this.run));
    for (const layer of this.layers) {
      const { series, xs, bottoms, tops } = layer;
      const colour = { style: `--colour: ${this.card.colour(series)}` };
      const group = (layer.group = shape(inside, "g", colour));
      if (bottoms) {
        const d = area(panel.kind, xs, bottoms, tops, x, y);
        shape(group, "path", { d }, "area");
        continue;
      }
      const [lows, highs] = series.band;
      if (lows.length) shape(group, "path", { d: area(panel.kind, xs, lows, highs, x, y) }, "band");
      if (series.style === "filled") {
        const floor = xs.map(() => y.low);
        shape(group, "path", { d: area(panel.kind, xs, floor, tops, x, y) }, "band");
      }
      const d = path(panel.kind, xs, tops, x, y, view.xEnd);
      shape(group, "path", { d }, `line ${series.style}`);
    }
    this.overlay = shape(this.svg, "g", {});
    this.show(this.cursor);
  }

  /** Fades the series for which the test fails. */
  highlight(test) {
    for (const { series, group } of this.layers ?? []) {
      group.setAttribute("class", test(series) ? "" : "dim");
    }
  }

  /** Shows the values at x, or only a line there; `undefined`: hides them. */
  show(at, withValues) {
    this.cursor = at;
    this.overlay?.replaceChildren();
    this.values.hidden = true;
    if (at === undefined || !this.frame) return;
    const { panel } = this.card;
    const { x, y, top, bottom } = this.frame;
    const read = this.layers
      .map((layer) => ({ ...layer, index: pointAt(panel.kind, layer.xs, at) }))
      .filter((layer) => layer.index >= 0);
    if (read.length === 0) return;
    const snapped = panel.kind === "lines" ? read[0].xs[read[0].index] : at;
    const middle = x.from(snapped);
    shape(this.overlay, "line", { x1: middle, x2: middle, y1: top, y2: bottom }, "cursor");
    for (const { series, tops, bottoms, index } of read) {
      if (bottoms) continue;
      const dot = { cx: middle, cy: y.from(tops[index]), r: 4, style: `--colour: ${this.card.colour(series)}` };
      shape(this.overlay, "circle", dot, "dot");
    }
    if (!withValues) return;
    this.tell(snapped, read);
    const { left, right } = this.frame;
    const onLeft = middle > (left + right) / 2;
    this.values.style.left = onLeft ? "" : `${middle + 12}px`;
    this.values.style.right = onLeft ? `${this.svg.clientWidth - middle + 12}px` : "";
  }

  tell(at, read) {
    const { panel } = this.card;
    this.values.replaceChildren();
    const where = FORMATS[panel.x.scale](at);
    element(this.values, "div", "at", `${panel.x.label}: ${where}`);
    const format = FORMATS[panel.y.scale];
    let sum = 0, areas = 0;
    // From top to bottom, as they lie in the plot.
    const order = panel.kind === "stacked-areas" ? [...read].reverse() : read;
    for (const { series, index } of order) {
      const value = series.points[1][index];
      if (isStacked(panel, series)) {
        sum += value;
        areas += 1;
        if (value === 0) continue;
      }
      const [lows, highs] = series.band;
      const isWide = lows.length > 0 && lows[index] < highs[index];
      const band = isWide ? ` (${number(lows[index])} to ${number(highs[index])})` : "";
      const row = element(this.values, "div", "value");
      const swatch = element(row, "span", `swatch ${series.style}`);
      swatch.style.setProperty("--colour", this.card.colour(series));
      element(row, "span", "", named(series.name));
      element(row, "span", "", format(value) + band);
    }
    if (areas > 1) {
      const row = element(this.values, "div", "value sum");
      element(row, "span", "swatch none");
      for (const text of ["together", format(sum)]) element(row, "span", "", text);
    }
    this.values.hidden = false;
  }

  /** The values as one sentence. */
  said() {
    const rows = [...this.values.children];
    const words = (row) => (row.children.length ? [...row.children].map((cell) => cell.textContent) : [row.textContent]);
    return rows.map((row) => words(row).filter(Boolean).join(" ")).join(", ");
  }

  listen() {
    const { svg, card } = this;
    const at = (event) => {
      const { x, left, right } = this.frame;
      const pixel = event.clientX - svg.getBoundingClientRect().left;
      return x.to(Math.min(right, Math.max(left, pixel)));
    };
    svg.addEventListener("pointerdown", (event) => {
      if (!this.frame) return;
      card.show(at(event), this);
      if (event.pointerType !== "mouse" || event.button !== 0) return;
      this.from = at(event);
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      if (!this.frame) return;
      card.show(at(event), this);
      if (this.from !== undefined) this.choose(this.from, at(event));
    });
    svg.addEventListener("pointerup", (event) => {
      if (this.from === undefined) return;
      const [low, high] = [this.from, at(event)].sort((a, b) => a - b);
      this.from = undefined;
      const { x } = this.frame;
      if (x.from(high) - x.from(low) > 8) card.zoom([low, high]);
    });
    svg.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") card.show(undefined);
    });
    svg.addEventListener("dblclick", () => card.zoom(undefined));
    svg.addEventListener("blur", () => card.show(undefined));
    svg.addEventListener("keydown", (event) => this.key(event));
  }

  choose(from, to) {
    const { x, top, bottom } = this.frame;
    const [low, high] = [x.from(from), x.from(to)].sort((a, b) => a - b);
    const box = { x: low, y: top, width: high - low, height: bottom - top };
    shape(this.overlay, "rect", box, "chosen");
  }

  key(event) {
    const xs = this.layers?.[0]?.xs ?? [];
    const { low, high } = this.frame?.x ?? {};
    if (xs.length === 0) return;
    const now = pointAt(this.card.panel.kind, xs, this.cursor ?? low);
    const step = event.shiftKey ? 10 : 1;
    const moves = { ArrowLeft: now - step, ArrowRight: now + step, Home: 0, End: xs.length - 1 };
    if (event.key in moves) {
      const next = Math.min(xs.length - 1, Math.max(0, moves[event.key]));
      this.card.show(Math.min(high, Math.max(low, xs[next])), this);
      this.card.announce(this.said());
    } else if (event.key === "+" || event.key === "-") {
      const factor = event.key === "+" ? 0.5 : 2;
      const middle = this.frame.x.from(this.cursor ?? (low + high) / 2);
      const ends = [this.frame.left, this.frame.right].map((end) => middle + (end - middle) * factor);
      this.card.zoom(ends.map((end) => this.frame.x.to(end)));
    } else if (event.key === "Escape") {
      this.card.show(undefined);
      this.card.zoom(undefined);
    } else {
      return;
    }
    event.preventDefault();
  }
}
