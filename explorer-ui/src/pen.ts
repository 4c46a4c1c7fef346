/** What drawings are drawn with: a canvas, or an SVG. */
export type Pen = Pick<
  CanvasRenderingContext2D,
  | "fillStyle"
  | "strokeStyle"
  | "font"
  | "textAlign"
  | "textBaseline"
  | "lineWidth"
  | "imageSmoothingEnabled"
  | "save"
  | "restore"
  | "translate"
  | "rotate"
  | "scale"
  | "beginPath"
  | "rect"
  | "clip"
  | "clearRect"
  | "fillRect"
  | "strokeRect"
  | "fillText"
  | "measureText"
  | "drawImage"
  | "setLineDash"
>;

const MOST_CELLS = 20_000; // that are drawn one by one; more are an image inside the SVG

/** Writes down as SVG what is drawn with it. */
export class SvgPen implements Pen {
  fillStyle: string | CanvasGradient | CanvasPattern = "#000";
  strokeStyle: string | CanvasGradient | CanvasPattern = "#000";
  font = "13px sans-serif";
  textAlign: CanvasTextAlign = "left";
  textBaseline: CanvasTextBaseline = "middle";
  lineWidth = 1;
  imageSmoothingEnabled = true;
  private readonly parts: string[] = [];
  private readonly definitions: string[] = [];
  private readonly opened: number[] = [0]; // groups since each `save`
  private path: readonly [number, number, number, number] = [0, 0, 0, 0];
  private dash: readonly number[] = [];
  private readonly ruler = document.createElement("canvas").getContext("2d");

  /** What is written so far, as a file. */
  file(width: number, height: number, title: string): string {
    const size = `width="${round(width)}" height="${round(height)}" viewBox="0 0 ${round(width)} ${round(height)}"`;
    const defs = this.definitions.length > 0 ? `<defs>${this.definitions.join("")}</defs>` : "";
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img"><title>${escaped(title)}</title>` +
      `${defs}${this.parts.join("\n")}</svg>\n`
    );
  }

  /** Lines from lower left to upper right, as a fill. */
  hatch(line: string): string {
    this.definitions.push(
      '<pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse">' +
        `<path d="M0 8 8 0M-2 2 2 -2M6 10 10 6" stroke="${escaped(line)}"/></pattern>`,
    );
    return "url(#hatch)";
  }

  save(): void {
    this.opened.push(0);
  }

  restore(): void {
    this.parts.push("</g>".repeat(this.opened.pop() ?? 0));
  }

  translate(x: number, y: number): void {
    this.group(`transform="translate(${round(x)} ${round(y)})"`);
  }

  rotate(angle: number): void {
    this.group(`transform="rotate(${round((angle * 180) / Math.PI)})"`);
  }

  scale(x: number, y: number): void {
    this.group(`transform="scale(${x} ${y})"`);
  }

  beginPath(): void {
    this.path = [0, 0, 0, 0];
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.path = [x, y, width, height];
  }

  clip(): void {
    const id = `clip${this.definitions.length}`;
    this.definitions.push(`<clipPath id="${id}"><rect ${box(...this.path)}/></clipPath>`);
    this.group(`clip-path="url(#${id})"`);
  }

  clearRect(): void {}

  fillRect(x: number, y: number, width: number, height: number): void {
    this.parts.push(`<rect ${box(x, y, width, height)} fill="${escaped(String(this.fillStyle))}"/>`);
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    this.parts.push(
      `<rect ${box(x, y, width, height)} fill="none" stroke="${escaped(String(this.strokeStyle))}" stroke-width="${this.lineWidth}"${dash}/>`,
    );
  }

  fillText(text: string, x: number, y: number): void {
    const [, weight = "", size = "13", family = "sans-serif"] =
      /^(\d+ )?([\d.]+)px (.*)$/su.exec(this.font) ?? [];
    const anchor = { center: "middle", right: "end", end: "end", left: "start", start: "start" };
    this.parts.push(
      `<text x="${round(x)}" y="${round(y)}" dy="0.35em" font-family="${escaped(family)}" font-size="${size}"` +
        `${weight === "" ? "" : ` font-weight="${weight.trim()}"`} text-anchor="${anchor[this.textAlign]}"` +
        ` fill="${escaped(String(this.fillStyle))}">${escaped(text)}</text>`,
    );
  }

  measureText(text: string): TextMetrics {
    const { ruler } = this;
    if (!ruler) throw new Error("a canvas has no context");
    ruler.font = this.font;
    return ruler.measureText(text);
  }

  drawImage(image: CanvasImageSource, ...[x, y, width, height]: number[]): void {
    if (!(image instanceof HTMLCanvasElement) || [x, y, width, height].includes(undefined)) return;
    const [left, top, across, down] = [x ?? 0, y ?? 0, width ?? 0, height ?? 0];
    const cells = image.width * image.height;
    const pixels = cells <= MOST_CELLS && pixelsOf(image);
    if (!pixels) {
      this.parts.push(
        `<image ${box(left, top, across, down)} preserveAspectRatio="none" image-rendering="pixelated" href="${image.toDataURL()}"/>`,
      );
      return;
    }
    const [stepX, stepY] = [across / image.width, down / image.height];
    for (let at = 0; at < cells; at++) {
      const [red, green, blue, alpha] = pixels.subarray(4 * at, 4 * at + 4);
      if (alpha === 0) continue;
      const [column, row] = [at % image.width, Math.floor(at / image.width)];
      this.parts.push(
        `<rect ${box(left + column * stepX, top + row * stepY, stepX, stepY)} fill="rgb(${red},${green},${blue})" shape-rendering="crispEdges"/>`,
      );
    }
  }

  setLineDash(dash: number[]): void {
    this.dash = dash;
  }

  private group(attributes: string): void {
    this.parts.push(`<g ${attributes}>`);
    this.opened.push((this.opened.pop() ?? 0) + 1);
  }
}

/** Read from a copy, which stays out of the memory of the graphics card. */
function pixelsOf(image: HTMLCanvasElement): Uint8ClampedArray | undefined {
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [image.width, image.height];
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen?.drawImage(image, 0, 0);
  return pen?.getImageData(0, 0, image.width, image.height).data;
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

function box(x: number, y: number, width: number, height: number): string {
  return `x="${round(x)}" y="${round(y)}" width="${round(Math.max(width, 0))}" height="${round(Math.max(height, 0))}"`;
}

/** A text as XML has it, without the signs that XML cannot hold. */
export function escaped(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd")
    .replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
