import { h } from "preact";
import { useRef } from "preact/hooks";
import type { Head } from "./grid-layout.ts";
import { HeadsLegend } from "./heads-legend.tsx";
import { useCanvas } from "./hooks.ts";
import { difference } from "./insight.ts";
import { type Matrix, largest } from "./matrix.ts";
import { drawLegend, fitted, hatched, painted } from "./painting.ts";
import { useExplorer } from "./panel.ts";
import type { Ramp } from "./ramp.ts";
import { type Shading, type Tick, shading, ticks } from "./scale.ts";
import { percent } from "./share.ts";
import { headName } from "./wording.ts";

/** Two heads side by side, and their difference. */
export function ComparePanel() {
  const explorer = useExplorer();
  const { now, theme } = explorer;
  const [one, other] = explorer.heads.value;
  const layers = now.answer.value?.layers ?? [];
  const layer = explorer.layer.value;
  const scale = now.scale.value;
  const [a, b] = [one, other].map((head) => (head === undefined ? null : explorer.matrixOf(head)));
  const flipped = now.overview.value?.rightToLeft.has(one?.layer ?? -1) ?? false;
  const there = a != null && b != null && a.values.length === b.values.length;
  if (layer === null || one === undefined || other === undefined || !there) {
    return (
      <div class="compare">
        <div class="aside">
          <h3>Two heads side by side</h3>
          <HeadsLegend />
        </div>
        <p class="hint empty">
          {other === undefined
            ? "Select a second head in the grid of heads: its map stands here, and the difference of the two."
            : explorer.alike(other)
              ? "The weights of the second head are on their way."
              : "The two maps have other rows and keys, so there is no difference to show. Select a head of a layer with the same texts."}
        </p>
      </div>
    );
  }
  const name = ({ layer, head }: Head) => (layers[layer] ? headName(layers[layer], head) : "");
  const { moved, correlation, matrix } = difference(a, b);
  const most = Math.max(matrix.values.reduce((top, value) => Math.max(top, Math.abs(value) || 0), 0), 0.01);
  const diverging: Tick[] = [
    { share: 0, text: `−${percent(most)}` },
    { share: 0.5, text: "the same" },
    { share: 1, text: `+${percent(most)}` },
  ];
  return (
    <div class="compare">
      <div class="aside">
        <h3>Two heads side by side</h3>
        <HeadsLegend />
        <p id="compared">
          On average {percent(moved)} of a row’s attention would have to move to make the two alike.
          {Number.isFinite(correlation) && ` Their weights correlate by ${correlation.toFixed(2).replace("-", "−")}.`}
        </p>
      </div>
      <Small title={name(one)} matrix={a} ramp={theme.ramp} shade={shading(scale, a, layer.keys)} ticks={ticks(scale, largest(a))} flipped={flipped} />
      <Small title={name(other)} matrix={b} ramp={theme.ramp} shade={shading(scale, b, layer.keys)} ticks={ticks(scale, largest(b))} flipped={flipped} />
      <Small
        title="the first − the second"
        matrix={matrix}
        ramp={theme.differences}
        shade={(weight) => 0.5 + weight / (2 * most)}
        ticks={diverging}
        flipped={flipped}
      />
    </div>
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
      const bitmap = painted([{ matrix, shade }], ramp);
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
