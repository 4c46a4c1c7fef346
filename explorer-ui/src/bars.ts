import type { Label } from "./label.ts";
import { descending } from "./matrix.ts";
import { type Ramp, colour, css } from "./ramp.ts";
import { exact } from "./share.ts";
import type { Order } from "./state.ts";

const LINE = 26; // px of a line
const COLUMN = 260; // px of a column, where several fit beside each other
const GAP = 24; // px between columns
const MORE = 8; // lines that are there beyond those in view

/** How the lines of a list look at one moment. */
interface Shade {
  readonly ramp: Ramp;
  readonly dark: (weight: number, index: number) => number;
  readonly partner: number | null;
}

/**
 * One line per token: its text, a bar from 0 to 100 %, and the number. Where there is room, lines
 * go on in the next column. Only those in view are there.
 */
export class Bars {
  private labels: readonly Label[] = [];
  private weights: readonly number[] = [];
  private indices: readonly number[] = [];
  private top = -1;
  private shade: Shade | null = null;
  private readonly before = document.createElement("li");
  private readonly after = document.createElement("li");

  private readonly lines: HTMLLIElement[] = [];
  private shown: readonly Element[] = [];
  // How large the list is and how far it is scrolled: to ask the browser costs a layout each time.
  private size = { width: 0, height: 0 };
  private offset = 0;
  private scrolling = false;

  constructor(private readonly list: HTMLElement) {
    for (const room of [this.before, this.after]) {
      room.className = "room";
      room.ariaHidden = "true";
    }
    list.addEventListener("scroll", () => {
      const offset = this.each === null ? list.scrollTop : list.scrollLeft;
      if (this.scrolling || Math.abs(offset - this.offset) < 1) return; // its own scroll, and the lines are there
      this.offset = offset;
      this.render();
    });
    new ResizeObserver(() => {
      this.size = { width: list.clientWidth, height: list.clientHeight };
      this.offset = this.each === null ? list.scrollTop : list.scrollLeft;
      this.bring();
    }).observe(list);
    this.size = { width: list.clientWidth, height: list.clientHeight };
  }

  draw(labels: readonly Label[], weights: readonly number[], order: Order, shade: Shade): void {
    const sorted = descending(weights);
    [this.labels, this.weights, this.shade] = [labels, weights, shade];
    this.indices = order === "weight" ? sorted : weights.map((_, index) => index);
    this.top = sorted[0] ?? -1;
    this.bring();
  }

  /** In a long list the largest is brought into view, without moving the page. */
  private bring(): void {
    const { step, size, room } = this.measures;
    const place = Math.floor(this.indices.indexOf(this.shade?.partner ?? this.top) / size) * step;
    const hidden = place < this.offset || place + step > this.offset + room;
    const most = Math.max(Math.ceil(this.indices.length / size) * step - room, 0);
    if (hidden) this.offset = Math.min(Math.max(place + step / 2 - room / 2, 0), most);
    this.render();
    if (hidden && !this.scrolling) {
      this.scrolling = true;
      requestAnimationFrame(() => this.scroll());
    }
  }

  /** With the next picture: to scroll is to lay out at once, and the browser does that there. */
  private scroll(): void {
    this.scrolling = false;
    if (this.each === null) this.list.scrollTop = this.offset;
    else this.list.scrollLeft = this.offset;
  }

  /** How many lines a column has; null where there is one column for all. */
  private get each(): number | null {
    const { width, height } = this.size;
    return width >= 2 * COLUMN ? Math.max(Math.floor(height / LINE), 1) : null;
  }

  /** A step of the list in pixels, how many lines it has, and how many pixels are in view. */
  private get measures(): { step: number; size: number; room: number } {
    const { each } = this;
    return each === null
      ? { step: LINE, size: 1, room: Math.max(this.size.height, 8 * LINE) }
      : { step: COLUMN, size: each, room: this.size.width };
  }

  /** The lines in view, with room before and after for the others. */
  private render(): void {
    const { list, indices, each } = this;
    const { step, size, room } = this.measures;
    const [steps, more] = [Math.ceil(indices.length / size), each === null ? MORE : 1];
    const from = Math.min(Math.max(Math.floor(this.offset / step) - more, 0), Math.max(steps - 1, 0));
    const to = Math.min(from + Math.ceil(room / step) + 2 * more, steps);
    list.classList.toggle("columns", each !== null);
    list.style.setProperty("--lines", String(size));
    // The room before takes a column of its own, as wide as all that it stands for.
    list.style.setProperty("grid-template-columns", from > 0 ? `${from * step - GAP}px` : "none");
    this.before.style.setProperty("--room", `${from * step}px`);
    this.after.style.setProperty("--room", `${(steps - to) * step}px`);
    const lines = indices.slice(from * size, to * size).map((index, at) => this.line(index, from * size + at, at));
    const shown = [...(from > 0 ? [this.before] : []), ...lines, ...(to < steps ? [this.after] : [])];
    const same = shown.length === this.shown.length && shown.every((one, at) => one === this.shown[at]);
    if (!same) list.replaceChildren(...shown);
    this.shown = shown;
  }

  /** The line that stands `at` so many after the first in view, with what it says now. */
  private line(index: number, position: number, at: number): HTMLLIElement {
    const { shade, weights, labels } = this;
    const weight = weights[index] ?? 0;
    const line = (this.lines[at] ??= blankLine());
    line.dataset["index"] = String(index);
    line.setAttribute("aria-posinset", String(position + 1));
    line.setAttribute("aria-setsize", String(weights.length));
    line.classList.toggle("top", index === this.top && weight > 0);
    line.classList.toggle("partner", index === shade?.partner);
    line.classList.toggle("special", labels[index]?.special ?? false);
    const [word, track, number] = line.children as unknown as [HTMLElement, HTMLElement, HTMLElement];
    const bar = track.firstElementChild as HTMLElement;
    write(word, labels[index]?.text ?? "");
    write(number, exact(weight));
    word.title = labels[index]?.whole?.slice(0, 20_000) ?? "";
    bar.style.setProperty("width", `${(weight * 100).toFixed(2)}%`);
    if (shade) bar.style.setProperty("background-color", css(colour(shade.ramp, shade.dark(weight, index))));
    return line;
  }
}

function write(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

function blankLine(): HTMLLIElement {
  const line = document.createElement("li");
  line.className = "line";
  const part = (name: "bdi" | "span", kind: string) => {
    const made = document.createElement(name);
    made.className = kind;
    return made;
  };
  const track = part("span", "track");
  track.append(part("span", "bar"));
  line.append(part("bdi", "word"), track, part("span", "number"));
  return line;
}
