import { type ComponentChildren, Fragment, h } from "preact";
import { useRef } from "preact/hooks";
import { HeadsLegend } from "./heads-legend.tsx";
import { useCanvas } from "./hooks.ts";
import { difference } from "./insight.ts";
import { type Matrix, largest } from "./matrix.ts";
import { drawLegend, fitted, hatched, painted } from "./painting.ts";
import { useExplorer } from "./panel.ts";
import { Problem } from "./problem.ts";
import type { Ramp } from "./ramp.ts";
import { type Shading, type Tick, shading, ticks } from "./scale.ts";
import { percent } from "./share.ts";
import { headName } from "./wording.ts";

/** Two heads side by side, and their difference: of the text in view, or as another source has them. */
export function ComparePanel() {
  const explorer = useExplorer();
  const { now, theme } = explorer;
  const source = now.beside.value;
  const sources = now.model.value?.sources ?? [];
  const layers = now.answer.value?.layers ?? [];
  const layer = explorer.layer.value;
  const scale = now.scale.value;
  const framed = (maps: ComponentChildren, said: ComponentChildren = null) => (
    <div class="compare">
      <div class="aside">
        <h3>Two heads side by side</h3>
        {sources.length > 1 && (
          <label>
            With{" "}
            <select
              id="beside"
              value={String(source ?? "")}
              onChange={({ currentTarget: { value } }) => explorer.set({ beside: value === "" ? null : Number(value) })}
            >
              <option value="">a selected head</option>
              {sources.map(
                (name, index) =>
                  index !== explorer.door.source && (
                    <option key={index} value={String(index)}>
                      {name}
                    </option>
                  ),
              )}
            </select>
          </label>
        )}
        {source === null && <HeadsLegend />}
        {said}
      </div>
      {maps}
    </div>
  );
  const hint = (text: string) => framed(<p class="hint empty">{text}</p>);
  const [one, other] = explorer.heads.value;
  const named = (index: number | null | undefined, { layer, head }: { layer: number; head: number | null }) => {
    const own = layers[layer];
    const from = source === null ? "" : `${sources[index ?? 0]}: `;
    return own === undefined ? "" : from + headName(own, head);
  };
  let [a, b]: (Matrix | null)[] = [explorer.weights.value, null];
  let names: string[];
  if (source !== null) {
    const beside = explorer.beside.found.value;
    if (beside instanceof Problem) return hint(beside.message);
    b = beside;
    const shown = { layer: now.layer.value, head: now.head.value };
    names = [named(explorer.door.source, shown), named(source, shown)];
  } else {
    if (one === undefined || other === undefined) {
      return hint("Select a second head in the grid: its map stands here, and the difference of the two.");
    }
    if (!explorer.alike(other)) {
      return hint("The two maps have other rows and keys. Select a head of a layer with the same texts.");
    }
    [a, b] = [explorer.matrixOf(one), explorer.matrixOf(other)];
    names = [named(null, one), named(null, other)];
  }
  if (layer === null || a === null || b === null || a === undefined || b === undefined || a.values.length !== b.values.length) {
    return hint("The weights of the second head are on their way.");
  }
  const flipped = now.overview.value?.rightToLeft.has(now.layer.value) ?? false;
  const { moved, correlation, matrix } = difference(a, b);
  const most = Math.max(matrix.values.reduce((top, value) => Math.max(top, Math.abs(value) || 0), 0), 0.01);
  const diverging: Tick[] = [
    { share: 0, text: `−${percent(most)}` },
    { share: 0.5, text: "the same" },
    { share: 1, text: `+${percent(most)}` },
  ];
  return framed(
    <>
      {[a, b].map((weights, index) => (
        <Small
          key={index}
          title={names[index] ?? ""}
          matrix={weights}
          ramp={theme.ramp}
          shade={shading(scale, weights, layer.keys)}
          ticks={ticks(scale, largest(weights))}
          flipped={flipped}
        />
      ))}
      <Small
        title="the first − the second"
        matrix={matrix}
        ramp={theme.differences}
        shade={(weight) => 0.5 + weight / (2 * most)}
        ticks={diverging}
        flipped={flipped}
      />
    </>,
    <p id="compared">
      On average {percent(moved)} of a row’s attention would have to move to make the two alike.
      {Number.isFinite(correlation) && ` Their weights correlate by ${correlation.toFixed(2).replace("-", "−")}.`}
    </p>,
  );
}

interface SmallMap {
  readonly title: string;
  readonly matrix: Matrix;
  readonly ramp: Ramp;
  readonly shade: Shading;
  readonly ticks: readonly Tick[];
  readonly flipped: boolean;
}

function Small({ title, matrix, ramp, shade, ticks: numbers, flipped }: SmallMap) {
  const { theme } = useExplorer();
  const legend = useRef<HTMLCanvasElement>(null);
  const canvas = useCanvas(
    (canvas, pen, { clientWidth: width, clientHeight: height }) => {
      const bar = legend.current?.getContext("2d");
      if (!bar || legend.current === null || width === 0 || height === 0) return;
      const scale = Math.min(width / matrix.columns, height / matrix.rows);
      const [across, down] = [matrix.columns * scale, matrix.rows * scale];
      fitted(canvas, across, down);
      pen.fillStyle = hatched(pen, theme.tone("line")) ?? theme.tone("line");
      pen.fillRect(0, 0, across, down);
      if (flipped) {
        pen.translate(across, 0);
        pen.scale(-1, 1);
      }
      pen.imageSmoothingEnabled = false;
      const bitmap = painted([{ matrix, shade }], ramp, false, [across, down]);
      if (bitmap.width > 0) pen.drawImage(bitmap, 0, 0, across, down);
      fitted(legend.current, width, 28);
      drawLegend(bar, ramp, numbers, { x: 0, y: 0, width }, theme.tone("quiet"), theme.font);
    },
    [matrix, theme.changes.value, shade, flipped],
  );
  return (
    <figure class="small-map">
      <figcaption>{title}</figcaption>
      <div class="small-room">
        <canvas ref={canvas} role="img" aria-label={`Map: ${title}`} />
      </div>
      <canvas ref={legend} role="img" aria-label={`Colours: ${numbers.map(({ text }) => text).join(", ")}`} />
    </figure>
  );
}
