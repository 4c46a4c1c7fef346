import { Fragment, h } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Explorer, Reading } from "./explorer.ts";
import type { Span } from "./excerpt.ts";
import { RULE, wordAt } from "./joining.ts";
import { direction } from "./label.ts";
import { column, row } from "./matrix.ts";
import { useExplorer } from "./panel.ts";
import { Switch } from "./parts.tsx";
import { type Shading, shading } from "./scale.ts";
import { useSignalEffect } from "./signals.ts";
import { type Place, type Side, placesOf } from "./state.ts";
import { TokenRow } from "./token-row.ts";
import * as wording from "./wording.ts";

const SIDES = [
  ["target", "looks at"],
  ["source", "is looked at"],
] as const;

/**
 * The weights of a place of a reading towards the other side. Of several words that look, the mean;
 * of several that are looked at, the sum.
 */
export function toward({ matrix }: Reading, place: Place): number[] {
  const target = place.side === "target";
  const [first = [], ...others] = placesOf(place).map((index) => (target ? row : column)(matrix, index));
  const sum = (at: number) => others.reduce((total, one) => total + (one[at] ?? 0), first[at] ?? 0);
  return others.length === 0 ? first : first.map((_, at) => sum(at) / (target ? others.length + 1 : 1));
}

/** A place of the sheet as one of the reading, whose places may be words. */
export function placeOf({ rowSpans, keySpans }: Reading, { side, index, partner, also = [] }: Place): Place {
  const [own, across] = side === "target" ? [rowSpans, keySpans] : [keySpans, rowSpans];
  const [first = 0, ...others] = new Set([index, ...also].map((one) => wordAt(own, one)));
  const there = { side, index: first, also: others };
  return partner === undefined ? there : { ...there, partner: wordAt(across, partner) };
}

/** How dark the weights of a place are: of one row, or of one in each row. */
export function darkness(shade: Shading, place: Place): (weight: number, index: number) => number {
  const own = place.side === "target" ? placesOf(place) : null;
  return (weight, index) => (own ?? [index]).reduce((dark, row) => Math.min(dark, shade(weight, row)), 1);
}

/** The words of a reading that a part of the sheet touches. */
export function wordsIn(spans: readonly Span[], part: Span): Span {
  const from = spans.findIndex(({ to }) => to > part.from);
  const after = spans.findIndex(({ from: start }) => start >= part.to);
  return { from: Math.max(from, 0), to: after < 0 ? spans.length : after };
}

/** Whether both axes are the same places of one text, which then stands there once. */
export function oneText(explorer: Explorer): boolean {
  const [sheet, view] = [explorer.now.sheet.value, explorer.now.view.value];
  if (!sheet || !view || explorer.layer.value?.within !== true) return false;
  const alike = (a: Span, b: Span) => a.from === b.from && a.to === b.to;
  const { excerpt, rows, keys } = sheet;
  if (!alike(excerpt.rows, excerpt.keys) || !alike(view.rows, view.keys)) return false;
  return rows.every((label, index) => label.text === keys[index]?.text);
}

export function WordsPanel() {
  const explorer = useExplorer();
  const { now } = explorer;
  const sheet = now.sheet.value;
  if (!sheet) return null;
  const single = oneText(explorer);
  const names = wording.sides(explorer.kind);
  const pieces = sheet.rows.some(({ begins }) => !begins) || sheet.keys.some(({ begins }) => !begins);
  return (
    <>
      <div class="pane-head">
        <h2>Words</h2>
        <div class="switches">
          {single && (
            <Switch
              name="side"
              legend="A word is shown as"
              options={SIDES}
              value={now.side.value}
              choose={(side) => {
                const { pointed, pinned } = explorer.state;
                const turned = (place: Place | null) => place && { side, index: place.index, ...(place.also && { also: place.also }) };
                explorer.set({ side, pointed: turned(pointed), pinned: turned(pinned) });
              }}
            />
          )}
          <label class="check" hidden={!pieces} title={RULE}>
            <input
              id="joined"
              type="checkbox"
              checked={now.joined.value}
              onChange={(event) => explorer.set({ joined: event.currentTarget.checked })}
            />{" "}
            whole words
          </label>
        </div>
      </div>
      {sheet.coarse ? (
        <p class="hint empty">
          Words stand here when the map is near enough: click a cell, or choose a part by its numbers.
        </p>
      ) : (
        <div class="texts" id="rows">
          {single ? (
            <Row title="Text" side={null} id="target" />
          ) : (
            <>
              <Row title={names.source} side="source" id="source" />
              <Row title={names.target} side="target" id="target" />
            </>
          )}
          {single && !!now.answer.value?.prompt && <p class="hint">Underlined: the prompt. The model wrote the rest.</p>}
          {now.joined.value && pieces && <p class="hint">{RULE} The map stays token by token.</p>}
        </div>
      )}
      <p class="caution">
        These numbers say where the model looked, not why it chose a word: a word can matter without being looked at,
        and be looked at without mattering.
      </p>
    </>
  );
}

