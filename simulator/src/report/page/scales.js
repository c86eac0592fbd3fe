// Values, positions and ticks. A scale has from(value) -> pixel, to(pixel) -> value, ticks.

const MINUTE = 60, HOUR = 3600, DAY = 86400;

/** A number as people write it, with as many digits as help. */
function number(value) {
  const size = Math.abs(value);
  const digits = size >= 1000 || Number.isInteger(value) ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 4;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

/** Seconds in the two largest units that they have. */
function duration(seconds) {
  const units = [[DAY, "d"], [HOUR, "h"], [MINUTE, "min"], [1, "s"]];
  let rest = Math.round(seconds);
  if (seconds > 0 && rest === 0) return `${number(seconds)} s`;
  const at = units.findIndex(([size]) => rest >= size);
  if (at < 0) return "0 s";
  const parts = [];
  for (const [size, name] of units.slice(at, at + 2)) {
    const count = Math.floor(rest / size);
    if (count > 0) parts.push(`${count} ${name}`);
    rest -= count * size;
  }
  return parts.join(" ");
}

const FORMATS = {
  time: duration,
  "log-seconds": duration,
  percent: (value) => `${number(value)} %`,
  number,
};

/** Ticks may be short where the value under the cursor is not. */
const TICK_FORMATS = {
  ...FORMATS,
  time: (value) => (value === 0 ? "0" : duration(value)),
  number: (value) => {
    const units = [[1e9, "G"], [1e6, "M"], [1e4, "k"]];
    const unit = units.find(([size]) => Math.abs(value) >= size);
    if (!unit) return number(value);
    const size = unit[1] === "k" ? 1e3 : unit[0];
    return `${number(value / size)}${unit[1]}`;
  },
};

/** The next of 1, 2, 5, 10, 20, 25, 50, 100 ... */
function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  const steps = power >= 10 ? [1, 2, 2.5, 5, 10] : [1, 2, 5, 10];
  return power * steps.find((step) => step * power >= rough * 0.999);
}

const TIME_STEPS = [
  1, 2, 5, 10, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY,
];
const LOG_TICKS = [
  0, 1, 10, MINUTE, 10 * MINUTE, HOUR, 10 * HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY, 3650 * DAY,
];

function tickValues(kind, low, high, count) {
  if (kind === "log-seconds") return LOG_TICKS.filter((value) => value >= low && value <= high);
  const rough = (high - low) / Math.max(1, count);
  const step = (kind === "time" && TIME_STEPS.find((step) => step >= rough * 0.8)) || niceStep(rough);
  const values = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high * (1 + 1e-9); at++) {
    values.push(Number((at * step).toPrecision(12)));
  }
  return values;
}

/** The ends of an axis around the values, with a tick at each. */
function niceEnds(kind, low, high, count) {
  if (!(high > low)) return low === 0 ? [0, kind === "percent" ? 100 : 1] : niceEnds(kind, low * 0.99, low * 1.01, count);
  if (kind === "percent" && low === 0 && high > 60 && high <= 100) return [0, 100];
  const step = niceStep((high - low) / count);
  const ends = [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)];
  return ends.map((end) => Number((end * step).toPrecision(12)));
}

/** Maps [low, high] to the pixels [start, end]. */
function scale(kind, low, high, start, end, count) {
  const bend = kind === "log-seconds" ? (value) => Math.log10(1 + Math.max(0, value)) : (value) => value;
  const unbend = kind === "log-seconds" ? (value) => 10 ** value - 1 : (value) => value;
  const first = bend(low), span = bend(high) - first || 1;
  return {
    low,
    high,
    from: (value) => start + ((bend(value) - first) / span) * (end - start),
    to: (pixel) => unbend(first + ((pixel - start) / (end - start)) * span),
    ticks: tickValues(kind, low, high, count),
  };
}
