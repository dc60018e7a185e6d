"use strict";
// Charts of this page: curves over an axis the reader chooses, with a read-out, a legend that toggles, and log scales.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const DASHES = ["", "7 4", "2 4", "9 3 2 3"];
  const SHADES = 8;

  const node = (parent, name, attributes = {}, text) => {
    const made = parent.namespaceURI === SVG || name === "svg" ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return parent.appendChild(made);
  };

  const raise = (digits) => [...String(digits)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[+c])).join("");
  const format = (value, digits = 3) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e-3 && size < 1e5) return String(+value.toPrecision(Math.max(digits, size >= 1000 ? 5 : 0)));
    const exponent = Math.floor(Math.log10(size) + 1e-12);
    const mantissa = +(value / 10 ** exponent).toPrecision(digits);
    return (mantissa === 1 ? "" : mantissa + "·") + "10" + raise(exponent);
  };

  const power = (value) => {
    const exponent = Math.round(Math.log10(value)), exact = Math.abs(value / 10 ** exponent - 1) < 1e-9;
    return !exact ? format(value) : exponent === 0 ? "1" : exponent === 1 ? "10" : "10" + raise(exponent);
  };

  // A scale maps values to pixels and knows its ticks; minor ticks have no label.
  const linear = (low, high, from, to) => {
    if (low === high) [low, high] = [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
    const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= rough);
    const ticks = [];
    for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-12) + 1e-12 * step; k++) ticks.push({ at: +(k * step).toPrecision(12), label: true });
    return { map: (v) => from + ((v - low) / (high - low)) * (to - from), ticks, name: format };
  };
  const logarithmic = (low, high, from, to) => {
    let [a, b] = [Math.log10(low), Math.log10(high)];
    if (b - a < 0.1) [a, b] = [a - 0.3, b + 0.3];
    const every = Math.max(1, Math.ceil((b - a) / 7)), narrow = b - a < 1.6, ticks = [];
    for (let k = Math.floor(a); k <= Math.ceil(b); k++)
      for (const m of every > 1 ? [1] : [1, 2, 5]) {
        const at = m * 10 ** k, where = Math.log10(at);
        if (where >= a - 1e-9 && where <= b + 1e-9) ticks.push({ at, label: m === 1 ? k % every === 0 : narrow });
      }
    return { map: (v) => from + ((Math.log10(v) - a) / (b - a)) * (to - from), ticks, name: narrow ? format : power };
  };

  class Chart {
    constructor(figure) {
      this.figure = figure;
      this.data = JSON.parse(figure.querySelector("script").textContent);
      this.axes = Object.keys(this.data.curves[0].x);
      this.axis = this.axes[0];
      this.log = { x: false, y: this.data.log };
      this.shown = this.data.curves.map(() => true);
      this.cursor = null;
      this.controls();
      this.plot = node(figure, "div", { class: "plot" });
      this.legend();
      this.live = node(figure, "p", { class: "live", "aria-live": "polite" });
      let width = 0;
      new ResizeObserver(([entry]) => {
        if (Math.abs(entry.contentRect.width - width) > 1) { width = entry.contentRect.width; this.draw(); }
      }).observe(this.plot);
      this.draw();
    }

    button(parent, text, pressed, act) {
      const made = node(parent, "button", { type: "button", "aria-pressed": pressed() }, text);
      made.addEventListener("click", () => { act(); this.refresh(); this.draw(); });
      (this.buttons ??= []).push([made, pressed]);
      return made;
    }

    refresh() {
      for (const [button, pressed] of this.buttons) button.setAttribute("aria-pressed", pressed());
    }

    controls() {
      const row = node(this.figure, "div", { class: "controls", role: "group", "aria-label": "Axes" });
      if (this.axes.length > 1)
        for (const axis of this.axes) this.button(row, axis, () => this.axis === axis, () => { this.axis = axis; this.cursor = null; });
      this.button(row, "log " + (this.axes.length > 1 ? "horizontal" : this.axis), () => this.log.x, () => (this.log.x = !this.log.x));
      this.button(row, "log vertical", () => this.log.y, () => (this.log.y = !this.log.y));
    }

    legend() {
      const row = node(this.figure, "div", { class: "legend", role: "group", "aria-label": "Curves" });
      this.data.curves.forEach((curve, k) => {
        const button = this.button(row, "", () => this.shown[k], () => (this.shown[k] = !this.shown[k]));
        node(button, "i", { style: `background:${this.colour(k)}` });
        button.append(curve.label);
      });
    }

    colour(k) { return `var(--c${this.data.curves[k].shade % SHADES})`; }

    // Points of the shown curves that the present scales can show.
    lines() {
      return this.data.curves.flatMap((curve, k) => {
        if (!this.shown[k]) return [];
        const points = [];
        curve.x[this.axis].forEach((x, n) => {
          const y = curve.y[n];
          if (x === null || y === null || (this.log.x && x <= 0) || (this.log.y && y === 0)) return;
          points.push({ x, y: this.log.y ? Math.abs(y) : y, value: y });
        });
        return points.length ? [{ k, label: curve.label, points }] : [];
      });
    }

    draw() {
      const width = Math.max(260, this.plot.clientWidth || 600), height = Math.round(Math.min(340, Math.max(220, width * 0.55)));
      const box = { left: 58, right: width - 12, top: 12, bottom: height - 40 };
      const focused = this.svg && document.activeElement === this.svg;
      this.plot.replaceChildren();
      const svg = (this.svg = node(this.plot, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0 }));
      const lines = (this.drawn = this.lines());
      const title = this.figure.querySelector("figcaption").textContent;
      svg.setAttribute("aria-label", `${title} against ${this.axis}: ${lines.map((l) => `${l.label}, last value ${format(l.points.at(-1).value)}`).join("; ") || "nothing shown"}. Arrow keys move a read-out.`);
      this.figure.dataset.curves = lines.length;
      this.figure.dataset.axis = this.axis;
      if (!lines.length) {
        node(svg, "text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "nothing to show on these axes");
        return;
      }
      const all = lines.flatMap((l) => l.points);
      const range = (key) => [Math.min(...all.map((p) => p[key])), Math.max(...all.map((p) => p[key]))];
      const [x0, x1] = range("x"), [y0, y1] = range("y");
      const X = (this.log.x ? logarithmic : linear)(this.log.x ? x0 : Math.min(0, x0), x1, box.left, box.right);
      const pad = this.log.y ? 0 : (y1 - y0) * 0.05;
      const Y = (this.log.y ? logarithmic : linear)(y0 - pad, y1 + pad, box.bottom, box.top);
      for (const { at, label } of Y.ticks) {
        node(svg, "line", { x1: box.left, x2: box.right, y1: Y.map(at), y2: Y.map(at), class: label ? "grid" : "grid minor" });
        if (label) node(svg, "text", { x: box.left - 8, y: Y.map(at) + 4, "text-anchor": "end" }, Y.name(at));
      }
      for (const { at, label } of X.ticks) {
        node(svg, "line", { x1: X.map(at), x2: X.map(at), y1: box.top, y2: box.bottom, class: label ? "grid" : "grid minor" });
        if (label) node(svg, "text", { x: X.map(at), y: box.bottom + 16, "text-anchor": "middle" }, X.name(at));
      }
      node(svg, "line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "axis" });
      node(svg, "text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, this.axis);
      for (const line of lines) {
        const path = line.points.map((p, n) => `${n ? "L" : "M"}${X.map(p.x).toFixed(1)} ${Y.map(p.y).toFixed(1)}`).join("");
        const look = { stroke: this.colour(line.k), "stroke-dasharray": DASHES[Math.floor(this.data.curves[line.k].shade / SHADES) % DASHES.length] };
        node(svg, "path", { class: "curve", d: path, ...look });
        if (line.points.length <= 60)
          for (const p of line.points) node(svg, "circle", { cx: X.map(p.x), cy: Y.map(p.y), r: line.points.length > 25 ? 1.8 : 2.8, fill: this.colour(line.k) });
      }
      this.scale = { X, Y, box, width };
      svg.addEventListener("pointermove", (event) => this.point(((event.clientX - svg.getBoundingClientRect().left) * width) / svg.clientWidth));
      svg.addEventListener("pointerleave", () => this.point(null));
      svg.addEventListener("keydown", (event) => this.key(event));
      svg.addEventListener("blur", () => this.point(null));
      if (focused) svg.focus();
    }

    stops() { return [...new Set(this.drawn.flatMap((l) => l.points.map((p) => p.x)))].sort((a, b) => a - b); }

    key(event) {
      const stops = this.stops(), here = this.cursor === null ? -1 : stops.indexOf(this.cursor);
      const to = { ArrowRight: Math.min(here + 1, stops.length - 1), ArrowLeft: Math.max(here - 1, 0), Home: 0, End: stops.length - 1 }[event.key];
      if (event.key === "Escape") this.point(null);
      if (to === undefined) return;
      event.preventDefault();
      this.mark(stops[to]);
      this.live.textContent = this.readout.textContent;
    }

    point(pixel) {
      if (pixel === null) return this.mark(null);
      const near = (a, b) => (Math.abs(this.scale.X.map(a) - pixel) <= Math.abs(this.scale.X.map(b) - pixel) ? a : b);
      this.mark(this.stops().reduce(near));
    }

    // A vertical line at x, and what every shown curve is at its point nearest to it.
    mark(x) {
      this.cursor = x;
      this.cross?.remove();
      this.readout?.remove();
      if (x === null) return;
      const { X, Y, box, width } = this.scale;
      this.cross = node(this.svg, "g", { "aria-hidden": "true" });
      node(this.cross, "line", { x1: X.map(x), x2: X.map(x), y1: box.top, y2: box.bottom, class: "cross" });
      this.readout = node(this.plot, "div", { class: "readout" });
      node(this.readout, "div", {}, `${this.axis} ${format(x, 4)}`);
      for (const line of this.drawn) {
        const p = line.points.reduce((a, b) => (Math.abs(b.x - x) < Math.abs(a.x - x) ? b : a));
        if (Math.abs(X.map(p.x) - X.map(x)) > 40) continue;
        node(this.cross, "circle", { cx: X.map(p.x), cy: Y.map(p.y), r: 4.5, fill: this.colour(line.k), stroke: "var(--paper)", "stroke-width": 1.5 });
        const row = node(this.readout, "div");
        node(row, "i", { style: `background:${this.colour(line.k)}` });
        row.append(line.label + " ");
        node(row, "b", {}, format(p.value));
      }
      const share = this.plot.clientWidth / width, at = X.map(x) * share, flip = at > this.plot.clientWidth / 2;
      this.readout.style.top = "14px";
      this.readout.style.left = flip ? `${Math.max(0, at - this.readout.offsetWidth - 12)}px` : `${at + 12}px`;
    }
  }

  const SHADINGS = {
    viridis: ["440154", "482475", "414487", "355f8d", "2a788e", "21918c", "22a884", "44bf70", "7ad151", "bddf26", "fde725"],
    magma: ["000004", "140e36", "3b0f70", "641a80", "8c2981", "b73779", "de4968", "f7705c", "fe9f6d", "fecf92", "fcfdbf"],
  };
  const BLANK = 65535;

  class Heat {
    constructor(figure) {
      this.figure = figure;
      const data = (this.data = JSON.parse(figure.querySelector("script").textContent));
      const bytes = Uint8Array.from(atob(data.values), (c) => c.charCodeAt(0)), view = new DataView(bytes.buffer);
      [this.columns, this.rows] = data.shape;
      this.number = (i, j) => view.getUint16(2 * (i * this.rows + j), true);
      this.stops = SHADINGS[data.shades].map((hex) => [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16)));
      const heat = (this.heat = node(figure, "div", { class: "heat" }));
      const up = node(heat, "div", { class: "up" });
      for (const text of [format(data.y[1]), data.names[1], format(data.y[0])]) node(up, "span", {}, text);
      this.canvas = node(heat, "canvas", { width: this.columns, height: this.rows, tabindex: 0, role: "img" });
      const ratio = (data.x[1] - data.x[0]) / (data.y[1] - data.y[0]), title = figure.querySelector("figcaption").textContent;
      this.canvas.style.aspectRatio = ratio;
      this.canvas.setAttribute("aria-label", `${title} over ${data.names.join(" and ")}: from ${format(data.range[0])} to ${format(data.range[1])}. Arrow keys move a read-out.`);
      const end = (value) => format(Math.abs(value) < 1e-6 * (data.range[1] - data.range[0]) ? 0 : value);
      const scale = node(heat, "div", { class: "scale", "aria-hidden": "true" });
      node(scale, "span", {}, end(data.range[1]));
      node(scale, "div", { class: "ramp", style: `background:linear-gradient(to top,${SHADINGS[data.shades].map((hex) => "#" + hex)})` });
      node(scale, "span", {}, end(data.range[0]));
      const along = node(heat, "div", { class: "along" });
      for (const text of [format(data.x[0]), data.names[0], format(data.x[1])]) node(along, "span", {}, text);
      this.live = node(figure, "p", { class: "live", "aria-live": "polite" });
      this.paint();
      this.listen();
    }

    colour(share) {
      const at = share * (this.stops.length - 1), k = Math.min(Math.floor(at), this.stops.length - 2);
      return this.stops[k].map((c, n) => Math.round(c + (at - k) * (this.stops[k + 1][n] - c)));
    }

    paint() {
      const context = this.canvas.getContext("2d"), image = context.createImageData(this.columns, this.rows);
      let painted = 0;
      for (let i = 0; i < this.columns; i++)
        for (let j = 0; j < this.rows; j++) {
          const number = this.number(i, j);
          if (number === BLANK) continue;
          painted++;
          image.data.set([...this.colour(number / (BLANK - 1)), 255], 4 * ((this.rows - 1 - j) * this.columns + i));
        }
      context.putImageData(image, 0, 0);
      this.figure.dataset.painted = painted;
    }

    listen() {
      const { canvas } = this;
      this.place = null;
      canvas.addEventListener("pointermove", (event) => {
        const box = canvas.getBoundingClientRect();
        const part = (at, size, count) => Math.max(0, Math.min(count - 1, Math.floor((at / size) * count)));
        this.show(part(event.clientX - box.left, box.width, this.columns), this.rows - 1 - part(event.clientY - box.top, box.height, this.rows));
      });
      for (const end of ["pointerleave", "blur"]) canvas.addEventListener(end, () => this.hide());
      canvas.addEventListener("keydown", (event) => {
        const move = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
        if (event.key === "Escape") this.hide();
        if (!move) return;
        event.preventDefault();
        const [i, j] = this.place ?? [this.columns >> 1, this.rows >> 1], kept = (k, count) => Math.max(0, Math.min(count - 1, k));
        this.show(kept(i + move[0], this.columns), kept(j + move[1], this.rows));
        this.live.textContent = this.readout.textContent;
      });
    }

    hide() { this.readout?.remove(); this.place = null; }

    show(i, j) {
      this.readout?.remove();
      this.place = [i, j];
      const { x, y, names, range } = this.data, number = this.number(i, j);
      const at = (ends, k, count) => format(ends[0] + (k / (count - 1)) * (ends[1] - ends[0]));
      const value = number === BLANK ? "outside of the domain" : format(range[0] + (number / (BLANK - 1)) * (range[1] - range[0]));
      this.readout = node(this.heat, "div", { class: "readout" });
      node(this.readout, "div", {}, `${names[0]} ${at(x, i, this.columns)}, ${names[1]} ${at(y, j, this.rows)}`);
      node(this.readout, "b", {}, value);
      const left = this.canvas.offsetLeft + ((i + 0.5) / this.columns) * this.canvas.clientWidth;
      this.readout.style.top = `${(1 - (j + 0.5) / this.rows) * this.canvas.clientHeight + 14}px`;
      this.readout.style.left = `${Math.min(left + 12, Math.max(0, this.heat.clientWidth - this.readout.offsetWidth))}px`;
    }
  }

  const all = (kind, Kind) => [...document.querySelectorAll(`figure.${kind}`)].map((figure) => new Kind(figure)).length;
  document.documentElement.dataset.charts = all("chart", Chart);
  document.documentElement.dataset.maps = all("map", Heat);
})();
