/** A colour as red, green and blue from 0 to 255. */
export type Colour = readonly [number, number, number];

/** From nothing (0) to the largest weight (1), in equal steps. */
export interface Ramp {
  readonly steps: readonly Colour[];
}

/** A point in OKLCH: lightness 0–1, chroma, hue in degrees. */
type Point = readonly [number, number, number];

/**
 * Lightness changes by the same amount at every step, so equal differences of weight look equally
 * large, also without colour vision and in print; the hue (sand → teal → indigo) only helps.
 * On a dark page the order is turned round: nothing is dark there, much is bright.
 */
export const onLight: Ramp = between([0.962, 0.012, 95], [0.62, 0.1, 195], [0.28, 0.12, 280]);
export const onDark: Ramp = between([0.27, 0.03, 270], [0.6, 0.1, 205], [0.93, 0.11, 110]);

/**
 * From −1 (0) by way of grey (½) to 1 (1): orange and blue, which nobody takes for each other. The
 * first of two heads is blue elsewhere, too.
 */
export const differenceOnLight: Ramp = meeting([0.5, 0.15, 50], [0.962, 0.003, 95], [0.42, 0.13, 255]);
export const differenceOnDark: Ramp = meeting([0.82, 0.13, 65], [0.27, 0.003, 270], [0.82, 0.1, 240]);

export function colour(ramp: Ramp, share: number): Colour {
  const step = Math.round(Math.min(Math.max(share, 0), 1) * (ramp.steps.length - 1));
  return ramp.steps[step] ?? [0, 0, 0];
}

const kept = new WeakMap<Ramp, Uint32Array>();

/** The colours as pixels of a picture: red, green, blue and no transparency, in one number each. */
export function pixels(ramp: Ramp): Uint32Array {
  const found = kept.get(ramp) ?? new Uint32Array(Uint8Array.from(ramp.steps.flatMap((step) => [...step, 255])).buffer);
  kept.set(ramp, found);
  return found;
}

export function css([red, green, blue]: Colour): string {
  return `rgb(${red}, ${green}, ${blue})`;
}

/** Black or white, whichever is easier to read on this colour: always a contrast of 4.5 or more. */
export function ink(colour: Colour): string {
  const light = luminance(colour);
  return (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) ? "#000" : "#fff";
}

/** Relative luminance, WCAG 2. */
export function luminance(colour: Colour): number {
  const [red, green, blue] = colour.map((part) => linear(part / 255)) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Through three points: lightness in a straight line, chroma and hue by way of the middle. */
function between(start: Point, middle: Point, end: Point): Ramp {
  const turn = (start[0] - middle[0]) / (start[0] - end[0]); // where the middle's lightness falls
  const steps = Array.from({ length: 256 }, (_, index) => {
    const share = index / 255;
    const [from, to, part] =
      share < turn ? [start, middle, share / turn] : [middle, end, (share - turn) / (1 - turn)];
    const light = start[0] + (end[0] - start[0]) * share;
    return rgb([light, from[1] + (to[1] - from[1]) * part, from[2] + (to[2] - from[2]) * part]);
  });
  return { steps };
}

/** From one colour to another by way of a neutral one; lightness falls or rises evenly on both sides. */
function meeting(start: Point, middle: Point, end: Point): Ramp {
  const steps = Array.from({ length: 255 }, (_, index) => {
    const share = index / 254;
    const outer = share < 0.5 ? start : end;
    const far = Math.abs(2 * share - 1);
    const light = middle[0] + (outer[0] - middle[0]) * far;
    return rgb([light, middle[1] + (outer[1] - middle[1]) * far, outer[2]]);
  });
  return { steps };
}

/** OKLCH to sRGB. Ottosson, A perceptual color space for image processing, 2020. */
function rgb([light, chroma, hue]: Point): Colour {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (light - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    encoded(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    encoded(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    encoded(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

function encoded(part: number): number {
  const curved = part <= 0.0031308 ? 12.92 * part : 1.055 * part ** (1 / 2.4) - 0.055;
  return Math.round(Math.min(Math.max(curved, 0), 1) * 255);
}

function linear(part: number): number {
  return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
}
