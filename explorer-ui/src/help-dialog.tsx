import type { Signal } from "@preact/signals-core";
import { h } from "preact";
import { useEffect, useRef } from "preact/hooks";

const KEYS: readonly (readonly [string, string, string])[] = [
  ["Heads", "arrows, Enter", "go from head to head, show one"],
  ["Heads", "Space, Shift + click", "select a head beside the one that is shown"],
  ["Map", "arrows, Enter", "move the crosshair, keep a cell"],
  ["Map", "+ − 0", "closer, farther, all of it"],
  ["Map", "drag, wheel, pinch", "move, zoom; with Shift, draw a frame"],
  ["Words", "arrows, Enter", "go from word to word, keep one"],
  ["Words", "Shift + Enter, Shift + click", "keep another word beside it"],
  ["Lines", "arrows, Enter", "along the words, or to the other side"],
  ["Image", "arrows, Enter", "from patch to patch, keep one"],
  ["Mechanism", "Tab, Enter", "from key to key, keep one"],
  ["Beams", "Tab, Enter", "from token to token, go on with one"],
  ["Beams", "arrows on the slider", "the map grows word by word"],
  ["Panes", "arrows on a separator", "make a pane larger or smaller"],
  ["All", "Esc", "let go of what is kept"],
  ["All", "?", "this help"],
];

/** What can be done, and with which keys. */
export function HelpDialog({ open }: { open: Signal<boolean> }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open.value]);
  return (
    <dialog
      id="help-dialog"
      ref={dialog}
      aria-labelledby="help-title"
      onClose={() => (open.value = false)}
      onClick={(event) => {
        if (event.target === dialog.current) open.value = false;
      }}
    >
      <div class="help">
        <h2 id="help-title">How to read this</h2>
        <p>
          Each row of the map is a token that looks, each column one that is looked at. The darker a cell, the more of the
          row’s attention went there. A row adds up to 100 %. Hatched: no query may look there.
        </p>
        <p>
          On the left are all heads. Point at a word on the right: the words that it looks at light up, and the bars below
          say how much.
        </p>
        <table>
          <tbody>
            {KEYS.map(([where, keys, does]) => (
              <tr key={where + keys}>
                <th scope="row">{where}</th>
                <td>
                  <kbd>{keys}</kbd>
                </td>
                <td>{does}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <p class="note">The address is a link to this view, without the sizes of panes and places scrolled to. Back undoes.</p>
        <button type="button" class="main" onClick={() => (open.value = false)}>
          Close
        </button>
      </div>
    </dialog>
  );
}
