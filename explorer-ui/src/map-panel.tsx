import { Fragment, h } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { type Excerpt, type Span, farther, same, whole } from "./excerpt.ts";
import { ExportMenu } from "./export-menu.tsx";
import type { Explorer } from "./explorer.ts";
import { sheets } from "./grid-layout.ts";
import { isolated } from "./label.ts";
import { type Cell, type Handlers, MapView } from "./map-view.ts";
import { type Matrix, at, largest, mean, head as headOf } from "./matrix.ts";
import type { Piece } from "./painting.ts";
import { useExplorer } from "./panel.ts";
import { Select } from "./parts.tsx";
import { holdsAll, takesLong } from "./sheet.ts";
import { css } from "./ramp.ts";
import { SCALES, type Scale, shading, ticks } from "./scale.ts";
import { percent } from "./share.ts";
import { useSignal, useSignalEffect } from "./signals.ts";
import { type Place, active } from "./state.ts";
import * as wording from "./wording.ts";

/** The map of the head that is shown, where it is, and what its colours say. */
export function MapPanel() {
  const explorer = useExplorer();
  const { now } = explorer;
  const sheet = now.sheet.value;
  const layer = explorer.layer.value;
  const weights = explorer.weights.value;
  const view = now.view.value;
  const editing = useSignal(false);
  if (!sheet || !layer || !weights || !view) return null;
  const kind = explorer.kind;
  return (
    <>
      <div class="pane-head">
        <Crumbs part={view} editing={editing.value} edit={() => (editing.value = !editing.value)} />
        <div class="tools">
          <button type="button" title="Closer (+)" aria-label="Closer" onClick={() => explorer.map?.closer(2)}>
            +
          </button>
          <button type="button" title="Farther (−)" aria-label="Farther" onClick={() => explorer.map?.closer(0.5)}>
            −
          </button>
          <ExportMenu />
        </div>
      </div>
      {editing.value && <PartForm view={view} />}
      <p id="coarse" class="hint" hidden={!sheet.coarse || (sheet.preview && !takesLong(layer, view))}>
        {wording.hint(sheet.coarse ? sheet.excerpt : null, sheet.preview || sheet.tile.pyramidLevel > 0 ? sheet.tile : null)}
      </p>
      <MapCanvas label={wording.spoken(weights.rows, weights.columns, kind, sheet.coarse)} />
      <MapFoot />
    </>
  );
}

/** Where one is: heading · layer · head · part. */
function Crumbs({ part, editing, edit }: { part: Excerpt; editing: boolean; edit: () => void }) {
  const explorer = useExplorer();
  const { now } = explorer;
  const answer = now.answer.value;
  const sheet = now.sheet.value;
  if (!answer) return null;
  const layer = explorer.layer.value;
  const heads = layer?.heads ?? 0;
  const all = sheet !== null && layer !== null && holdsAll(layer, sheet.excerpt);
  const shown = sheet?.head ?? now.head.value;
  return (
    <nav class="crumbs" aria-label="What is shown">
      <span id="choices" class="choices" hidden={answer.layers.length < 2 && heads < 2}>
        <select
          id="layer"
          aria-label="Layer"
          value={String(now.layer.value)}
          title={explorer.layer.value?.name}
          onChange={(event) => explorer.chooseLayer(Number(event.currentTarget.value))}
        >
          {sheets(answer.layers).map(([name, own]) => (
            <optgroup key={name} label={name || "layers"}>
              {own.map((index) => (
                <option key={index} value={String(index)}>
                  {answer.layers[index]?.title}
                </option>
              ))}
            </optgroup>
          ))}
        </select>
        <span aria-hidden="true" class="between">
          ›
        </span>
        <label>
          head{" "}
          <Select
            id="head"
            value={shown === null ? "" : String(shown)}
            options={[
              ...(sheet?.head === null || all ? [["", "mean of all"] as const] : []),
              ...Array.from({ length: heads }, (_, head) => [String(head), String(head)] as const),
            ]}
            choose={(head) => explorer.chooseHead(head === "" ? null : Number(head))}
          />
        </label>
        <span aria-hidden="true" class="between">
          ›
        </span>
      </span>
      <button id="part" type="button" class="quiet" aria-expanded={editing} title="Choose a part by numbers" onClick={edit}>
        {wording.partName(part)}
      </button>
    </nav>
  );
}

