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
    const { width, height } = box.getBoundingClientRect();
    const drawn = Plotly.react(box, traces, layout, { responsive: true, displayModeBar: false });
    fitForPaper(box, width, height);
    return drawn;
  };
  // On paper a figure is as wide as its place: its picture is scaled, not drawn anew.
  const fitForPaper = (box, width, height) => {
    box.style.setProperty("--wide", width);
    box.style.setProperty("--high", height);
    for (const svg of box.querySelectorAll(".main-svg")) {
      svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
    }
  };
  const boxes = [...document.querySelectorAll(".plot")];
  const isHidden = (box) => box.closest("details:not([open])") !== null;
  const inSight = boxes.filter((box) => !isHidden(box));
  // One after the other, so that the page can be scrolled and read meanwhile.
  const drawFrom = (some, index) => {
    if (index === some.length) {
      root.dataset.drawn = "yes";
      return;
    }
    draw(some[index]);
    setTimeout(() => drawFrom(some, index + 1), 0);
  };
  drawFrom(inSight, 0);
  // What is behind a line is drawn when it is opened: before, it has no size.
  for (const fold of document.querySelectorAll("details")) {
    fold.addEventListener("toggle", () => {
      if (fold.open) drawFrom([...fold.querySelectorAll(".plot:empty")], 0);
    });
  }
  const drawAgain = () =>
    boxes.filter((box) => box.childElementCount && !isHidden(box)).forEach(draw);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", drawAgain);
  // A window's new size makes plotly draw anew, without the frame that paper needs.
  addEventListener("beforeprint", () => {
    root.classList.add("on-paper");
    drawAgain();
  });
  addEventListener("afterprint", () => {
    root.classList.remove("on-paper");
    drawAgain();
  });
})();
