import { csv } from "./csv.ts";
import type { Explorer } from "./explorer.ts";
import type { Span } from "./excerpt.ts";
import { largest } from "./matrix.ts";
import { drawLegend } from "./painting.ts";
import { type Pen, SvgPen } from "./pen.ts";
import { SCALES, ticks } from "./scale.ts";
import { headName, partName } from "./wording.ts";

const MARGIN = 16;
const HEAD = 28;
const FOOT = 56;
const LEGEND = 288;
const DENSITY = 2; // pixels of an image for each of the page's

/** What an exported map is called. */
export function mapTitle(explorer: Explorer): string {
  const [layer, view] = [explorer.layer.peek(), explorer.map?.view ?? null];
  const head = explorer.state.sheet?.head ?? explorer.state.head;
  return !layer || !view ? "" : `${headName(layer, head)}, ${partName(view)}`;
}

/** The map on screen with its title and its legend. */
function draw(explorer: Explorer, pen: Pen, { width, height }: { width: number; height: number }): void {
  const { map, theme } = explorer;
  const weights = explorer.weights.peek();
  if (!map || !weights) return;
  const { scale } = explorer.state;
  pen.fillStyle = theme.tone("paper");
  pen.fillRect(0, 0, width, height);
  pen.fillStyle = theme.tone("ink");
  pen.font = `600 13px ${theme.font}`;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.fillText(mapTitle(explorer), MARGIN, MARGIN + 6);
  pen.save();
  pen.translate(MARGIN, MARGIN + HEAD);
  const step = map.export(pen);
  pen.restore();
  const y = height - MARGIN - FOOT + 22;
  pen.fillStyle = theme.tone("quiet");
  pen.font = `12px ${theme.font}`;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  const colours = `Colours: ${SCALES.find(([one]) => one === scale)?.[1] ?? scale}`;
  pen.fillText(step > 1 ? `${colours} · 1 of ${step} tokens is named` : colours, MARGIN, y - 10);
  drawLegend(
    pen,
    theme.ramp,
    ticks(scale, largest(weights)),
    { x: MARGIN, y, width: Math.min(LEGEND, width - 2 * MARGIN) },
    theme.tone("quiet"),
    theme.font,
  );
}

function sizeOf(explorer: Explorer): { width: number; height: number } | null {
  const size = explorer.map?.size ?? null;
  return (
    size && {
      width: Math.max(Math.ceil(size.width), LEGEND) + 2 * MARGIN,
      height: Math.ceil(size.height) + HEAD + FOOT + 2 * MARGIN,
    }
  );
}

export function svg(explorer: Explorer): string | null {
  const size = sizeOf(explorer);
  if (!size) return null;
  const pen = new SvgPen();
  draw(explorer, pen, size);
  return pen.file(size.width, size.height, mapTitle(explorer));
}

export async function png(explorer: Explorer): Promise<Blob | null> {
  const size = sizeOf(explorer);
  const canvas = document.createElement("canvas");
  const pen = canvas.getContext("2d");
  if (!size || !pen) return null;
  [canvas.width, canvas.height] = [size.width * DENSITY, size.height * DENSITY];
  pen.scale(DENSITY, DENSITY);
  draw(explorer, pen, size);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Print the map alone, which browsers can do into a PDF. */
export async function print(picture: string): Promise<void> {
  const image = new Image();
  image.className = "printed"; // page.css
  image.src = `data:image/svg+xml,${encodeURIComponent(picture)}`;
  await image.decode();
  document.body.append(image);
  addEventListener("afterprint", () => image.remove(), { once: true });
  window.print();
}

/** The CSV of what is on screen. */
export function csvOf(explorer: Explorer): string | null {
  const { sheet, view } = explorer.state;
  const weights = explorer.weights.peek();
  if (!sheet || !weights) return null;
  const { rows, keys } = sheet.excerpt;
  const shown = view ?? sheet.excerpt;
  const cut = (own: Span, part: Span, count: number): Span =>
    sheet.coarse ? { from: 0, to: count } : { from: part.from - own.from, to: part.to - own.from };
  const part = { rows: cut(rows, shown.rows, weights.rows), keys: cut(keys, shown.keys, weights.columns) };
  const start = sheet.coarse ? { row: 0, key: 0 } : { row: rows.from, key: keys.from };
  return csv(weights, sheet.rows, sheet.keys, part, start);
}

/** Give the reader a file. */
export function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
