import type { Signal } from "@preact/signals-core";
import { Fragment, h } from "preact";
import { useEffect } from "preact/hooks";
import type { Explained, MechanismQuestion } from "./door.ts";
import { useAsked, useCanvas } from "./hooks.ts";
import { isolated } from "./label.ts";
import { type Computed, type Line, MODEL, PLACES, computed, factorAt, formula, isRoot, leftOut, placeAt, plain, products, question, scoreNames, times } from "./mechanism.ts";
import { fitted } from "./painting.ts";
import { useExplorer } from "./panel.ts";
import { Meanwhile, Trouble } from "./parts.tsx";
import { colour, css } from "./ramp.ts";
import { exact } from "./share.ts";
import { useSignal } from "./signals.ts";
import { headName } from "./wording.ts";

const STRIP = 18; // px of the height of a strip

interface Came {
  readonly asked: MechanismQuestion;
  readonly found: Explained;
}

/** One query through its formula: where the weights of its row come from. */
export function MechanismPanel() {
  const explorer = useExplorer();
  const { now, door } = explorer;
  const near = useSignal<number | null>(null);
  const answer = now.answer.value;
  const sheet = now.sheet.value;
  const asked = question({
    answer,
    sheet,
    layer: now.layer.value,
    head: now.head.value,
    pinned: now.pinned.value,
    pointed: explorer.place.value,
    unplaced: now.unplaced.value,
  });
  const key = !asked ? "" : JSON.stringify([answer?.map, asked]);
  const { came, problem, waiting } = useAsked(answer?.map == null ? null : asked, key, (asked, signal) =>
    door.mechanism?.(answer?.map ?? "", asked, signal),
  );
  useEffect(() => void (near.value = null), [key]);
  const layer = explorer.layer.value;
  if (!asked || !layer || !sheet) {
    return (
      <p class="hint empty">
        {sheet?.coarse === true
          ? "The formula of a row stands here when the map is near enough to have words."
          : "The mean of all heads has no formula of its own. Choose a head: its formula stands here."}
      </p>
    );
  }
  if (!came.value) {
    return <Meanwhile problem={problem.value} doing="Reading the numbers…" />;
  }
  const { found, asked: shown } = came.value;
  const name = (axis: "rows" | "keys") => (index: number) =>
    sheet[axis][index - sheet.excerpt[axis].from]?.text ?? `${index}`;
  if (found.missing) {
    return <p class="hint empty">There is no formula to show: {found.missing}.</p>;
  }
  const [factor, masked] = [factorAt(now.factor.value), !now.unmasked.value];
  const result = computed(found, factor, masked);
  const placed = found.placed && computed({ ...found, ...found.placed }, factor, masked);
  const all = { ...came.value, result, placed, row: name("rows")(shown.row), keyName: name("keys"), factor, masked };
  const most = result.lines.reduce((best, line) => (line.weight > best.weight ? line : best), result.lines[0] as Line);
  const wanted = near.value ?? asked.key ?? most.key;
  const line = result.lines.find((one) => one.key === wanted) ?? most;
  return (
    <div class="doubt mechanism">
      <div class="aside">
        <h3>
          How “<bdi>{all.row}</bdi>” looks in {headName(layer, shown.head)}
        </h3>
        <Formula {...all} line={line} />
        <Controls {...all} />
        <Trouble said={problem.value} />
      </div>
      <div
        class={waiting.value ? "table-room stale" : "table-room"}
        tabIndex={0}
        role="region"
        aria-label="The numbers of each key"
        aria-busy={waiting.value}
      >
        <Table {...all} line={line} point={(index) => (near.value = index)} />
      </div>
      <Vectors {...all} line={line} />
    </div>
  );
}

interface Shown extends Came {
  readonly result: Computed;
  /** The same with positions, beside a row that is without them. */
  readonly placed: Computed | null;
  readonly row: string;
  readonly keyName: (index: number) => string;
  readonly factor: number;
  readonly masked: boolean;
}

/** The formula, and the same with the numbers of one key. */
function Formula({ found, result, keyName, factor, line }: Shown & { line: Line }) {
  const [title] = scoreNames(found);
  const { scale, softcap } = found;
  const product = scale * factor;
  return (
    <div class="formula">
      <p>
        {title}: <b>{formula(found)}</b>
        {isRoot(scale, found.width) && scale !== 1 && `, where ${times(scale)} = 1 / √${found.width}`}
      </p>
      <p>
        <b>weight = e^score / Σ e^score</b> over the keys that it sees
      </p>
      <p id="worked">
        “<bdi>{keyName(line.key)}</bdi>”:{" "}
        {line.hidden !== "" ? (
          `hidden (${line.hidden}), so its weight is 0`
        ) : (
          <>
            {product !== 1 && `${times(product)} × ${plain(line.product)} `}
            {softcap !== null && "capped "}
            {line.bias !== null && `+ ${plain(line.bias)} `}
            {(product !== 1 || softcap !== null || line.bias !== null) && "= "}
            {plain(line.score)}; e^({plain(line.score)} − {plain(result.sum)}) = <b class="number">{exact(line.weight)}</b>
          </>
        )}
      </p>
    </div>
  );
}

