import { Fragment, h } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Bars } from "./bars.ts";
import { isolated } from "./label.ts";
import { descending } from "./matrix.ts";
import { useExplorer } from "./panel.ts";
import { Switch } from "./parts.tsx";
import { shading } from "./scale.ts";
import { percent } from "./share.ts";
import { useSignalEffect } from "./signals.ts";
import { placesOf } from "./state.ts";
import * as wording from "./wording.ts";
import { darkness, placeOf, toward, wordsIn } from "./words-panel.tsx";

const TOP = 3;
const ORDERS = [
  ["sentence", "as in the text"],
  ["weight", "largest first"],
] as const;

/** Where one word looks, or which words look at it: its weights as bars. */
export function DistributionPanel() {
  const explorer = useExplorer();
  const list = useRef<HTMLOListElement>(null);
  const bars = useRef<Bars | null>(null);
  const title = useRef<HTMLHeadingElement>(null);
  const note = useRef<HTMLParagraphElement>(null);
  const top = useRef<HTMLParagraphElement>(null);
  const whole = useRef<HTMLParagraphElement>(null);
  const { now } = explorer;
  useEffect(() => {
    if (list.current) bars.current = new Bars(list.current);
    draw();
  }, []);
  const draw = () => {
    explorer.theme.changes.value;
    const [sheet, view, layer] = [now.sheet.value, now.view.value, explorer.layer.value];
    const reading = explorer.reading.value;
    const pointed = explorer.place.value;
    const [scale, order, kind] = [now.scale.value, now.order.value, explorer.kind];
    if (!reading || !sheet || !layer || !pointed || sheet.coarse) return;
    const place = placeOf(reading, pointed);
    const target = place.side === "target";
    const [own, across, spans] = target
      ? [reading.rows, reading.keys, reading.keySpans]
      : [reading.keys, reading.rows, reading.rowSpans];
    const label = own[place.index];
    const axis = target ? "keys" : "rows";
    const start = sheet.excerpt[axis].from;
    const part = view?.[axis] ?? sheet.excerpt[axis];
    const { from, to } = wordsIn(spans, { from: part.from - start, to: part.to - start });
    const numbers = toward(reading, place).slice(from, to);
    const labels = across.slice(from, to);
    const write = (element: HTMLElement | null, text: string) => {
      if (element) [element.textContent, element.hidden] = [text, text === ""];
    };
    write(title.current, wording.title(place, placesOf(place).sort((a, b) => a - b).map((index) => own[index]?.text ?? ""), kind));
    write(note.current, wording.note(place, kind, numbers));
    write(whole.current, label?.whole === undefined ? "" : `In full: ${label.whole}`);
    const most = descending(numbers)
      .slice(0, TOP)
      .filter((index) => (numbers[index] ?? 0) >= 0.005);
    const named = most.map((index) => `${isolated(labels[index]?.text ?? "")} ${percent(numbers[index] ?? 0)}`);
    write(top.current, named.length > 0 ? `Most: ${named.join(", ")}.`.replace(/ %/g, "\u00a0%") : "");
    const dark = darkness(shading(scale, reading.matrix, layer.keys), place);
    bars.current?.draw(labels, numbers, order, {
      ramp: explorer.theme.ramp,
      dark: (weight, index) => dark(weight, index + from),
      partner: place.partner === undefined ? null : place.partner - from,
    });
  };
  useSignalEffect(draw);
  const coarse = now.sheet.value?.coarse ?? true;
  return (
    <>
      <p class="hint empty" hidden={!coarse}>
        The numbers of a word stand here when the map is near enough to have words.
      </p>
      <section id="distribution" class="distribution" aria-labelledby="distribution-title" hidden={coarse}>
        <div class="aside">
          <h3 id="distribution-title" ref={title} />
          <p id="distribution-top" class="top-words" ref={top} />
          <p id="distribution-note" class="note" ref={note} />
          <p id="distribution-whole" class="note whole" ref={whole} hidden />
          <Switch
            name="order"
            legend="Order"
            options={ORDERS}
            value={now.order.value}
            choose={(order) => explorer.set({ order })}
          />
        </div>
        <ol id="bars" class="bars" ref={list} tabIndex={0} aria-labelledby="distribution-title" />
      </section>
    </>
  );
}
