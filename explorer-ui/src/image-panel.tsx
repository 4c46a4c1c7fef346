import { h } from "preact";
import { useAsked, useCanvas } from "./hooks.ts";
import { patched } from "./image.ts";
import { readout } from "./map-panel.tsx";
import { fitted } from "./painting.ts";
import { useExplorer } from "./panel.ts";
import { Meanwhile } from "./parts.tsx";
import { colour, css } from "./ramp.ts";
import { shading } from "./scale.ts";
import { useSignal } from "./signals.ts";
import type { Place } from "./state.ts";
import { note, title } from "./wording.ts";
import { darkness } from "./words-panel.tsx";

const OPACITY = 0.75; // of the weights, through which the image is seen in grey

/** The image whose patches are places of the map, under the weights of the place in view. */
export function ImagePanel() {
  const explorer = useExplorer();
  const { now, theme } = explorer;
  const near = useSignal<number | null>(null);
  const [sheet, layer, matrix, place] = [now.sheet.value, explorer.layer.value, explorer.weights.value, explorer.place.value];
  const [map, scale, image] = [now.answer.value?.map ?? "", now.scale.value, layer?.image];
  const name = image ? `${map} ${image.of}` : null;
  const { came, problem } = useAsked(name, name, async (_, signal) =>
    createImageBitmap(new Blob([await explorer.door.image(map, image?.of ?? 0, signal)])),
  );
  const bitmap = came.value?.asked === name ? came.value?.found : null;
  const found = layer && sheet && !sheet.coarse && matrix && place && patched(layer, sheet.excerpt, matrix, place);
  const patch = near.value ?? (found ? found.across : NaN);
  const [rows, columns] = image?.grid ?? [1, 1];
  /** The image alone, as large as there is room; how large that is. */
  const drawn = (canvas: HTMLCanvasElement, pen: CanvasRenderingContext2D, room: HTMLElement, filter = "none") => {
    const { width, height } = bitmap ?? { width: 1, height: 1 };
    const size = Math.min(room.clientWidth / width, room.clientHeight / height);
    const box = fitted(canvas, width * size, height * size);
    pen.filter = filter;
    if (bitmap) pen.drawImage(bitmap, 0, 0, box.width, box.height);
    pen.filter = "none";
    return box;
  };
  const plain = useCanvas((canvas, pen, room) => void drawn(canvas, pen, room), [bitmap]);
  const canvas = useCanvas(
    (canvas, pen, room) => {
      if (!bitmap || !found) return;
      const { width, height } = drawn(canvas, pen, room, "grayscale(1)");
      const box = (patch: number, inset: number) => {
        const edge = (index: number, count: number, size: number) => Math.round((index * size) / count);
        const [row, column] = [Math.floor(patch / columns), patch % columns];
        const [x, y] = [edge(column, columns, width) + inset, edge(row, rows, height) + inset];
        return [x, y, edge(column + 1, columns, width) - inset - x, edge(row + 1, rows, height) - inset - y] as const;
      };
      pen.globalAlpha = OPACITY;
      const dark = darkness(shading(scale, matrix, layer.keys), place);
      found.weights.forEach((weight = NaN, patch) => {
        if (Number.isNaN(weight)) return;
        pen.fillStyle = css(colour(theme.ramp, dark(weight, found.first + patch)));
        pen.fillRect(...box(patch, 0));
      });
      pen.globalAlpha = 1;
      pen.lineWidth = 2;
      for (const [framed, tone] of [[found.own, "ink"], [patch, "accent"]] as const) {
        pen.strokeStyle = theme.tone(tone);
        if (framed in found.weights) pen.strokeRect(...box(framed, 1));
      }
    },
    [bitmap, matrix, place, patch, scale, theme.changes.value],
  );
  if (!found || !bitmap) {
    const doing = !image
      ? "The keys of this layer are no patches of an image. Choose another layer."
      : sheet?.coarse
        ? "The image stands here when the map is near enough to have words."
        : "Reading the image…";
    return <Meanwhile problem={problem.value} doing={doing} />;
  }
  const { side, index } = place;
  const at = (patch: number): Place => ({ side, index, partner: found.first + patch });
  const known = (patch: number) => found.weights[patch] !== undefined;
  const point = (patch: number, spoken: boolean) => {
    if (!known(patch)) return;
    near.value = patch;
    explorer.point(at(patch));
    if (spoken) explorer.spoken.value = readout(explorer, at(patch));
  };
  // Where patches look as well, one that is chosen is the one whose weights are seen.
  const choose = () => {
    if (known(patch)) explorer.pin(found.both ? { side, index: found.first + patch } : at(patch));
  };
  const leave = () => (near.value = null);
  const word = sheet?.[side === "target" ? "rows" : "keys"][index]?.text ?? "";
  return (
    <div class="compare">
      <div class="aside">
        <h3>{title({ side, index }, [word], explorer.kind)}</h3>
        <p class="note">{note({ side, index }, explorer.kind, found.weights.map((weight) => weight || 0))}</p>
        <p id="patch">{known(patch) && readout(explorer, at(patch))}</p>
      </div>
      <div class="image-room">
        <canvas
          id="image"
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-roledescription="image in patches"
          aria-label="The image under the weights of its patches. Arrow keys move, Enter keeps a patch."
          aria-describedby="patch"
          onPointerMove={({ currentTarget, clientX, clientY }) => {
            const { left, top, width, height } = currentTarget.getBoundingClientRect();
            const place = (share: number, count: number) => Math.min(Math.max(Math.floor(share * count), 0), count - 1);
            point(place((clientY - top) / height, rows) * columns + place((clientX - left) / width, columns), false);
          }}
          onPointerLeave={leave}
          onBlur={leave}
          onClick={choose}
          onKeyDown={(event) => {
            const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Enter: 0, " ": 0 }[event.key];
            if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
            event.preventDefault();
            if (step === 0) choose();
            else point(Number.isNaN(patch) ? 0 : patch + step, true);
          }}
        />
      </div>
      <div class="image-room">
        <canvas ref={plain} role="img" aria-label="The image" />
      </div>
    </div>
  );
}
