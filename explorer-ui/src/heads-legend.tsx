import { Fragment, h } from "preact";
import { useExplorer } from "./panel.ts";
import { headName } from "./wording.ts";

/** The heads that are looked at together, by their colours. */
export function HeadsLegend() {
  const explorer = useExplorer();
  const { now, theme } = explorer;
  theme.changes.value;
  const layers = now.answer.value?.layers ?? [];
  const heads = explorer.heads.value;
  return (
    <>
      <ul class="heads-legend" aria-label="Heads">
        {heads.map((head, index) => {
          const layer = layers[head.layer];
          if (!layer) return null;
          const apart = !explorer.alike(head);
          return (
            <li key={`${head.layer}.${head.head}`} class={apart ? "apart" : undefined}>
              <span
                class="swatch"
                ref={(one) => one?.style.setProperty("--paint", theme.heads[index] ?? "")}
                aria-hidden="true"
              />
              {headName(layer, head.head)}
              {apart && " (another shape)"}
              {index > 0 && (
                <button type="button" class="quiet" aria-label="Let it go" onClick={() => explorer.toggle(head)}>
                  ×
                </button>
              )}
            </li>
          );
        })}
        {heads.length === 0 && <li>mean of all heads</li>}
      </ul>
      {heads.length < 2 && (layers[1] || layers[0]?.heads !== 1) && (
        <p class="note">
          Select more heads on the left: <kbd>Shift</kbd> and a click, or <kbd>Space</kbd>.
        </p>
      )}
    </>
  );
}
