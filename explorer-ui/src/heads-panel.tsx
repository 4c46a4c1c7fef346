import { Fragment, h } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { HeadGrid } from "./head-grid.ts";
import { useExplorer } from "./panel.ts";
import { Select } from "./parts.tsx";
import { useSignal, useSignalEffect } from "./signals.ts";
import { statisticName } from "./wording.ts";

/** All heads of all layers at once. */
export function HeadsPanel() {
  const explorer = useExplorer();
  const { now, theme } = explorer;
  const canvas = useRef<HTMLCanvasElement>(null);
  const room = useRef<HTMLDivElement>(null);
  const readout = useRef<HTMLParagraphElement>(null);
  const grid = useRef<HeadGrid | null>(null);
  const several = useSignal(false);
  // With the frame that shows the panel, not with the next one.
  useLayoutEffect(() => {
    if (!canvas.current || !room.current || !readout.current) return;
    grid.current = new HeadGrid(
      theme,
      canvas.current,
      room.current,
      readout.current,
      {
        choose: (head) => (several.peek() ? explorer.toggle(head) : explorer.see(head.layer, head.head)),
        toggle: (head) => explorer.toggle(head),
        point: (head) => explorer.expect(head),
      },
    );
    draw();
  }, []);
  const draw = () => {
    const [answer, overview, head] = [now.answer.value, now.overview.value, now.head.value];
    theme.changes.value;
    const heads = {
      shown: head === null ? null : { layer: now.layer.value, head },
      together: explorer.heads.value,
      scale: now.scale.value,
      statistic: now.statistic.value,
      sorted: now.sorted.value,
      least: now.statistic.value === null ? 0 : now.least.value,
    };
    if (!answer || !overview) return;
    grid.current?.draw({
      ...heads,
      layers: answer.layers,
      overview: overview.tiles,
      statistics: overview.statistics,
      rightToLeft: overview.rightToLeft,
      colours: theme.heads,
      ramp: theme.ramp,
    });
  };
  useSignalEffect(draw);
  const statistics = now.overview.value?.statistics;
  const known = (statistics?.names ?? []).filter((name) => statistics?.layers.some((one) => one[name]));
  const selected = explorer.heads.value.length;
  return (
    <>
      <div class="pane-head">
        <h2 id="heads-title">Heads</h2>
        <button type="button" class="quiet" hidden={selected < 2} onClick={() => explorer.set({ selected: [] })}>
          {selected} selected · clear
        </button>
      </div>
      <div class="heads-choices">
        <label>
          marked by{" "}
          <Select
            id="statistic"
            value={now.statistic.value ?? ""}
            options={[["", "nothing"], ...known.map((name) => [name, statisticName(name)] as const)]}
            choose={(name) => explorer.set({ statistic: name || null })}
          />
        </label>
        <label>
          <input
            id="sorted"
            type="checkbox"
            checked={now.sorted.value}
            disabled={now.statistic.value === null}
            onChange={(event) => explorer.set({ sorted: event.currentTarget.checked })}
          />{" "}
          sorted
        </label>
        <label>
          <input
            id="several"
            type="checkbox"
            checked={several.value}
            onChange={(event) => (several.value = event.currentTarget.checked)}
          />{" "}
          select several
        </label>
        <label hidden={now.statistic.value === null}>
          from{" "}
          <input
            id="least"
            type="number"
            min={0}
            max={100}
            value={now.least.value}
            onInput={({ currentTarget: field }) => field.validity.valid && explorer.set({ least: field.valueAsNumber || 0 })}
          />{" "}
          % of the largest
        </label>
      </div>
      <div class="grid-room" ref={room}>
        <div class="stack">
          <canvas
            id="grid"
            ref={canvas}
            tabIndex={0}
            role="application"
            aria-roledescription="grid of heads"
            aria-labelledby="heads-title"
            aria-describedby="grid-readout grid-help"
          />
        </div>
      </div>
      <p id="grid-readout" class="hint" ref={readout} aria-live="polite" />
      <p id="grid-help" class="unseen">
        Arrow keys move, Enter shows a head, Space selects it beside the others.
      </p>
    </>
  );
}
