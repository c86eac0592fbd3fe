// The page: facts, runs, cards with plots, tables. All text is set as text, never as markup.

const report = JSON.parse(document.getElementById("data").textContent);
for (const series of report.panels.flatMap((panel) => panel.series)) {
  series.points = series.points.map(column);
  series.band = series.band.map(column);
}
/** A column with even steps is written as where it begins, the step and the count. */
function column(values) {
  if (Array.isArray(values)) return values;
  return Array.from({ length: values.count }, (_, at) => values.from + at * values.step);
}

const main = document.getElementById("main");
const narrow = matchMedia("(max-width: 640px)");
const hiddenRuns = new Set();
const cards = [];
const spoken = element(main, "p", "spoken");
spoken.setAttribute("role", "status");

function save(name, lines) {
  const cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const text = lines.map((line) => line.map((one) => cell(String(one))).join(",") + "\n").join("");
  const link = element(null, "a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = `${name.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
}

function button(parent, className, text, onClick) {
  const made = element(parent, "button", className, text);
  made.type = "button";
  made.addEventListener("click", onClick);
  return made;
}

/** A button with a swatch that switches something on and off. */
function toggle(parent, name, colour, style, onChange) {
  const made = button(parent, "toggle", undefined, () => {
    const pressed = made.getAttribute("aria-pressed") !== "true";
    made.setAttribute("aria-pressed", pressed);
    onChange(pressed);
  });
  made.setAttribute("aria-pressed", "true");
  made.title = name;
  element(made, "span", `swatch ${style}`).style.setProperty("--colour", colour);
  element(made, "span", "", named(name));
  return made;
}

const unique = (list) => [...new Set(list)];
const colourOf = (index) => `var(--c${index % 10})`;

/** One panel of the report. */
class Card {
  constructor(panel) {
    this.panel = panel;
    this.hidden = new Set();
    const coloured = panel.series.filter((one) => one.style !== "dashed");
    this.names = unique(coloured.map((one) => one.name));
    this.choices = unique(panel.series.map((one) => one.choice).filter((one) => one !== null));
    this.choice = this.choices[0];
    this.section = element(main, "section", "card");
    this.head();
    this.legend = element(this.section, "div", "legend");
    this.grid = element(this.section, "div", "plots");
    this.plots = [];
    new ResizeObserver(() => this.draw()).observe(this.grid);
  }

  head() {
    const { panel } = this;
    const bar = element(this.section, "div", "bar");
    element(bar, "h2", "", panel.title);
    element(bar, "p", "note", panel.note);
    const tools = element(bar, "div", "tools");
    if (this.choices.length > 1) {
      const label = element(tools, "label", "", panel.choice ?? "");
      this.select = element(label, "select");
      for (const choice of this.choices) element(this.select, "option", "", named(choice)).value = choice;
      this.select.addEventListener("change", () => choose(panel.choice, this.select.value));
    }
    this.whole = button(tools, "quiet", "Reset zoom", () => this.zoom(undefined));
    this.whole.hidden = true;
    const csv = button(tools, "quiet", "CSV", () => save(panel.title, this.lines()));
    csv.setAttribute("aria-label", `Save ${panel.title} as CSV`);
  }

  /** What is drawn for a run; `undefined`: for all. */
  shown(run) {
    return this.present(run).filter((series) => !this.hidden.has(series.name));
  }

  present(run) {
    return this.panel.series.filter(
      ({ run: own, choice }) =>
        (own === null || ((run === undefined || own === run) && !hiddenRuns.has(own))) &&
        (choice === null || choice === this.choice)
    );
  }

  colour(series) {
    const beside = this.panel.arrangement === "side-by-side";
    if (series.style === "dashed" && (beside || series.run === null)) return "var(--text)";
    if (!beside && series.run !== null) return colourOf(series.run);
    const index = this.names.indexOf(series.name);
    return colourOf(beside ? index : report.runs.length + index);
  }

  /** The part of the axes that is shown, the same for all plots of the card. */
  view() {
    const runs = this.runs();
    const all = runs.flatMap((run) => layers(this.panel, this.shown(run)));
    const xs = all.flatMap((layer) => [layer.xs[0], layer.xs[layer.xs.length - 1]]).filter(Number.isFinite);
    const xEnd = xs.length ? Math.max(...xs) : 1;
    const [xMin, xMax] = this.range ?? [Math.min(0, ...xs), xEnd];
    // Areas are read by their height, so their axis begins at 0 at every zoom.
    let yMin = this.range && this.panel.kind !== "stacked-areas" ? Infinity : 0;
    let yMax = -Infinity;
    for (const { xs, tops, series } of all) {
      const first = Math.max(0, lastUpTo(xs, xMin)), last = lastUpTo(xs, xMax);
      for (const ys of [tops, ...series.band]) {
        for (const y of ys.slice(first, last + 1)) {
          yMin = Math.min(yMin, y);
          yMax = Math.max(yMax, y);
        }
      }
    }
    if (yMax < yMin) [yMin, yMax] = [0, 0];
    return { xMin, xMax, xEnd, yMin, yMax };
  }

  runs() {
    if (this.panel.arrangement === "together") return [undefined];
    const runs = report.runs.map((_, run) => run).filter((run) => !hiddenRuns.has(run));
    return runs.filter((run) => this.panel.series.some((one) => one.run === run));
  }

  /** After runs, the choice or hidden series have changed. */
  update() {
    const runs = this.runs();
    const captions = this.panel.arrangement === "side-by-side" && report.runs.length > 1;
    const isSame = runs.length === this.plots.length && runs.every((run, at) => this.plots[at].run === run);
    if (!isSame) {
      this.plots = runs.map((run) => new Plot(this, run, captions ? report.runs[run] : ""));
      this.grid.replaceChildren(...this.plots.map((plot) => plot.figure));
      const columns = runs.length <= 3 ? Math.max(1, runs.length) : runs.length === 4 ? 2 : 3;
      this.grid.style.setProperty("--columns", columns);
      this.grid.classList.toggle("several", runs.length > 1);
    }
    this.fillLegend();
    const isEmpty = runs.length === 0 || this.present(undefined).length === 0;
    this.grid.classList.toggle("empty", isEmpty);
    if (isEmpty) {
      this.plots = [];
      this.grid.replaceChildren("Nothing to show.");
    }
    this.draw();
  }

  fillLegend() {
    const present = this.present(undefined);
    const dashed = present.filter((series) => series.style === "dashed");
    const names = unique([...present.filter((series) => !dashed.includes(series)), ...dashed].map((series) => series.name));
    if (this.legendNames === names.join("\n")) return;
    this.legendNames = names.join("\n");
    this.legend.replaceChildren();
    for (const name of names) {
      const those = present.filter((one) => one.name === name);
      const colours = unique(those.map((series) => this.colour(series)));
      const colour = colours.length === 1 ? colours[0] : "var(--text)";
      const made = toggle(this.legend, name, colour, those[0].style, (pressed) => {
        if (pressed) this.hidden.delete(name);
        else this.hidden.add(name);
        this.draw();
      });
      made.setAttribute("aria-pressed", !this.hidden.has(name));
      // What has the same colour belongs to it, for example the published curve.
      const belongs = (series) => series.name === name || this.colour(series) === colour;
      const highlight = (test) => this.plots.forEach((plot) => plot.highlight(test));
      for (const event of ["pointerenter", "focus"]) made.addEventListener(event, () => highlight(belongs));
      for (const event of ["pointerleave", "blur"]) made.addEventListener(event, () => highlight(() => true));
    }
  }

  draw() {
    for (const plot of this.plots) plot.draw();
  }

  /** The values at x in all plots, or only in this one where they would cover the next. */
  show(at, pointed) {
    for (const plot of this.plots) plot.show(at, plot === pointed || !narrow.matches);
  }

  announce(text) {
    spoken.textContent = text;
  }

  zoom(range) {
    this.range = undefined;
    if (range) {
      const { xMin, xMax } = this.view();
      const [low, high] = [Math.max(xMin, range[0]), Math.min(xMax, range[1])];
      if (high > low && (low > xMin || high < xMax)) this.range = [low, high];
    }
    this.whole.hidden = !this.range;
    this.draw();
  }

  lines() {
    const lines = [["run", this.panel.choice ?? "choice", "series", "x", "y", "low", "high"]];
    for (const { run, choice, name, points, band } of this.panel.series) {
      points[0].forEach((x, at) => {
        const range = band[0].length ? [band[0][at], band[1][at]] : ["", ""];
        lines.push([run === null ? "" : report.runs[run], choice ?? "", name, x, points[1][at], ...range]);
      });
    }
    return lines;
  }
}

/** The same queue or workload in all cards that have it. */
function choose(label, value) {
  for (const card of cards) {
    if (card.panel.choice !== label || !card.choices.includes(value)) continue;
    card.choice = value;
    if (card.select) card.select.value = value;
    card.update();
  }
}

const ROWS_FIRST = 15;

function table({ title, note, columns, rows, rows_left_out: leftOut }) {
  const section = element(main, "section", "card listing");
  const bar = element(section, "div", "bar");
  element(bar, "h2", "", title);
  element(bar, "p", "note", note);
  const tools = element(bar, "div", "tools");
  button(tools, "quiet", "CSV", () => save(title, [columns, ...rows])).setAttribute("aria-label", `Save ${title} as CSV`);
  if (rows.length === 0) {
    element(section, "p", "note", "None.");
    return;
  }
  const scroll = element(section, "div", "scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", title);
  const made = element(scroll, "table");
  const value = (text) => Number(text.replace(/[, %]/g, ""));
  const isNumber = columns.map((_, at) => rows.length > 0 && rows.every((row) => row[at] === "" || (row[at] !== undefined && !Number.isNaN(value(row[at])))));
  const head = element(element(made, "thead"), "tr");
  const body = element(made, "tbody");
  let order = rows, all = rows.length <= ROWS_FIRST + 5;
  const more = button(section, "quiet more", `Show all ${rows.length} rows`, () => { all = true; fill(); });
  const fill = () => {
    more.hidden = all;
    body.replaceChildren();
    for (const row of all ? order : order.slice(0, ROWS_FIRST)) {
      const line = element(body, "tr");
      row.forEach((text, at) => element(line, "td", isNumber[at] ? "number" : text.length > 60 ? "long" : "", text));
    }
  };
  columns.forEach((column, at) => {
    const cell = element(head, "th", isNumber[at] ? "number" : "");
    cell.scope = "col";
    button(cell, "", column, () => {
      const down = cell.getAttribute("aria-sort") === "ascending";
      for (const other of head.children) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      const compare = isNumber[at] ? (a, b) => value(a[at]) - value(b[at]) : (a, b) => (a[at] < b[at] ? -1 : a[at] > b[at] ? 1 : 0);
      order = [...rows].sort((a, b) => (down ? -compare(a, b) : compare(a, b)));
      fill();
    });
  });
  fill();
  if (leftOut > 0) element(section, "p", "note", `${number(leftOut)} more rows are in the CSV files beside this page.`);
}

for (const [name, value] of report.facts) {
  const fact = element(document.getElementById("facts"), "div");
  element(fact, "dt", "", name);
  element(fact, "dd", "", value);
}

for (const panel of report.panels) cards.push(new Card(panel));
for (const card of cards) card.update();
report.tables.forEach(table);

if (report.runs.length > 1) {
  const bar = document.getElementById("runs");
  bar.hidden = false;
  report.runs.forEach((name, run) =>
    toggle(bar, name, colourOf(run), "solid", (pressed) => {
      if (pressed) hiddenRuns.delete(run);
      else hiddenRuns.add(run);
      for (const card of cards) card.update();
    })
  );
}

const theme = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");
let chosen;
const isDark = () => (chosen ?? (system.matches ? "dark" : "light")) === "dark";
const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
theme.addEventListener("click", () => {
  chosen = isDark() ? "light" : "dark";
  document.documentElement.style.colorScheme = chosen;
  nameTheme();
});
system.addEventListener("change", nameTheme);
nameTheme();
