import type { Excerpt } from "./excerpt.ts";
import type { Matrix } from "./matrix.ts";
import { type Pen, SvgPen } from "./pen.ts";
import { type Ramp, colour, css, pixels } from "./ramp.ts";
import type { Scale, Shading, Tick } from "./scale.ts";

/** Weights and the part of the map that they are of. */
export interface Piece {
  readonly matrix: Matrix;
  readonly excerpt: Excerpt;
  readonly shade: Shading;
  readonly scale: Scale;
}

/**
 * One pixel a weight, to be enlarged; several maps of one size stand below each other. `flipped`:
 * keys go from right to left. Where there is less room than that, in CSS pixels, a pixel shows the
 * strongest of its weights: a peak never vanishes because it is thin.
 */
export function painted(
  pieces: readonly Pick<Piece, "matrix" | "shade">[],
  ramp: Ramp,
  flipped = false,
  room = [Infinity, Infinity],
): HTMLCanvasElement {
  const small = document.createElement("canvas");
  const { rows, columns } = pieces[0]?.matrix ?? { rows: 0, columns: 0 };
  if (rows === 0 || columns === 0) return small;
  const [across = 0, down = 0] = [columns, rows].map((count, axis) => within(count, room[axis]));
  [small.width, small.height] = [across, down * pieces.length];
  const image = new ImageData(across, down * pieces.length);
  const strongest = new Float32Array(across * down * pieces.length).fill(-1);
  // Where each key lies in a line. Some hundred thousand cells at a time: no array for each of them.
  const places = Int32Array.from({ length: columns }, (_, column) => {
    const x = Math.floor((column * across) / columns);
    return flipped ? across - 1 - x : x;
  });
  const [to, colours] = [new Uint32Array(image.data.buffer), pixels(ramp)];
  pieces.forEach(({ matrix: { values }, shade }, index) => {
    for (let row = 0; row < rows; row++) {
      const start = (index * down + Math.floor((row * down) / rows)) * across;
      const line = start + across;
      const cells = values.subarray(row * columns, (row + 1) * columns);
      paintRow(cells, places, shade, row, colours, strongest.subarray(start, line), to.subarray(start, line));
    }
  });
  small.getContext("2d")?.putImageData(image, 0, 0);
  return small;
}

/** A function of its own: one that is called for each row is soon compiled, a loop of 512 rows is late. */
function paintRow(
  cells: Float32Array,
  places: Int32Array,
  shade: Shading,
  row: number,
  colours: Uint32Array,
  strongest: Float32Array,
  to: Uint32Array,
): void {
  const none = shade(0, row);
  for (let column = 0; column < places.length; column++) {
    const share = Math.min(Math.max(shade(cells[column] as number, row), 0), 1);
    const [far, place] = [Math.abs(share - none), places[column] as number];
    // Not so of what no query may look at, which is NaN: the hatching shows.
    if (far > (strongest[place] as number)) {
      strongest[place] = far;
      to[place] = colours[Math.round(share * (colours.length - 1))] as number;
    }
  }
}

/** So many pixels of a picture that is drawn in so many CSS pixels. */
export function within(count: number, room = Infinity): number {
  return Math.min(count, Math.max(1, Math.round(room * Math.max(1, devicePixelRatio))));
}

/** What lies where no query may look. */
export function hatched(pen: Pen, line: string): CanvasPattern | string | null {
  if (pen instanceof SvgPen) return pen.hatch(line);
  const small = document.createElement("canvas");
  [small.width, small.height] = [8, 8];
  const own = small.getContext("2d");
  if (!own) return null;
  own.strokeStyle = line;
  for (const shift of [-8, 0, 8]) {
    own.moveTo(shift, 8);
    own.lineTo(shift + 8, 0);
  }
  own.stroke();
  return own.createPattern(small, "repeat");
}

/** A text, cut where it is wider. */
export function shortened(pen: Pen, text: string, most: number): string {
  if (pen.measureText(text).width <= most) return text;
  const letters = Array.from(text.slice(0, 200));
  while (letters.length > 1 && pen.measureText(`${letters.join("")}…`).width > most) letters.pop();
  return `${letters.join("")}…`;
}


/** The colours of the weights from the palest to the darkest, and the numbers under them. */
export function drawLegend(
  pen: Pen,
  ramp: Ramp,
  ticks: readonly Tick[],
  { x, y, width }: { x: number; y: number; width: number },
  ink: string,
  font: string,
): void {
  const steps = 64;
  for (let step = 0; step < steps; step++) {
    pen.fillStyle = css(colour(ramp, step / (steps - 1)));
    pen.fillRect(x + (step * width) / steps, y, width / steps + 0.5, 10);
  }
  pen.fillStyle = ink;
  pen.font = `11px ${font}`;
  pen.textBaseline = "middle";
  ticks.forEach(({ share, text }, index) => {
    const end = ticks.length === 2 && index === 1;
    pen.textAlign = share === 0 ? "left" : end || share === 1 ? "right" : "center";
    pen.fillText(text, x + share * width, y + 20);
  });
}

/** Make a canvas so large, in CSS pixels, and draw in those; what was drawn is gone. */
export function fitted(canvas: HTMLCanvasElement, width: number, height: number): { width: number; height: number } {
  const pixels = Math.max(1, window.devicePixelRatio);
  const [across, down] = [Math.max(Math.round(width * pixels), 1), Math.max(Math.round(height * pixels), 1)];
  const pen = canvas.getContext("2d");
  // Another size is another picture in memory; of the same size, the one that is there is wiped.
  if (canvas.width !== across || canvas.height !== down) {
    [canvas.width, canvas.height] = [across, down];
    canvas.style.setProperty("width", `${width}px`);
    canvas.style.setProperty("height", `${height}px`);
  } else {
    pen?.resetTransform();
    pen?.clearRect(0, 0, across, down);
  }
  pen?.setTransform(pixels, 0, 0, pixels, 0, 0);
  return { width, height };
}
