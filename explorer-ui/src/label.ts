/** How one token is shown: its text, and whether it begins a word. */
export interface Label {
  readonly text: string;
  readonly begins: boolean;
  /** A mark of the model's own, such as the end of the sentence: no part of the text. */
  readonly special: boolean;
  /** What more there is to know: the text of a long token, or the bytes of a part of a character. */
  readonly whole?: string;
}

const SPACE = "▁"; // how subword vocabularies write the space before a word
const BYTE = "Ġ"; // how GPT-2 and its kin write the byte of a space; in Maltese it is a letter
const PIECE = "##"; // how WordPiece writes that a token goes on with a word

const SPECIAL = new Map([
  ["<pad>", "⟨padding⟩"],
  ["<unk>", "⟨unknown⟩"],
  ["<s>", "⟨begin⟩"],
  ["</s>", "⟨end⟩"],
]);

const LONGEST = 40; // characters of a label; a longer one is cut
const CUT = 32;

/** Whether two labels say the same. */
export function alike(one: Label, other: Label | undefined): boolean {
  return (
    one === other ||
    (one.text === other?.text && one.begins === other.begins && one.special === other.special && one.whole === other.whole)
  );
}

/** A label that is a place or several. */
export function numbered(text: string): Label {
  return word(text);
}

/**
 * The tokens on one axis as labels.
 *
 * Where any token carries the mark "▁" (or, in a text of GPT-2's bytes, "Ġ"), the mark says where
 * words begin and is not shown; a token that is nothing but the mark stays visible. WordPiece's "##"
 * says the opposite. Where none carries a mark, every token is a word of its own. An axis without
 * (matching) tokens is numbered, from 0; `first` is the place of the first token.
 */
export function labels(tokens: readonly string[], count: number, first = 0): Label[] {
  if (tokens.length !== count) {
    return Array.from({ length: count }, (_, index) => numbered(String(first + index)));
  }
  const mark = markOf(tokens);
  const pieces = tokens.some((token) => token.startsWith(PIECE) && token !== PIECE);
  const spelled = spelling(tokens.map((token) => bytesOf(token, mark === BYTE)));
  return tokens.map((token, index) => {
    const named = SPECIAL.get(token);
    if (named !== undefined) return { text: named, begins: true, special: true };
    const bytes = spelled[index];
    const bare = mark !== undefined && token.startsWith(mark) ? token.slice(mark.length) : token;
    if (bytes) {
      const begins = index === 0 || (mark !== undefined && token.startsWith(mark)) || mark === undefined;
      return { ...shown(mark === BYTE ? bytes.text.replace(/^ (?=.)/su, "") : bytes.text, begins), ...bytes.note };
    }
    if (mark === undefined) return pieces ? piece(token, index) : word(token);
    const begins = index === 0 || token.startsWith(mark);
    return bare === "" ? { text: SPACE, begins, special: false } : shown(bare, begins);
  });
}

/** What stands before the tokens that begin a word, where these tokens have such a mark. */
function markOf(tokens: readonly string[]): string | undefined {
  const carried = (mark: string) => tokens.some((token) => token.startsWith(mark));
  if (carried(SPACE)) return SPACE;
  return carried(BYTE) && bytewise(tokens) ? BYTE : undefined;
}

// The signs of GPT-2's alphabet in the order of UTF-8: what goes on from tokens out of view, then
// ASCII (and a tab, a line feed, a return and a space) or a first byte with those that follow it.
const UTF8 = /^[¡-¬®-¿Ģ-Ń]*(?:[!-~ĉĊčĠ]|[Â-ô][¡-¬®-¿Ģ-Ń]+)*[Â-ô]?$/u;
const ADDED = /^<.*>$|^\s*$/su; // a mark of the model's own, or spaces that are written as they are

/**
 * Whether these tokens spell bytes that are text, as those of GPT-2 and its kin do.
 *
 * Words and subwords with letters beyond ASCII do not: as bytes, they would not be UTF-8.
 */
function bytewise(tokens: readonly string[]): boolean {
  return UTF8.test(tokens.filter((token) => !ADDED.test(token)).join(""));
}

/** The bytes that each sign of GPT-2's alphabet stands for. */
const ALPHABET = new Map<string, number>();
for (let byte = 0, other = 256; byte < 256; byte++) {
  const printed = (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173);
  ALPHABET.set(String.fromCharCode(printed ? byte : other++), byte);
}

/** The bytes that a token spells: "<0xE6>", or signs of GPT-2's alphabet; null where it is text. */
function bytesOf(token: string, alphabet: boolean): number[] | null {
  const single = /^<0x([0-9A-Fa-f]{2})>$/.exec(token)?.[1];
  if (single !== undefined) return [parseInt(single, 16)];
  if (!alphabet || ADDED.test(token)) return null;
  const bytes = Array.from(token, (sign) => ALPHABET.get(sign));
  return bytes.every((byte) => byte !== undefined) ? bytes : null;
}

interface Spelled {
  readonly text: string;
  readonly note: { whole?: string };
}