/** The numbers that say which part of the map is in view, and by which another is asked for. */
function PartForm({ view }: { view: Excerpt }) {
  const explorer = useExplorer();
  const layer = explorer.layer.value;
  const form = useRef<HTMLFormElement>(null);
  if (!layer) return null;
  const all = same(view, whole(layer));
  const span = (axis: string): Span => {
    const field = (end: string) => form.current?.elements.namedItem(`${axis}-${end}`) as HTMLInputElement;
    return { from: Number(field("first").value), to: Number(field("last").value) + 1 };
  };
  const ends = (axis: "rows" | "keys", { from, to }: Span, most: number, legend: string, does: string) => (
    <fieldset>
      <legend>{legend}</legend>
      {(["first", "last"] as const).map((end) => (
        <input
          key={end}
          id={`${axis}-${end}`}
          name={`${axis}-${end}`}
          type="number"
          min={0}
          max={most - 1}
          required
          aria-label={`${end === "first" ? "First" : "Last"} place that ${does}`}
          value={end === "first" ? from : to - 1}
          onInput={() => {
            const last = form.current?.elements.namedItem(`${axis}-last`) as HTMLInputElement;
            const { from: first, to: end } = span(axis);
            last.setCustomValidity(end <= first ? "The last place comes before the first." : "");
          }}
        />
      ))}
      of <span id={`${axis}-most`}>{`0–${(most - 1).toLocaleString("en")}`}</span>
    </fieldset>
  );
  return (
    <form
      id="frame"
      class="frame"
      ref={form}
      autocomplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        explorer.view({ rows: span("rows"), keys: span("keys") });
      }}
    >
      {ends("rows", view.rows, layer.queries, "Rows, which look", "looks")}
      {ends("keys", view.keys, layer.keys, "Keys, looked at", "is looked at")}
      <div class="buttons">
        <button type="submit">Show</button>
        <button type="button" id="farther" disabled={all} onClick={() => explorer.view(farther(view, layer))}>
          Farther
        </button>
        <button type="button" id="whole" disabled={all} onClick={() => explorer.view(whole(layer))}>
          Whole map
        </button>
      </div>
    </form>
  );
}

/** What a reader does on a map. */
export function handlersOf(explorer: Explorer): Handlers {
  const place = ({ row: index, column: partner }: Cell): Place => ({ side: "target", index, partner });
  return {
    point: (cell, spoken) => {
      explorer.point(place(cell));
      if (spoken) explorer.spoken.value = readout(explorer, place(cell));
    },
    click: (cell) => explorer.pin(place(cell)),
    view: (excerpt, from) => explorer.view(excerpt, from),
    here: () => active(explorer.state),
    leave: () => {
      const last = explorer.state.pointed;
      if (last) explorer.point({ side: last.side, index: last.index });
    },
  };
}

