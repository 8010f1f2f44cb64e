/** @file A line plot as SVG text: rates over sizes, light and dark. */

/** One line of a plot. */
export interface Series {
  readonly name: string;
  /** Which of the palette's colours; peers are drawn dashed. */
  readonly colour: number;
  readonly dashed: boolean;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** What a plot shows. */
export interface Plot {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly series: readonly Series[];
  /** A horizontal line: the physical limit. */
  readonly limit?: { readonly name: string; readonly y: number };
}

const size = { width: 720, height: 400 } as const;
const frame = { left: 64, right: 170, top: 40, bottom: 48 } as const;
const colours = ["#0969da", "#cf222e", "#1a7f37", "#8250df"] as const;

/** SVG of a plot; sizes are spread by their logarithm. */
export function svgPlot(plot: Plot): string {
  const xs = [...new Set(plot.series.flatMap(({ points }) => points.map(([x]) => x)))].sort((a, b) => a - b);
  const top = niceCeiling(
    Math.max(plot.limit?.y ?? 0, ...plot.series.flatMap(({ points }) => points.map(([, y]) => y))),
  );
  const right = size.width - frame.right;
  const bottom = size.height - frame.bottom;
  const [low, high] = [Math.log2(xs[0] ?? 1), Math.log2(xs.at(-1) ?? 2)];
  const px = (x: number): number =>
    frame.left + ((Math.log2(x) - low) / Math.max(high - low, 1)) * (right - frame.left);
  const py = (y: number): number => bottom - (y / top) * (bottom - frame.top);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" role="img" aria-label="${plot.title}">`,
    "<style>text{font:13px system-ui,sans-serif;fill:#1f2328}.grid{stroke:#d1d9e0}.limit{stroke:#59636e;stroke-dasharray:2 4}",
    "@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.grid{stroke:#3d444d}.limit{stroke:#9198a1}}</style>",
    `<text x="${frame.left}" y="22" font-weight="600">${plot.title}</text>`,
    ...Array.from({ length: 6 }, (_, i) => grid((top / 5) * i, py, right)),
    ...xs.map((x) => label(px(x), bottom + 20, String(x), "middle")),
    label((frame.left + right) / 2, size.height - 8, plot.xLabel, "middle"),
    `<text transform="translate(16 ${(frame.top + bottom) / 2}) rotate(-90)" text-anchor="middle">${plot.yLabel}</text>`,
    ...(plot.limit === undefined ? [] : limitLine(plot.limit, py, right)),
    ...plot.series.flatMap((series, i) => line(series, px, py, right, frame.top + 20 * i)),
    "</svg>",
    "",
  ].join("\n");
}

function grid(y: number, py: (y: number) => number, right: number): string {
  const at = round(py(y));
  return `<line class="grid" x1="${frame.left}" x2="${right}" y1="${at}" y2="${at}"/>${label(frame.left - 8, at + 4, String(Math.round(y)), "end")}`;
}

function limitLine(
  { name, y }: NonNullable<Plot["limit"]>,
  py: (y: number) => number,
  right: number,
): readonly string[] {
  const at = round(py(y));
  return [
    `<line class="limit" x1="${frame.left}" x2="${right}" y1="${at}" y2="${at}"/>`,
    label(right + 8, at + 4, name, "start"),
  ];
}

/** The line, its points and its name at the right, from below the limit's on. */
function line(
  { name, colour, dashed, points }: Series,
  px: (x: number) => number,
  py: (y: number) => number,
  right: number,
  legend: number,
): readonly string[] {
  const at = points.map(([x, y]) => [round(px(x)), round(py(y))] as const);
  const stroke = `stroke="${colours[colour % colours.length]}"${dashed ? ' stroke-dasharray="6 4"' : ""}`;
  return [
    `<polyline fill="none" stroke-width="2" ${stroke} points="${at.map((point) => point.join(",")).join(" ")}"/>`,
    ...at.map(([x, y]) => `<circle cx="${x}" cy="${y}" r="3" fill="${colours[colour % colours.length]}"/>`),
    `<line x1="${right + 10}" x2="${right + 34}" y1="${legend + 60}" y2="${legend + 60}" stroke-width="2" ${stroke}/>`,
    label(right + 40, legend + 64, name, "start"),
  ];
}

function label(x: number, y: number, text: string, anchor: "start" | "middle" | "end"): string {
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${text}</text>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** The next of 1, 2, 2.5, 5 times a power of ten. */
function niceCeiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  return (([1, 2, 2.5, 5, 10] as const).find((step) => step * power >= value) ?? 10) * power;
}
