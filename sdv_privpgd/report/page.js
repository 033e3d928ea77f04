// Draws the figures whose descriptions lie in the page, in the page's own colors.
(() => {
  const root = document.documentElement;
  // A color is written {"css": "--name"}; texts of a table's owner are never objects.
  const colored = (value) => {
    if (Array.isArray(value)) return value.map(colored);
    if (value === null || typeof value !== "object") return value;
    if (value.css) return getComputedStyle(root).getPropertyValue(value.css).trim();
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, colored(inner)]));
  };
  // What a cell shows under the pointer: its row, its column and its value, whose root is drawn.
  const valueOf = (root) => (root === null ? "–" : (Math.sign(root) * root * root).toPrecision(3));
  const described = (trace, names) => ({
    ...trace,
    text: trace.z.map((row, y) =>
      row.map((z, x) => `${names.y[y]}<br>${names.x[x]}<br><b>${valueOf(z)}</b>`)
    ),
  });
  const draw = (box) => {
    const { data, layout, names } = colored(JSON.parse(box.previousElementSibling.textContent));
    const traces = names ? data.map((trace) => described(trace, names)) : data;
    return Plotly.react(box, traces, layout, { responsive: true, displayModeBar: false });
  };
  const boxes = [...document.querySelectorAll(".plot")];
  // One after the other, so that the page can be scrolled and read meanwhile.
  const drawFrom = (index) => {
    if (index === boxes.length) {
      root.dataset.drawn = "yes";
      return;
    }
    draw(boxes[index]);
    setTimeout(() => drawFrom(index + 1), 0);
  };
  drawFrom(0);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => boxes.forEach(draw));
})();
