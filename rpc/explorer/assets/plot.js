// The plot of lateness: a bar for each slice, how many milliseconds after its due time it came.

import { el, say, svg } from "./dom.js";

const WIDTH = 600;
const HEIGHT = 96;
const LEAST = 10; // least milliseconds that the height of the plot stands for
const STEPS = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

const text = (milliseconds) => `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;

/** The plot as an element; `draw(samples, capacity, interval)`: `capacity` samples fill its width. */
export function latenessPlot() {
  const punctual = svg("path", { class: "bar" });
  const late = svg("path", { class: "bar late" });
  const middle = svg("path", { class: "rule", d: `M0 ${HEIGHT / 2}H${WIDTH}M0 .5H${WIDTH}` });
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none",
    "aria-hidden": "true" }, middle, punctual, late);
  const top = el("span.top");
  const half = el("span.half");
  const summary = el("p.figures", { text: "waiting for slices" });
  const element = el("div.plot", { role: "img", "aria-label": "Lateness of slices" },
    el("div.frame", {}, picture, top, half), el("div", {}, summary));
  element.draw = (samples, capacity, interval) => {
    if (!samples.length) return;
    const sorted = [...samples].sort((a, b) => a - b);
    const [median, worst] = [sorted[sorted.length >> 1], sorted.at(-1)];
    const scale = STEPS.find((step) => step >= Math.max(LEAST, worst)) ?? worst;
    const paths = ["", ""];
    const width = WIDTH / capacity;
    samples.forEach((sample, i) => {
      const x = (WIDTH - (samples.length - i) * width).toFixed(1);
      const height = Math.max(1.5, (sample / scale) * HEIGHT).toFixed(1);
      paths[sample > interval / 10 ? 1 : 0] += `M${x} ${HEIGHT}v-${height}h${(0.7 * width).toFixed(1)}v${height}z`;
    });
    punctual.setAttribute("d", paths[0]);
    late.setAttribute("d", paths[1]);
    say(top, `${scale} ms`);
    say(half, `${scale / 2} ms`);
    const figures = `median ${text(median)} · worst ${text(worst)} · ${samples.length} slices`;
    say(summary, figures);
    element.setAttribute("aria-label", `Lateness of slices: ${figures}`);
  };
  return element;
}