/** The slider for the scale, and the switch of the mask. */
function Controls({ found, result, placed, factor, masked }: Shown) {
  const explorer = useExplorer();
  const place = explorer.now.factor.value;
  const root = isRoot(found.scale, found.width) ? placeAt(Math.sqrt(found.width)) : null;
  const hides = found.keys.hidden.some((why) => why !== "");
  const said = place === MODEL ? "as in the model" : `× ${times(factor)}`;
  return (
    <>
      <label class="slider">
        Scores times <output>{said}</output>
        <input
          id="factor"
          type="range"
          min={0}
          max={PLACES}
          value={place}
          list="factors"
          aria-valuetext={said}
          onInput={(event) => explorer.set({ factor: Number(event.currentTarget.value) })}
        />
        <datalist id="factors">
          <option value={MODEL} label="as in the model" />
          {root !== null && <option value={root} label="without 1/√d" />}
        </datalist>
      </label>
      <p class="buttons">
        <button type="button" disabled={place === MODEL} onClick={() => explorer.set({ factor: MODEL })}>
          as in the model
        </button>
        {root !== null && root !== MODEL && (
          <button id="unscaled" type="button" disabled={place === root} onClick={() => explorer.set({ factor: root })}>
            without 1/√{found.width}
          </button>
        )}
      </p>
      {(hides || !masked) && (
        <label class="check">
          <input
            id="unmasked"
            type="checkbox"
            checked={!masked}
            onChange={(event) => explorer.set({ unmasked: event.currentTarget.checked })}
          />{" "}
          ignore what hides keys
        </label>
      )}
      {found.positions ? (
        <label class="check">
          <input
            id="unplaced"
            type="checkbox"
            checked={explorer.now.unplaced.value}
            onChange={(event) => explorer.set({ unplaced: event.currentTarget.checked })}
          />{" "}
          {found.positions}
        </label>
      ) : (
        <p class="note">Positions stay: {found.no_positions}.</p>
      )}
      <p id="entropy" role="status">
        Entropy <b>{result.entropy.toFixed(2)}</b>
        {placed && `, with positions ${placed.entropy.toFixed(2)},`} of at most {result.most.toFixed(2)} nats.
      </p>
      <p class="note">{found.notes[0]}</p>
    </>
  );
}

