import { h, type RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Between {
  readonly id: string;
  readonly label: string;
  /** "vertical": a line between left and right; "horizontal": between above and below. */
  readonly orientation: "vertical" | "horizontal";
  /** The pane whose size changes, in pixels, by the property of this name of the frame. */
  readonly property: string;
  /** The class of that pane. */
  readonly pane: string;
  readonly least: number;
  readonly most: number;
  /** 1: the pane is before the line; −1: after it. */
  readonly sign: 1 | -1;
  readonly frame: RefObject<HTMLElement | null>;
}

const STEP = 24;

/** A line between two panes, which is moved by dragging it or with arrow keys. */
export function Separator({ id, label, orientation, property, pane, least, most, sign, frame }: Between) {
  const start = useRef<{ at: number; size: number } | null>(null);
  const own = useRef<HTMLDivElement>(null);
  const place = (event: PointerEvent) => (orientation === "vertical" ? event.clientX : event.clientY);
  const size = (): number => {
    const box = frame.current?.querySelector(`.pane.${pane}`)?.getBoundingClientRect();
    return Math.round((orientation === "vertical" ? box?.width : box?.height) ?? least);
  };
  const set = (to: number) => {
    const next = Math.round(Math.min(Math.max(to, least), most));
    frame.current?.style.setProperty(property, `${next}px`);
    own.current?.setAttribute("aria-valuenow", String(next));
  };
  useEffect(() => own.current?.setAttribute("aria-valuenow", String(size())), []);
  return (
    <div
      id={id}
      ref={own}
      class={`separator ${orientation}`}
      role="separator"
      tabIndex={0}
      aria-orientation={orientation}
      aria-label={label}
      aria-valuenow={least}
      aria-valuemin={least}
      aria-valuemax={most}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        start.current = { at: place(event), size: size() };
      }}
      onPointerMove={(event) => {
        if (start.current) set(start.current.size + sign * (place(event) - start.current.at));
      }}
      onPointerUp={() => (start.current = null)}
      onPointerCancel={() => (start.current = null)}
      onKeyDown={(event) => {
        const keys = orientation === "vertical" ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
        const way = keys.indexOf(event.key);
        if (way >= 0) set(size() + sign * (way === 0 ? -STEP : STEP));
        else if (event.key === "Home") set(least);
        else if (event.key === "End") set(most);
        else return;
        event.preventDefault();
      }}
    />
  );
}
