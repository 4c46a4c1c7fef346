import type { Layer, Statistics } from "./door.ts";
import { type Grid, type Head, grid, headAt, moved, sameHead, sorted } from "./grid-layout.ts";
import { head as weightsOf } from "./matrix.ts";
import { fitted, painted } from "./painting.ts";
import type { Ramp } from "./ramp.ts";
import { type Scale, shading } from "./scale.ts";
import type { Theme } from "./theme.ts";
import type { Tile } from "./tile.ts";
import { headName, statisticName, statisticValue } from "./wording.ts";

/** What the grid shows at one moment. */
export interface Heads {
  readonly layers: readonly Layer[];
  readonly overview: readonly Tile[];
  readonly statistics: Statistics;
  readonly shown: Head | null;
  /** All heads that are looked at together, in the order of their colours. */
  readonly together: readonly Head[];
  readonly colours: readonly string[];
  /** The layers whose keys run to the left. */
  readonly rightToLeft: ReadonlySet<number>;
  readonly ramp: Ramp;
  readonly scale: Scale;
  readonly statistic: string | null;
  readonly sorted: boolean;
  /** See `Look`. */
  readonly least: number;
}

const BAR = 3; // px of the line under a picture

/** What a reader can do with the heads. */
export interface Handlers {
  choose(head: Head): void;
  toggle(head: Head): void;
  /** A head that may be chosen next; null when the reader points at none. */
  point(head: Head | null): void;
}

/** Every head of every layer as a small picture: one stop for Tab, arrow keys inside. */
export class HeadGrid {
  private heads: Heads | null = null;
  private plan: Grid | null = null;
  private pictures: readonly HTMLCanvasElement[] = []; // by layer, its heads below each other
  private measured = ""; // px of the room, when it was drawn
  private pointed: Head | null = null;
  private readonly marks: HTMLCanvasElement;

  constructor(
    private readonly theme: Theme,
    private readonly canvas: HTMLCanvasElement,
    private readonly room: HTMLElement,
    private readonly readout: HTMLElement,
    private readonly handlers: Handlers,
  ) {
    this.marks = document.createElement("canvas");
    this.marks.className = "marks";
    this.marks.ariaHidden = "true";
    canvas.after(this.marks);
    const under = (event: MouseEvent) => {
      const box = canvas.getBoundingClientRect();
      return this.plan && headAt(this.plan, event.clientX - box.left, event.clientY - box.top);
    };
    canvas.addEventListener("pointermove", (event) => this.point(under(event)));
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("click", (event) => {
      const head = under(event);
      if (!head) return;
      if (event.shiftKey || event.ctrlKey || event.metaKey) handlers.toggle(head);
      else handlers.choose(head);
    });
    canvas.addEventListener("keydown", (event) => this.pressed(event));
    canvas.addEventListener("blur", () => this.point(null));
    new ResizeObserver(() => {
      if (sizeOf(room) !== this.measured) this.redraw();
    }).observe(room);
  }

  /** Show these heads; pictures are painted again only where the heads or their colours change. */
  draw(heads: Heads): void {
    const before = this.heads;
    this.heads = heads;
    const same = heads.overview === before?.overview && heads.ramp === before.ramp && heads.scale === before.scale;
    if (!same) this.pictures = heads.overview.map((tile, layer) => pictured(heads, tile, layer));
    const marked = heads.statistic === before?.statistic && heads.sorted === before.sorted && heads.least === before.least;
    if (same && this.plan && heads.layers === before?.layers && marked) this.mark();
    else this.redraw();
  }

  private point(head: Head | null): void {
    if (sameHead(head, this.pointed)) return;
    this.pointed = head;
    this.handlers.point(head);
    this.mark();
  }

