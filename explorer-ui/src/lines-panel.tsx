import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Token, LinesView } from "./lines-view.ts";
import { HeadsLegend } from "./heads-legend.tsx";
import { useExplorer } from "./panel.ts";
import type { Place } from "./state.ts";
import { placeOf } from "./words-panel.tsx";
import { summary } from "./wording.ts";
import { toward } from "./words-panel.tsx";

/** The tokens that look beside those that are looked at, and a line for each weight. */
export function LinesPanel() {
  const explorer = useExplorer();
  const { now, theme } = explorer;
  const room = useRef<HTMLDivElement>(null);
  const view = useRef<LinesView | null>(null);
  const left = useSignal(0);
  useEffect(() => {
    if (room.current === null) return;
    const first = ({ side, index }: Token): Place => {
      const reading = explorer.reading.peek();
      const spans = side === "target" ? reading?.rowSpans : reading?.keySpans;
      return { side, index: spans?.[index]?.from ?? index };
    };
    const lines = new LinesView(theme, room.current, {
      point: (token) => {
        explorer.point(first(token));
        const reading = explorer.reading.peek();
        if (reading === null || !room.current?.matches(":focus")) return;
        const [own, across] = token.side === "target" ? [reading.rows, reading.keys] : [reading.keys, reading.rows];
        explorer.spoken.value = summary(
          token,
          own[token.index]?.text ?? "",
          toward(reading, token),
          across.map(({ text }) => text),
        );
      },
      pin: (token) => explorer.pin(first(token)),
      left: (count) => (left.value = count),
    });
    view.current = lines;
    draw();
    point();
    return () => lines.dispose();
  }, []);
  const draw = () => {
    theme.changes.value;
    const [sheet, reading, layer] = [now.sheet.value, explorer.reading.value, explorer.layer.value];
    const heads = explorer.heads.value;
    const threshold = now.threshold.value / 100;
    const rightToLeft = now.overview.value?.rightToLeft.has(layer?.sheet ?? "") ?? false;
    if (sheet === null || reading === null || sheet.coarse) return;
    const shown = heads.flatMap((head, index) => {
      const matrix = explorer.read(explorer.matrixOf(head))?.matrix;
      return matrix === undefined ? [] : [{ matrix, colour: theme.heads[index] ?? "" }];
    });
    const only = [{ matrix: reading.matrix, colour: theme.heads[0] ?? "" }];
    const drawn = shown.length > 0 ? shown : only;
    view.current?.draw({
      rows: reading.rows,
      keys: reading.keys,
      heads: drawn.map(({ matrix }) => matrix),
      colours: drawn.map(({ colour }) => colour),
      threshold,
      rightToLeft,
    });
  };
  const point = () => {
    const [place, reading] = [now.pinned.value ?? now.pointed.value, explorer.reading.value];
    view.current?.point(place === null || reading === null ? null : placeOf(reading, place));
  };
  useSignalEffect(draw);
  useSignalEffect(point);
  const coarse = now.sheet.value?.coarse ?? true;
  return (
    <>
      <p class="hint empty" hidden={!coarse}>
        Lines stand here when the map is near enough to have words.
      </p>
      <div class="lines" hidden={coarse}>
        <div class="aside">
          <label class="slider">
            Lines from <output>{now.threshold.value} %</output>
            <input
              id="threshold"
              type="range"
              min={0}
              max={100}
              step={1}
              value={now.threshold.value}
              aria-label="Least weight that has a line, in percent"
              onInput={(event) => explorer.set({ threshold: Number(event.currentTarget.value) })}
            />
          </label>
          <HeadsLegend />
          <p class="note" hidden={left.value === 0}>
            {left.value.toLocaleString("en")} thinner lines are left out.
          </p>
        </div>
        <div
          id="lines"
          class="lines-room"
          ref={room}
          tabIndex={0}
          role="application"
          aria-roledescription="lines between words"
          aria-label="Words that look, words that are looked at, and a line for each weight. Arrow keys move, Enter keeps a word."
        />
      </div>
    </>
  );
}