function MapCanvas({ label }: { label: string }) {
  const explorer = useExplorer();
  const canvas = useRef<HTMLCanvasElement>(null);
  const room = useRef<HTMLDivElement>(null);
  const near = useRef<Piece | null>(null);
  const far = useRef<Piece | null>(null);
  // With the frame that shows the panel, not with the next one.
  useLayoutEffect(() => {
    if (!canvas.current || !room.current) return;
    explorer.map = new MapView(explorer.theme, canvas.current, room.current, handlersOf(explorer));
    draw();
    return () => (explorer.map = null);
  }, []);
  const draw = () => {
    const { now, theme } = explorer;
    theme.changes.value;
    const [sheet, layer, weights] = [now.sheet.value, explorer.layer.value, explorer.weights.value];
    const [view, scale, overview, head] = [now.view.value, now.scale.value, now.overview.value, now.head.value];
    const place = now.pinned.value ?? now.pointed.value;
    if (!sheet || !layer || !weights) return;
    const tile = overview?.tiles[sheet.layer];
    const whollyThere = tile?.rows === layer.queries && tile.keys === layer.keys;
    if (near.current?.matrix !== weights || near.current.excerpt !== sheet.excerpt || near.current.scale !== scale) {
      near.current = { matrix: weights, excerpt: sheet.excerpt, shade: shading(scale, weights, layer.keys), scale };
      // All of it came: nothing lies under it.
      if (same(sheet.excerpt, whole(layer))) far.current = near.current;
      else {
        // The whole map, pooled; of a mean only where the overview is exact.
        const shown = sheet.head ?? head;
        const matrix =
          !tile || (shown === null && !whollyThere) ? null : shown === null ? mean(tile) : headOf(tile, shown);
        far.current =
          matrix && { matrix, excerpt: whole(layer), shade: shading(scale, matrix, layer.keys), scale };
      }
    }
    explorer.map?.draw({
      layer,
      view: view ?? sheet.excerpt,
      far: far.current,
      near: near.current,
      rows: sheet.rows,
      columns: sheet.keys,
      rightToLeft: overview?.rightToLeft.has(sheet.layer) ?? false,
      ramp: theme.ramp,
      gold: explorer.gold.value,
      active: place,
      kept: now.pinned.value !== null,
      until: explorer.until.value,
    });
  };
  useSignalEffect(draw);
  return (
    <div class="map-room" id="map-room" ref={room}>
      <div class="stack">
        <canvas
          id="map"
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-roledescription="map of weights"
          aria-label={label}
          aria-describedby="readout map-help"
        />
      </div>
      <p id="map-help" class="unseen">
        Arrow keys move the crosshair, plus and minus zoom, 0 shows all, Enter keeps a cell.
      </p>
    </div>
  );
}

/** The value under a place that names a cell. */
function weightAt(matrix: Matrix, place: Place): number | null {
  if (place.partner === undefined) return null;
  return place.side === "target"
    ? at(matrix, place.index, place.partner)
    : at(matrix, place.partner, place.index);
}

/** Both words of a cell and its weight. */
export function readout(explorer: Explorer, place: Place | null): string {
  const [sheet, weights] = [explorer.now.sheet.value, explorer.weights.value];
  if (!place || !sheet || !weights || place.partner === undefined) return "";
  const [axis, across] = place.side === "target" ? [sheet.rows, sheet.keys] : [sheet.keys, sheet.rows];
  const weight = weightAt(weights, place);
  const word = axis[place.index]?.text ?? "";
  return weight === null
    ? ""
    : `${isolated(word)} → ${isolated(across[place.partner]?.text ?? "")}: ${percent(weight)}`;
}

function MapFoot() {
  const explorer = useExplorer();
  const { now, theme } = explorer;
  const weights = explorer.weights.value;
  const scale = now.scale.value;
  theme.changes.value;
  const colours = theme.ramp.steps.filter((_, step) => step % 15 === 0).map(css);
  if (!weights) return null;
  return (
    <div class="map-foot">
      <label class="scale">
        Colours{" "}
        <Select id="scale" value={scale} options={SCALES} choose={(one) => explorer.set({ scale: one as Scale })} />
      </label>
      <span class="legend">
        <span id="legend" ref={(one) => one?.style.setProperty("background", `linear-gradient(90deg,${colours})`)} />
        <span id="ticks" class="ticks">
          {ticks(scale, largest(weights)).map(({ share, text }) => (
            <span key={share} ref={(one) => one?.style.setProperty("--share", `${(share * 100).toFixed(1)}%`)}>
              {text}
            </span>
          ))}
        </span>
      </span>
      <Readout />
    </div>
  );
}

function Readout() {
  const explorer = useExplorer();
  const { pinned, pointed } = explorer.now;
  return (
    <span class="readout">
      <span id="readout">{readout(explorer, active({ pinned: pinned.value, pointed: pointed.value }))}</span>
    </span>
  );
}
