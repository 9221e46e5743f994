// Small plots of the last ten minutes, as SVG. This file does not depend on what they show.

const ns = "http://www.w3.org/2000/svg";
const width = 300, height = 104, left = 34, right = 4, top = 8, bottom = 16;

function svg(name, attributes, text) {
  const node = document.createElementNS(ns, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

// ceiling returns a round number that is at least the value.
export function ceiling(value) {
  if (!(value > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * unit).find((step) => step >= value * 0.999);
}

// brief returns a number as a short text.
export function brief(value) {
  if (value >= 1e6) return trim(value / 1e6) + "M";
  if (value >= 1e3) return trim(value / 1e3) + "k";
  return trim(value);
}

function trim(value) {
  return String(Number(value >= 100 ? value.toFixed(0) : value.toPrecision(2)));
}

// downsample reduces a column to that many points. Each point is the maximum of its samples, so
// that a peak of one second stays visible.
function downsample(values, keep, points) {
  const missing = keep - values.length, size = keep / points, out = [];
  for (let i = 0; i < points; i++) {
    let largest = null;
    for (let j = Math.floor(i * size); j < Math.floor((i + 1) * size); j++) {
      const value = j < missing ? null : values[j - missing];
      if (value !== null && value !== undefined && (largest === null || value > largest)) largest = value;
    }
    out.push(largest);
  }
  return out;
}

// duration returns a number of ms as a short text, or a dash for null.
export function duration(ms) {
  if (ms === null) return "–";
  return ms >= 1000 ? `${trim(ms / 1000)} s` : ms >= 10 ? `${Math.round(ms)} ms` : `${ms.toFixed(2)} ms`;
}

// recent returns the mean of the last 5 samples of a column, or null if they have no value.
export function recent(column) {
  const last = column.slice(-5).filter((value) => value !== null);
  return last.length ? last.reduce((a, b) => a + b, 0) / last.length : null;
}

// Plot draws one plot: a title, curves with names, and a function that formats a figure. Without
// names, the curves have the colours of the masters' table.
export class Plot {
  constructor(title, write, names, filled) {
    this.write = write;
    this.filled = filled;
    this.element = document.createElement("div");
    this.element.className = "plot";
    const heading = document.createElement("h3");
    heading.textContent = title;
    this.picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": title });
    this.legend = document.createElement("p");
    this.legend.className = "legend";
    this.element.append(heading, this.picture, this.legend);
    this.names = names;
  }

  // draw shows columns, whose last value is the most recent one. keep is the length of a full
  // column.
  draw(columns, keep) {
    const box = this.picture.getBoundingClientRect();
    const wide = Math.max(200, Math.round(box.width) || width);
    this.picture.setAttribute("viewBox", `0 0 ${wide} ${height}`);
    const points = Math.min(keep, Math.max(60, Math.floor((wide - left - right) / 2)));
    const curves = columns.map((column) => downsample(column, keep, points));
    const most = ceiling(Math.max(0, ...curves.flat().filter((value) => value !== null)));
    const x = (i) => left + (i / (points - 1)) * (wide - left - right);
    const y = (value) => height - bottom - (value / most) * (height - top - bottom);
    const nodes = [];
    for (const share of [0, 0.5, 1]) {
      nodes.push(svg("line", { class: "grid", x1: left, x2: wide - right, y1: y(most * share), y2: y(most * share) }));
      nodes.push(svg("text", { class: "axis", x: left - 5, y: y(most * share) + 3, "text-anchor": "end" }, brief(most * share)));
    }
    for (const [share, text, anchor] of [[0, "10 min ago", "start"], [0.5, "5", "middle"], [1, "now", "end"]]) {
      nodes.push(svg("text", { class: "axis", x: left + share * (wide - left - right), y: height - 3, "text-anchor": anchor }, text));
    }
    curves.forEach((curve, i) => nodes.push(...this.curve(curve, i, x, y)));
    this.picture.replaceChildren(...nodes);
    this.legend.replaceChildren(...(this.names ? this.names.map((name, i) => this.label(name, columns[i] || [], i)) : ["colours: see the table of masters"]));
  }

  curve(values, i, x, y) {
    let line = "", area = "", run = [];
    const finish = () => {
      if (run.length === 1) run.push([run[0][0] + 1.2, run[0][1]]); // a dot
      if (run.length) {
        line += "M" + run.map(([a, b]) => `${a.toFixed(1)} ${b.toFixed(1)}`).join("L");
        area += `M${run[0][0].toFixed(1)} ${y(0)}L` + run.map(([a, b]) => `${a.toFixed(1)} ${b.toFixed(1)}`).join("L") + `L${run.at(-1)[0].toFixed(1)} ${y(0)}Z`;
      }
      run = [];
    };
    values.forEach((value, j) => (value === null ? finish() : run.push([x(j), y(value)])));
    finish();
    const nodes = [svg("path", { class: `curve s${i % 7}`, d: line })];
    if (this.filled && i === 0) nodes.unshift(svg("path", { class: "area s0", d: area }));
    return nodes;
  }

  // label returns a curve's name with its recent figure.
  label(name, column, i) {
    const node = document.createElement("span");
    node.className = `s${i % 7}`;
    const text = document.createElement("span");
    text.className = "dim";
    const figure = recent(column);
    text.textContent = figure === null ? name : `${name} ${this.write(figure)}`;
    node.append(text);
    return node;
  }
}
