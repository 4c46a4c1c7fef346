import { type ComponentChildren, Fragment, h } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { HeadsLegend } from "./heads-legend.tsx";
import { useCanvas } from "./hooks.ts";
import { difference } from "./insight.ts";
import { type Matrix, largest } from "./matrix.ts";
import { handlersOf } from "./map-panel.tsx";
import { MapView } from "./map-view.ts";
import { drawLegend, fitted } from "./painting.ts";
import { useExplorer } from "./panel.ts";
import { Problem } from "./problem.ts";
import type { Ramp } from "./ramp.ts";
import { type Shading, type Tick, shading, ticks } from "./scale.ts";
import { percent } from "./share.ts";
import { useSignalEffect } from "./signals.ts";
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
  const [one, other, ...more] = explorer.heads.value;
  const named = (index: number | null | undefined, { layer, head }: { layer: number; head: number | null }) => {
    const own = layers[layer];
    const from = source === null ? "" : `${sources[index ?? 0]}: `;
    return !own ? "" : from + headName(own, head);
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
    if (!one || !other) {
      return hint("Select a second head in the grid: its map stands here, and the difference of the two.");
    }
    if (!explorer.alike(other)) {
      return hint("The two maps have other rows and keys. Select a head of a layer with the same texts.");
    }
    [a, b] = [explorer.matrixOf(one), explorer.matrixOf(other)];
    names = [named(null, one), named(null, other)];
  }
  if (!layer || !a || !b || a.values.length !== b.values.length) {
    return hint("The weights of the second head are on their way.");
  }
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
        />
      ))}
      <Small
        title="the first − the second"
        matrix={matrix}
        ramp={theme.differences}
        shade={(weight) => 0.5 + weight / (2 * most)}
        ticks={diverging}
      />
    </>,
    <p id="compared">
      {source === null && more.length > 0 && "These are the first two of the heads above. "}
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
}

/** A map with its tokens, in which a cell is pointed at and kept as in the large one. */
function Small({ title, matrix, ramp, shade, ticks: numbers }: SmallMap) {
  const explorer = useExplorer();
  const { now, theme } = explorer;
  const [canvas, map] = [useRef<HTMLCanvasElement>(null), useRef<MapView | null>(null)];
  useLayoutEffect(() => {
    const room = canvas.current?.closest<HTMLElement>(".small-room");
    if (canvas.current && room) map.current = new MapView(theme, canvas.current, room, handlersOf(explorer));
  }, []);
  const sheet = now.sheet.value;
  // The same for every place that is pointed at, so that nothing is painted anew.
  const near = sheet && { matrix, excerpt: sheet.excerpt, shade, scale: now.scale.value };
  const draw = () => {
    theme.changes.value;
    const [layer, pinned] = [explorer.layer.value, now.pinned.value];
    const place = pinned ?? now.pointed.value;
    if (!sheet || !near || !layer) return;
    map.current?.draw({
      layer,
      view: now.view.value ?? sheet.excerpt,
      far: null,
      near,
      rows: sheet.rows,
      columns: sheet.keys,
      rightToLeft: now.overview.value?.rightToLeft.has(sheet.layer) ?? false,
      ramp,
      gold: [],
      active: place,
      kept: pinned !== null,
      until: Infinity,
    });
  };
  useSignalEffect(draw);
  useLayoutEffect(draw, [near]);
  const legend = useCanvas(
    (canvas, pen, { clientWidth: width }) => {
      fitted(canvas, width, 28);
      const ends = numbers.filter(({ share }) => width > 200 || share === 0 || share === 1); // where the others have no room
      drawLegend(pen, ramp, ends, { x: 0, y: 0, width }, theme.tone("quiet"), theme.font);
    },
    [matrix, theme.changes.value, shade],
  );
  return (
    <figure class="small-map">
      <div class="small-room">
        <div class="stack">
          <canvas ref={canvas} role="img" aria-label={`Map: ${title}`} />
        </div>
      </div>
      <figcaption>
        {title}
        <canvas ref={legend} role="img" aria-label={`Colours: ${numbers.map(({ text }) => text).join(", ")}`} />
      </figcaption>
    </figure>
  );
}
