import type { Layer } from "./door.ts";

/** One head of one layer, both from 0. */
export interface Head {
  readonly layer: number;
  readonly head: number;
}

/** Where the picture of a head lies, in CSS pixels. */
export interface Thumbnail extends Head {
  readonly x: number;
  readonly y: number;
}

/** A line of writing: the heading of a sheet, which begins at `x`, or the name of a layer or a head, which ends there. */
export interface Writing {
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly heading: boolean;
}

export interface Grid {
  readonly size: number;
  readonly width: number;
  readonly height: number;
  readonly thumbnails: readonly Thumbnail[];
  readonly writing: readonly Writing[];
}

const GAP = 3;
const SMALLEST = 12;
const LARGEST = 44; // of sorted pictures, and of others where there is no more room
const HEADING = 22;
const NUMBERS = 15; // px of the line with the numbers of heads
const NAMED = 20; // px of the name under a head
const GUTTER = 30;

/** The layers under their headings, in the order of each heading's first layer. */
export function sheets(layers: readonly Layer[]): [string, number[]][] {
  const found = new Map<string, number[]>();
  layers.forEach(({ sheet }, index) => {
    found.set(sheet, [...(found.get(sheet) ?? []), index]);
  });
  return [...found];
}

/** What stands before a layer whose heading says the rest: "3" of "encoder 3 · self". */
export function short({ title, sheet }: Layer): string {
  const number = /^(?:encoder|decoder|layer) (\d+)(?: · \w+)?$/.exec(title)?.[1];
  if (number !== undefined) return number;
  return title === sheet ? "" : title;
}

/** The initials of a sheet, where there are several: "es" of "encoder · self". */
function initials(sheet: string): string {
  return sheet.replace(/(\p{L})\p{L}*|\P{L}/gu, "$1");
}

/**
 * Layers × heads: a line for each layer under the heading of its sheet, as many pictures in it as it
 * has heads. `writes` measures a text. `order`: these heads in this order instead, line by line, each
 * over its name: "es 3.5" is head 5 of layer 3 of the sheet "encoder · self". Few pictures grow to the
 * height that there is.
 */
export function grid(
  layers: readonly Layer[],
  room: number,
  writes: (text: string) => number,
  order: readonly Head[] | null = null,
  height = 0,
): Grid {
  const most = layers.reduce((most, layer) => Math.max(most, layer.heads), 1);
  const names = !order ? layers.map((layer) => Math.min(writes(short(layer)), room / 3)) : [];
  const left = names.some((width) => width > 0) ? Math.max(GUTTER, Math.max(...names) + 8) : 0;
  const fitting = Math.floor((room - left) / most) - GAP;
  const all = sheets(layers);
  const several = all.length > 1;
  const named = (order ?? []).map(({ layer: index, head }) => {
    const layer = layers[index] as Layer;
    const own = short(layer);
    return `${several ? `${initials(layer.sheet)} ` : ""}${own && `${own}.`}${head}`;
  });
  const widest = named.reduce((most, name) => Math.max(most, writes(name)), SMALLEST);
  const tall = (height - all.length * (HEADING + NUMBERS + 4)) / layers.length - GAP;
  const size = Math.min(Math.max(fitting, widest), order ? LARGEST : Math.max(Math.floor(tall), LARGEST));
  const step = Math.max(size, order ? widest + GAP : 0) + GAP;
  const thumbnails: Thumbnail[] = [];
  const writing: Writing[] = [];
  let y = 0;
  if (order) {
    for (const [sheet] of several ? all : []) {
      writing.push({ text: `${initials(sheet)}: ${sheet}`, x: 0, y: y + 6, heading: true });
      y += NUMBERS;
    }
    const columns = Math.max(1, Math.floor((room + GAP) / step));
    order.forEach((head, index) => {
      const [row, x] = [Math.floor(index / columns), (index % columns) * step];
      const [text, top] = [named[index] as string, y + row * (size + NAMED)];
      thumbnails.push({ ...head, x, y: top });
      writing.push({ text, x: x + writes(text), y: top + size + 9, heading: false });
    });
    y += Math.ceil(order.length / columns) * (size + NAMED);
  } else {
    for (const [sheet, own] of all) {
      if (sheet !== "") {
        writing.push({ text: sheet, x: 0, y: y + HEADING / 2, heading: true });
        y += HEADING;
      }
      // Which head is which: every one, or as many as fit.
      const heads = own.reduce((most, layer) => Math.max(most, (layers[layer] as Layer).heads), 0);
      const each = Math.ceil((writes(`${heads}`) + 4) / step);
      for (let head = 0; heads > 1 && head < heads; head += each) {
        const text = String(head);
        writing.push({ text, x: left + head * step + (size + writes(text)) / 2, y: y + 6, heading: false });
      }
      if (heads > 1) y += NUMBERS;
      for (const layer of own) {
        const described = layers[layer] as Layer;
        writing.push({ text: short(described), x: left - 8, y: y + size / 2, heading: false });
        for (let head = 0; head < described.heads; head++) {
          thumbnails.push({ layer, head, x: left + head * step, y });
        }
        y += step;
      }
      y += 4;
    }
  }
  const right = thumbnails.reduce((most, { x }) => Math.max(most, x + step - GAP), 0);
  return { size, width: right + 2, height: Math.max(y, 1), thumbnails, writing };
}

/** The head under a point. */
export function headAt({ thumbnails, size }: Grid, x: number, y: number): Head | null {
  const inside = (start: number, point: number) => point >= start - GAP / 2 && point < start + size + GAP / 2;
  return thumbnails.find((one) => inside(one.x, x) && inside(one.y, y)) ?? null;
}

export function sameHead(one: Head | null, other: Head | null): boolean {
  return one?.layer === other?.layer && one?.head === other?.head;
}

/** The nearest head in the direction of an arrow key; Home and End: the first and the last. */
export function moved({ thumbnails }: Grid, from: Head | null, key: string): Head | null {
  const here = thumbnails.find((one) => sameHead(one, from));
  if (!here || key === "Home") return thumbnails[0] ?? null;
  if (key === "End") return thumbnails.at(-1) ?? null;
  const index = thumbnails.indexOf(here);
  if (key === "ArrowRight") return thumbnails[index + 1] ?? here;
  if (key === "ArrowLeft") return thumbnails[index - 1] ?? here;
  const below = key === "ArrowDown";
  const rows = thumbnails.filter(({ y }) => (below ? y > here.y : y < here.y)).map(({ y }) => y);
  if (rows.length === 0) return here;
  const next = below ? Math.min(...rows) : Math.max(...rows);
  const row = thumbnails.filter(({ y }) => y === next);
  return row.reduce((best, one) =>
    Math.abs(one.x - here.x) < Math.abs(best.x - here.x) ? one : best,
  );
}

/** All heads by a number that each has, largest first; equals as they come. */
export function sorted(
  layers: readonly Layer[],
  numbers: (head: Head) => number | null,
): Head[] {
  const all = layers.flatMap(({ heads }, layer) =>
    Array.from({ length: heads }, (_, head): Head => ({ layer, head })),
  );
  const value = (head: Head) => numbers(head) ?? -Infinity;
  return all
    .map((head, index) => ({ head, index, value: value(head) }))
    .sort((a, b) => (a.value === b.value ? a.index - b.index : b.value - a.value))
    .map(({ head }) => head);
}