  private pressed(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey || !this.plan) return;
    const here = this.pointed ?? this.heads?.shown ?? null;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (!here) return;
      if (event.key === " " && !sameHead(here, this.heads?.shown ?? null)) this.handlers.toggle(here);
      else this.handlers.choose(here);
    } else if (/^(Arrow(Left|Right|Up|Down)|Home|End)$/.test(event.key)) {
      event.preventDefault();
      this.point(moved(this.plan, here, event.key));
    }
  }

  private redraw(): void {
    const { heads } = this;
    const room = this.room.clientWidth;
    const pen = this.canvas.getContext("2d");
    if (!heads || !pen || room === 0) return;
    this.measured = sizeOf(this.room);
    const family = this.theme.font;
    pen.font = `12px ${family}`;
    const writes = (text: string) => pen.measureText(text).width;
    const number = (head: Head) => valueOf(heads, head);
    const ranked = sorted(heads.layers, number);
    const most = Math.max(...ranked.map((one) => number(one) ?? 0), 1e-9);
    const least = (heads.least / 100) * most;
    const shown = (one: Head) => least === 0 || (number(one) ?? 0) >= least;
    const all = grid(heads.layers, room, writes, heads.sorted && heads.statistic !== null ? ranked.filter(shown) : null, this.room.clientHeight);
    const plan = { ...all, thumbnails: all.thumbnails.filter(shown) };
    this.plan = plan;
    for (const canvas of [this.canvas, this.marks]) fitted(canvas, plan.width, plan.height);
    pen.textBaseline = "middle";
    for (const { text, x, y, heading } of plan.writing) {
      pen.font = `${heading ? "600 " : ""}12px ${family}`;
      pen.fillStyle = this.theme.tone("quiet");
      pen.textAlign = heading ? "left" : "right";
      pen.fillText(text, x, y, heading ? plan.width : Math.max(x, 1));
    }
    this.drawPictures(pen, plan, heads, most);
    this.mark();
  }

  private drawPictures(pen: CanvasRenderingContext2D, plan: Grid, heads: Heads, most: number): void {
    pen.imageSmoothingQuality = "high";
    for (const one of plan.thumbnails) {
      const value = heads.statistic === null ? null : valueOf(heads, one);
      const height = heads.statistic === null ? plan.size : plan.size - BAR - 1;
      pen.fillStyle = this.theme.tone("line");
      pen.fillRect(one.x, one.y, plan.size, height);
      const [picture, tile] = [this.pictures[one.layer], heads.overview[one.layer]];
      if (picture && tile && picture.width > 0) {
        const { rows, keys } = tile;
        pen.drawImage(picture, 0, one.head * rows, keys, rows, one.x, one.y, plan.size, height);
      }
      if (value === null) continue;
      pen.fillStyle = this.theme.tone("action");
      pen.fillRect(one.x, one.y + plan.size - BAR, Math.max(value / most, 0) * plan.size, BAR);
    }
  }

  /** Frames around the head that is shown and the one that is pointed at, and its name. */
  private mark(): void {
    const { heads, plan } = this;
    const pen = this.marks.getContext("2d");
    if (!heads || !plan || !pen) return;
    pen.clearRect(0, 0, plan.width, plan.height);
    const frame = (head: Head | null, width: number, paint: string) => {
      const one = plan.thumbnails.find((other) => sameHead(other, head));
      if (!one) return;
      pen.strokeStyle = paint;
      pen.lineWidth = width;
      pen.strokeRect(one.x, one.y, plan.size, plan.size);
    };
    heads.together.forEach((head, index) => frame(head, 3, heads.colours[index] ?? ""));
    if (heads.together.length < 2) frame(heads.shown, 3, this.theme.tone("accent"));
    else frame(heads.shown, 4, heads.colours[0] ?? "");
    frame(this.pointed, 2, this.theme.tone("ink"));
    const named = this.pointed ?? heads.shown;
    const layer = !named ? undefined : heads.layers[named.layer];
    if (!named || !layer) {
      this.readout.textContent = "mean of all heads";
      return;
    }
    const value = valueOf(heads, named);
    const told =
      heads.statistic === null || value === null
        ? ""
        : `: ${statisticName(heads.statistic)} ${statisticValue(heads.statistic, value)}`;
    const { first } = heads.statistics;
    const why = sameHead(named, first) && first.why ? `. ${first.why}` : "";
    this.readout.textContent = headName(layer, named.head) + told + why;
    this.canvas.title = layer.name;
  }
}

function sizeOf({ clientWidth, clientHeight }: HTMLElement): string {
  return `${clientWidth} ${clientHeight}`;
}

/** The heads of a layer as one picture, below each other. */
function pictured({ layers, scale, ramp, rightToLeft }: Heads, tile: Tile, layer: number): HTMLCanvasElement {
  const pieces = Array.from({ length: tile.heads }, (_, head) => {
    const matrix = weightsOf(tile, head);
    return { matrix, shade: shading(scale, matrix, layers[layer]?.keys ?? tile.keys) };
  });
  return painted(pieces, ramp, rightToLeft.has(layer));
}

function valueOf({ statistics, statistic }: Heads, { layer, head }: Head): number | null {
  return statistic === null ? null : (statistics.layers[layer]?.[statistic]?.[head] ?? null);
}
