import { Fragment, h } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type Token, LinesView } from "./lines-view.ts";
import { HeadsLegend } from "./heads-legend.tsx";
import type { Span } from "./excerpt.ts";
import { useExplorer } from "./panel.ts";
import { useSignal, useSignalEffect } from "./signals.ts";
import type { Place } from "./state.ts";
import { cut } from "./matrix.ts";
import { summary } from "./wording.ts";
import { placeOf, toward, wordsIn } from "./words-panel.tsx";

/** The tokens that look beside those that are looked at, and a line for each weight. */
export function LinesPanel() {
  const explorer = useExplorer();
  const { now, theme } = explorer;
  const room = useRef<HTMLDivElement>(null);
  const view = useRef<LinesView | null>(null);
  const left = useSignal(0);
  // Lines stand between the words of the part that is in view; a token is counted from its beginning.
  const part = (): { rows: Span; keys: Span } | null => {
    const [sheet, reading, view] = [now.sheet.value, explorer.reading.value, now.view.value];
    if (!sheet || !reading) return null;
    const of = (axis: "rows" | "keys", spans: readonly Span[]) => {
      const start = sheet.excerpt[axis].from;
      const shown = view?.[axis] ?? sheet.excerpt[axis];
      return wordsIn(spans, { from: shown.from - start, to: shown.to - start });
    };
    return { rows: of("rows", reading.rowSpans), keys: of("keys", reading.keySpans) };
  };
  const shift = ({ side, index }: Token, sign: 1 | -1): Token => {
    const start = (side === "target" ? part()?.rows : part()?.keys)?.from ?? 0;
    return { side, index: index + sign * start };
  };
  const whole = (token: Token): Token => shift(token, 1);
  useEffect(() => {
    if (!room.current) return;
    const first = (token: Token): Place => {
      const reading = explorer.reading.peek();
      const { side, index } = whole(token);
      const spans = side === "target" ? reading?.rowSpans : reading?.keySpans;
      return { side, index: spans?.[index]?.from ?? index };
    };
    const lines = new LinesView(theme, room.current, {
      point: (token) => {
        explorer.point(first(token));
        const reading = explorer.reading.peek();
        if (!reading || !room.current?.matches(":focus")) return;
        const there = whole(token);
        const [own, across] = token.side === "target" ? [reading.rows, reading.keys] : [reading.keys, reading.rows];
        explorer.spoken.value = summary(
          there,
          own[there.index]?.text ?? "",
          toward(reading, there),
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
    const [sheet, reading] = [now.sheet.value, explorer.reading.value];
    const heads = explorer.heads.value;
    const threshold = now.threshold.value / 100;
    const rightToLeft = now.overview.value?.rightToLeft.has(sheet?.layer ?? -1) ?? false;
    const inView = part();
    if (!sheet || !reading || !inView || sheet.coarse) return;
    const { rows, keys } = inView;
    const shown = heads.flatMap((head, index) => {
      const matrix = explorer.read(explorer.matrixOf(head))?.matrix;
      return !matrix ? [] : [{ matrix: cut(matrix, rows, keys), colour: theme.heads[index] ?? "" }];
    });
    const only = [{ matrix: cut(reading.matrix, rows, keys), colour: theme.heads[0] ?? "" }];
    const drawn = shown.length > 0 ? shown : only;
    view.current?.draw({
      rows: reading.rows.slice(rows.from, rows.to),
      keys: reading.keys.slice(keys.from, keys.to),
      heads: drawn.map(({ matrix }) => matrix),
      colours: drawn.map(({ colour }) => colour),
      threshold,
      rightToLeft,
    });
  };
  const point = () => {
    const [place, reading] = [explorer.place.value, explorer.reading.value];
    if (!place || !reading) return view.current?.point(null);
    const { side, index } = placeOf(reading, place);
    view.current?.point(shift({ side, index }, -1));
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