/** The words of one side; `side` null: of the one text, which looks and is looked at. */
function Row({ title, side, id }: { title: string; side: Side | null; id: string }) {
  const explorer = useExplorer();
  const element = useRef<HTMLDivElement>(null);
  const words = useRef<TokenRow | null>(null);
  const own = (): Side => side ?? explorer.state.side;
  useEffect(() => {
    if (!element.current) return;
    const first = (index: number): Place => {
      const reading = explorer.reading.peek();
      const spans = own() === "target" ? reading?.rowSpans : reading?.keySpans;
      return { side: own(), index: spans?.[index]?.from ?? index };
    };
    words.current = new TokenRow(element.current, {
      point: (index) => explorer.point(first(index)),
      pin: (index, beside) => explorer.pin(first(index), beside),
    });
    fill();
    shade();
  }, []);
  const fill = () => {
    const [reading, sheet, view] = [explorer.reading.value, explorer.now.sheet.value, explorer.now.view.value];
    const along = side ?? explorer.now.side.value;
    if (!reading || !sheet) return;
    const [labels, spans] = along === "target" ? [reading.rows, reading.rowSpans] : [reading.keys, reading.keySpans];
    const across = (along === "target" ? reading.keys : reading.rows).map(({ text }) => text);
    const axis = along === "target" ? "rows" : "keys";
    const start = sheet.excerpt[axis].from;
    const part = view?.[axis] ?? sheet.excerpt[axis];
    const { from, to } = wordsIn(spans, { from: part.from - start, to: part.to - start });
    const prompt = explorer.now.answer.value?.prompt ?? 0;
    const given = side === null ? spans.filter((span) => span.from + start < prompt).length : 0;
    words.current?.fill(labels.slice(from, to), from, direction(labels), given, (index) =>
      wording.summary(
        { side: along, index },
        labels[index]?.text ?? "",
        toward(reading, { side: along, index }),
        across,
      ),
    );
  };
  const shade = () => {
    const { now, theme } = explorer;
    theme.changes.value;
    const reading = explorer.reading.value;
    const layer = explorer.layer.value;
    const pinned = now.pinned.value;
    const place = explorer.place.value;
    const along = side ?? now.side.value;
    if (!reading || !layer) return;
    const there = place && placeOf(reading, place);
    const self = side === null ? there !== null : there?.side === side;
    const shown = shading(now.scale.value, reading.matrix, layer.keys);
    words.current?.shade(
      {
        weights: !there || (self && side !== null) ? null : toward(reading, there),
        dark: !there ? () => 0 : darkness(shown, there),
        active: self ? (there?.index ?? null) : null,
        pinned: pinned && pinned.side === along ? placesOf(placeOf(reading, pinned)) : [],
        partner: !there || (self && side !== null) ? null : (there.partner ?? null),
      },
      theme.ramp,
    );
  };
  useSignalEffect(fill);
  useSignalEffect(shade);
  return (
    <>
      <h3 id={`${id}-title`}>{title}</h3>
      <div id={id} class="tokens" ref={element} role="group" aria-labelledby={`${id}-title`} dir="auto" />
    </>
  );
}