function Table({ asked, found, result, placed, row, keyName, factor, masked, line, point }: Shown & { line: Line; point: (key: number) => void }) {
  const explorer = useExplorer();
  const shown = new Set(found.shown);
  const lines = result.lines.filter(({ key }) => shown.has(key));
  const left = leftOut(found);
  const [, product] = scoreNames(found);
  const scaled = found.scale * factor;
  const excerpt = explorer.now.sheet.value?.excerpt;
  const inside = (key: number) => excerpt !== undefined && key >= excerpt.keys.from && key < excerpt.keys.to;
  const pin = (key: number) => {
    if (!excerpt) return;
    explorer.pin({ side: "target", index: asked.row - excerpt.rows.from, partner: key - excerpt.keys.from });
  };
  return (
    <>
      <table id="scores">
        <caption>
          Row of “<bdi>{row}</bdi>”, key by key
        </caption>
        <thead>
          <tr>
            <th scope="col">key</th>
            {placed && (
              <>
                <th scope="col">score with positions</th>
                <th scope="col">weight with positions</th>
              </>
            )}
            <th scope="col">{product}</th>
            {scaled !== 1 && <th scope="col">× {times(scaled)}</th>}
            {found.keys.bias !== null && <th scope="col">+ bias</th>}
            {(found.softcap !== null || found.keys.bias !== null) && <th scope="col">score</th>}
            <th scope="col" class="wide">weight</th>
          </tr>
        </thead>
        <tbody>
          {lines.map(({ key, product, bias, score, weight, hidden }) => {
            const before = placed?.lines.find((one) => one.key === key);
            return (
              <tr key={key} class={key === line.key ? "partner" : undefined} data-key={key} onPointerEnter={() => point(key)}>
                <th scope="row">
                  <button
                    type="button"
                    class="link"
                    aria-pressed={asked.key === key}
                    onFocus={() => point(key)}
                    onClick={() => (inside(key) ? pin(key) : point(key))}
                  >
                    <bdi>{keyName(key)}</bdi>
                  </button>
                </th>
                {before && (
                  <>
                    <td>{plain(before.score)}</td>
                    <td>{exact(before.weight)}</td>
                  </>
                )}
                <td>{plain(product)}</td>
                {scaled !== 1 && <td>{plain(product === null ? null : product * scaled)}</td>}
                {found.keys.bias !== null && <td>{plain(bias)}</td>}
                {(found.softcap !== null || found.keys.bias !== null) && <td>{plain(score)}</td>}
                {hidden !== "" ? (
                  <td class="wide impossible">hidden: {hidden}</td>
                ) : (
                  <td class="wide">
                    <span class="track">
                      <span class="bar" style={{ width: `${(weight * 100).toFixed(2)}%` }} />
                      {before && <span class="bar other" style={{ width: `${(before.weight * 100).toFixed(2)}%` }} />}
                    </span>
                    <span class="number">{exact(weight)}</span>
                  </td>
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
      <p class="note">
        {left.seen > 0 && `${left.seen.toLocaleString("en")} keys of less weight are not in the table. `}
        {left.hidden > 0 && `${left.hidden.toLocaleString("en")} hidden keys are not in the table. `}
        {found.left.seen > 0 &&
          (factor !== 1 || !masked) &&
          `Of these, ${found.left.seen.toLocaleString("en")} count in the sum at the model’s scale alone. `}
        Click a key to pin it.
      </p>
    </>
  );
}

/** q, k, what they make of each other, and the value, as strips of cells. */
function Vectors({ found, row, keyName, line }: Shown & { line: Line }) {
  const explorer = useExplorer();
  const cell = useSignal<number | null>(null);
  const place = found.shown.indexOf(line.key);
  const key = found.vectors[place];
  const value = found.values?.[place];
  const additive = found.energy !== null;
  const [query, other] = additive ? ["W q", "U k"] : ["q", found.form === "general" ? "W k" : "k"];
  const named = (what: string, of: string) => `${what} of “${isolated(of)}”`;
  const move = (event: KeyboardEvent) => {
    const last = found.query.length - 1;
    const here = cell.value ?? -1;
    const next = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: last }[event.key];
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const at = Math.min(Math.max(next, 0), last);
    cell.value = at;
    const made = !key ? undefined : products(found, key)[at];
    explorer.spoken.value = `number ${at}: ${query} ${plain(found.query[at] ?? 0)}, ${other} ${plain(key?.[at] ?? null)}, together ${plain(made ?? null)}`;
  };
  return (
    <figure class="gradients vectors" tabIndex={0} onKeyDown={move}>
      <figcaption>
        What the score is made of: {found.width} numbers
        {found.width > found.query.length && `, of which the first ${found.query.length} are shown`}
      </figcaption>
      <Strip cell={cell} title={named(query, row)} numbers={found.query} />
      {key !== undefined && (
        <>
          <Strip cell={cell} title={named(other, keyName(line.key))} numbers={key} />
          {found.energy !== null && <Strip cell={cell} title="v" numbers={found.energy} />}
          <Strip
            cell={cell}
            title={`${additive ? "v × tanh(W q + U k)" : `${query} × ${other}`}: together ${plain(line.product)}`}
            numbers={products(found, key)}
          />
        </>
      )}
      {value !== undefined && <Strip cell={cell} title={named("value", keyName(line.key))} numbers={value} />}
      {found.context ? (
        <Strip cell={cell} title="context: the sum of weight × value over all keys, as in the model" numbers={found.context} />
      ) : (
        <p class="note">Values and context are not known: {found.no_values}.</p>
      )}
      <p class="note">{found.notes[1]}</p>
    </figure>
  );
}

/** A vector as a line of cells, coloured from its least to its greatest size. */
function Strip({ title, numbers, cell }: { title: string; numbers: readonly (number | null)[]; cell: Signal<number | null> }) {
  const { theme } = useExplorer();
  const most = numbers.reduce<number>((top, value) => Math.max(top, Math.abs(value ?? 0)), 0);
  const canvas = useCanvas(
    (element, pen, { clientWidth: width }) => {
      if (width === 0) return;
      fitted(element, width, STRIP);
      const step = width / numbers.length;
      numbers.forEach((value, index) => {
        pen.fillStyle = css(colour(theme.differences, 0.5 + (most === 0 ? 0 : (value ?? 0) / (2 * most))));
        pen.fillRect(index * step, 0, step > 6 ? step - 1 : step + 0.5, STRIP);
      });
    },
    [numbers, theme.changes.value],
  );
  const at = cell.value === null ? undefined : numbers[cell.value];
  return (
    <div class="strip">
      <span>
        {title} <small>{at === undefined ? `±${plain(most)}` : `${cell.value}: ${plain(at)}`}</small>
      </span>
      <div>
        <canvas
          ref={canvas}
          role="img"
          aria-label={`${title}; ${numbers.slice(0, 8).map((value) => plain(value)).join(", ")}${numbers.length > 8 ? " …" : ""}`}
          onPointerMove={(event) => {
            const box = event.currentTarget.getBoundingClientRect();
            cell.value = Math.min(Math.floor(((event.clientX - box.left) / box.width) * numbers.length), numbers.length - 1);
          }}
          onPointerLeave={() => (cell.value = null)}
        />
      </div>
    </div>
  );
}
