import { h } from "preact";
import { same, whole } from "./excerpt.ts";
import { useAsked, useCanvas } from "./hooks.ts";
import {
  type HeadNumbers,
  NUMBERS,
  headNumbers,
  interpretation,
  interpretationOfWhole,
  places,
  sinkRule,
  sinks,
} from "./insight.ts";
import type { Label } from "./label.ts";
import { type Matrix, head as headOf } from "./matrix.ts";
import { fitted } from "./painting.ts";
import { useExplorer } from "./panel.ts";
import { holdsAll } from "./sheet.ts";
import { weightsOf } from "./state.ts";
import type { Theme } from "./theme.ts";
import { percent } from "./share.ts";
import { headName, statisticShort, statisticName, statisticValue } from "./wording.ts";

const MOST_LINES = 32; // heads of a layer that are listed at a time

const known = new WeakMap<Matrix, Map<string, HeadNumbers>>();

/** Numbers of the heads of a layer, and of the places of the head that is shown. */
export function StatisticsPanel() {
  const explorer = useExplorer();
  const { now } = explorer;
  // Only of a whole map are numbers found here: a part of a row does not add up to one.
  const [sheet, layer, answer, overview] = [now.sheet.value, explorer.layer.value, now.answer.value, now.overview.value];
  const weights = explorer.weights.value;
  // The other heads of the layer, a byte a weight, where it came with one head alone.
  const part = sheet !== null && layer !== null && !same(sheet.excerpt, whole(layer));
  const all = sheet !== null && layer !== null && !sheet.coarse && !part;
  const alone = now.apart.value && all && sheet.head !== null;
  const drawn = JSON.stringify([answer?.map, sheet?.layer, sheet?.excerpt]);
  const { came } = useAsked(alone && holdsAll(layer, sheet.excerpt) ? drawn : null, `${alone} ${drawn}`, async (_, signal) => {
    if (!sheet) return [];
    const tile = await explorer.door.tile(answer?.map ?? "", sheet.layer, { excerpt: sheet.excerpt, head: null, rough: true }, signal);
    return Array.from({ length: tile.heads }, (_, head) => headOf(tile, head));
  });
  const others = came.value?.asked === drawn ? came.value.found : [];
  if (!sheet || !layer || !answer || !overview || !weights) return null;
  const apart = now.apart.value && all;
  const shown = sheet.head ?? now.head.value;
  const offset = layer.within ? sheet.excerpt.rows.from - sheet.excerpt.keys.from : null;
  const special = new Set(sheet.keys.flatMap((label, index) => (isSpecial(label) ? [index] : [])));
  const aside = (matrix: Matrix): Set<number> => new Set([...special, ...sinks(matrix)]);
  const numbersOf = (matrix: Matrix): HeadNumbers => {
    const kept = known.get(matrix) ?? new Map<string, HeadNumbers>();
    known.set(matrix, kept);
    const name = `${offset} ${apart}`;
    const found = kept.get(name) ?? headNumbers(matrix, offset, apart ? aside(matrix) : undefined);
    kept.set(name, found);
    return found;
  };
  const name = shown === null ? "The mean of all heads" : `Head ${shown}`;
  const first = Math.min(Math.max((shown ?? 0) - MOST_LINES / 2, 0), Math.max(layer.heads - MOST_LINES, 0));
  const heads = Array.from({ length: Math.min(layer.heads, MOST_LINES) }, (_, index) => first + index);
  const ofServer = overview.statistics.layers[sheet.layer];
  const value = (head: number, statistic: (typeof NUMBERS)[number]): number => {
    if (!apart) return ofServer?.[statistic]?.[head] ?? NaN;
    const held = sheet.head === null ? weightsOf(sheet, head) : (others[head] ?? null);
    const matrix = head === shown ? weights : held;
    return !matrix ? NaN : numbersOf(matrix)[statistic];
  };
  const columns = NUMBERS.filter((column) => heads.some((head) => Number.isFinite(value(head, column))));
  const left = apart ? [...aside(weights)].map((key) => sheet.keys[key]?.text ?? String(key)) : [];
  return (
    <div class="statistics">
      <div class="aside">
        <h3>{headName(layer, shown)}</h3>
        <div id="interpretation">
          {(all ? interpretation(numbersOf(weights), name, apart) : interpretationOfWhole(shown, overview.statistics, sheet.layer, part)).map((sentence) => (
            <p key={sentence}>{sentence}</p>
          ))}
        </div>
        <label class="check">
          <input
            id="apart"
            type="checkbox"
            checked={now.apart.value}
            disabled={!all}
            onChange={(event) => explorer.set({ apart: event.currentTarget.checked })}
          />{" "}
          set sinks and special tokens aside
        </label>
        {apart && (
          <p class="note">
            {left.length > 0 ? `Left out: ${left.slice(0, 8).join(", ")}. ` : "There is none here. "}
            {sinkRule(weights.columns)} What remains of each row is divided by its sum.
          </p>
        )}
        <p class="note">Numbers say how attention is spread. They do not say what the model needs.</p>
      </div>
      <div class="table-room" tabIndex={0} role="region" aria-label="Numbers of each head">
        <table>
          <thead>
            <tr>
              <th scope="col">head</th>
              {columns.map((column) => (
                <th key={column} scope="col" title={statisticName(column)}>
                  {statisticShort(column)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {heads.map((head) => (
              <tr key={head} class={head === shown ? "shown" : undefined}>
                <th scope="row">
                  <button
                    type="button"
                    class="link"
                    aria-label={`Show head ${head}`}
                    aria-current={head === shown}
                    onClick={() => explorer.see(sheet.layer, head)}
                  >
                    {head}
                  </button>
                </th>
                {columns.map((column) => {
                  const number = value(head, column);
                  return <td key={column}>{Number.isFinite(number) ? statisticValue(column, number) : "–"}</td>;
                })}
              </tr>
            ))}
          </tbody>
        </table>
        {layer.heads > MOST_LINES && (
          <p class="note">
            {MOST_LINES} of {layer.heads} heads, those around the one that is shown.
          </p>
        )}
      </div>
      {all && <PlacesChart matrix={weights} apart={apart ? aside(weights) : new Set()} />}
    </div>
  );
}

function isSpecial({ special, text }: Label): boolean {
  return special || /^(\[(CLS|SEP|PAD|MASK|UNK)\]|<\|.*\|>|<(bos|eos|cls|sep|mask)>)$/.test(text);
}

/** How much attention each place receives, and how spread that is which it gives. */
function PlacesChart({ matrix, apart }: { matrix: Matrix; apart: ReadonlySet<number> }) {
  const explorer = useExplorer();
  const sheet = explorer.now.sheet.value;
  const { entropy, received } = places(matrix, apart);
  const queries = entropy.length || 1;
  const order = [...received.keys()].sort((a, b) => (received[b] as number) - (received[a] as number)).slice(0, 3);
  const named = order.map((key) => `${sheet?.keys[key]?.text ?? key} ${percent((received[key] as number) / queries)}`);
  const canvas = useCanvas(
    (canvas, pen) => drawPlaces(canvas, pen, explorer.theme, received, entropy),
    [matrix, apart.size, explorer.theme.changes.value],
  );
  return (
    <figure class="places">
      <figcaption>
        <b>Attention received</b> by each key, and <b>entropy</b> of each query, along the text
      </figcaption>
      <canvas
        ref={canvas}
        role="img"
        aria-label={`Attention received by each key; most: ${named.join(", ")}`}
      />
      <p class="note">Most received: {named.join(", ")}.</p>
    </figure>
  );
}

function drawPlaces(
  canvas: HTMLCanvasElement,
  pen: CanvasRenderingContext2D,
  theme: Theme,
  received: Float32Array,
  entropy: Float32Array,
): void {
  const { width, height } = fitted(canvas, Math.max(canvas.clientWidth, 120), Math.max(canvas.clientHeight, 80));
  const half = height / 2;
  const most = received.reduce((a, b) => Math.max(a, b), 1e-9);
  const bars = (values: Float32Array, most: number, base: number, sign: 1 | -1, paint: string) => {
    const step = width / Math.max(values.length, 1);
    pen.fillStyle = paint;
    values.forEach((value, index) => {
      const tall = (value / most) * (half - 6);
      const gap = step > 4 ? 1 : 0;
      pen.fillRect(index * step, sign > 0 ? base : base - tall, Math.max(step - gap, 0.5), Math.max(tall, 0.5));
    });
  };
  bars(received, most, half - 2, -1, theme.tone("action"));
  bars(entropy, 1, half + 2, 1, theme.tone("quiet"));
}