/**
 * The text of tokens that are bytes of UTF-8. A character stands in the token of its first byte; an
 * ellipsis joins the tokens that share it. Bytes that are no character are written as numbers.
 */
function spelling(tokens: readonly (readonly number[] | null)[]): (Spelled | null)[] {
  const texts = tokens.map(() => "");
  const shared = tokens.map(() => false);
  const owners: number[] = [];
  const bytes: number[] = [];
  const flush = () => {
    for (let at = 0; at < bytes.length; ) {
      const owner = owners[at] as number;
      const size = width(bytes[at] as number);
      const sign = decoded(bytes.slice(at, at + size));
      if (size === 0 || sign === null) {
        texts[owner] += `⟨${hex([bytes[at] as number])}⟩`;
        at += 1;
        continue;
      }
      const last = owners[at + size - 1] ?? owner;
      texts[owner] += last > owner ? `${sign}…` : sign;
      for (let other = owner; last > owner && other <= last; other++) {
        if (other > owner) texts[other] = "…";
        shared[other] = true;
      }
      at += size;
    }
    owners.length = bytes.length = 0;
  };
  tokens.forEach((own, index) => {
    if (!own) return flush();
    for (const byte of own) {
      bytes.push(byte);
      owners.push(index);
    }
  });
  flush();
  return tokens.map((own, index) =>
    !own
      ? null
      : { text: texts[index] as string, note: shared[index] ? { whole: `bytes ${hex(own)} of a character` } : {} },
  );
}

/** How many bytes a character has that begins so; 0 = none does. */
function width(first: number): number {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

function decoded(bytes: readonly number[]): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
  } catch {
    return null;
  }
}

function hex(bytes: readonly number[]): string {
  return bytes.map((byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");
}

function word(text: string): Label {
  return shown(text, true);
}

/** A token of WordPiece's. */
function piece(token: string, index: number): Label {
  const goesOn = token.startsWith(PIECE) && token !== PIECE;
  return shown(goesOn ? token.slice(PIECE.length) : token, index === 0 || !goesOn);
}

/** A text as a label: what cannot be seen is named, what is too long is cut. */
function shown(text: string, begins: boolean): Label {
  const seen = visible(text);
  // No more of a long text is looked at than is shown.
  const letters = Array.from(seen.slice(0, 4 * LONGEST));
  if (letters.length <= LONGEST) return { text: seen, begins, special: false };
  return { text: `${letters.slice(0, CUT).join("")}…`, begins, special: false, whole: seen };
}

// Hebrew, Arabic, Syriac, Thaana, N'Ko and their kin, in the order of Unicode's blocks.
const RIGHT_TO_LEFT =
  /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** The direction in which a sentence is read: that of its first letter, which is in no mark such as [CLS]. */
export function direction(labels: readonly Label[]): "ltr" | "rtl" {
  const letters = labels.filter(({ special, text }) => !special && !/^[[<].*[\]>]$/.test(text)).map(({ text }) => text);
  const first = /\p{L}/u.exec(letters.join(" "))?.[0] ?? "";
  return RIGHT_TO_LEFT.test(first) ? "rtl" : "ltr";
}

/** A text inside of another text, whichever way either of them runs (Unicode's isolates). */
export function isolated(text: string): string {
  return `\u2068${text}\u2069`;
}

const NAMES = new Map([
  ["\0", "NUL"],
  ["\t", "tab"],
  ["\n", "newline"],
  ["\v", "vertical tab"],
  ["\f", "form feed"],
  ["\r", "return"],
  ["\u001b", "escape"],
  ["\u007f", "delete"],
  ["\u00a0", "no-break space"],
  ["\u00ad", "soft hyphen"],
  ["\u061c", "Arabic letter mark"],
  ["\u200b", "zero-width space"],
  ["\u200c", "zero-width non-joiner"],
  ["\u200d", "zero-width joiner"],
  ["\u200e", "left-to-right mark"],
  ["\u200f", "right-to-left mark"],
  ["\u2028", "line separator"],
  ["\u2029", "paragraph separator"],
  ["\u202a", "left-to-right embedding"],
  ["\u202b", "right-to-left embedding"],
  ["\u202c", "end of direction"],
  ["\u202d", "left-to-right override"],
  ["\u202e", "right-to-left override"],
  ["\u2060", "word joiner"],
  ["\u2066", "left-to-right isolate"],
  ["\u2067", "right-to-left isolate"],
  ["\u2068", "isolate"],
  ["\u2069", "end of isolate"],
  ["\u3000", "wide space"],
  ["\ufeff", "byte order mark"],
]);

// The joiners, which words and emoji need, are named where they stand alone.
const UNSEEN = /[\p{Cc}\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]|^[\u200c\u200d]+$|^[\u00a0\u3000]$/gu;

/** Control characters by their names, and white space that would otherwise be an empty label. */
function visible(text: string): string {
  const named = text.replace(UNSEEN, (signs) =>
    Array.from(signs, (sign) => `⟨${NAMES.get(sign) ?? code(sign)}⟩`).join(""),
  );
  return named.trim() === "" ? "␣" : named;
}

function code(sign: string): string {
  return `U+${(sign.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0")}`;
}
