import { Fragment, h } from "preact";
import { useRef } from "preact/hooks";
import { fileName } from "./csv.ts";
import { csvOf, mapTitle, png, print, save, svg } from "./export.ts";
import { useExplorer } from "./panel.ts";
import type { Part } from "./door.ts";
import { Problem } from "./problem.ts";

const TYPES = { svg: "image/svg+xml", csv: "text/csv;charset=utf-8", png: "image/png", html: "text/html", parquet: "" };

/** What is on screen as a file, and as a link. */
export function ExportMenu() {
  const explorer = useExplorer();
  const menu = useRef<HTMLDetailsElement>(null);
  const close = () => {
    if (menu.current?.open !== true) return;
    menu.current.open = false;
    menu.current.querySelector("summary")?.focus();
  };
  const { door } = explorer;
  const written = (part?: Part) => {
    const { answer, sheet } = explorer.state;
    explorer.notice.value = "Writing the file…";
    const link = explorer.link.replace(/text=[^&]*/, ""); // an address has a greatest length
    return door.file?.(answer?.map ?? "", link, sheet?.layer, part);
  };
  const parquet = () => {
    const { sheet, view, head } = explorer.state;
    return sheet && written({ excerpt: view ?? sheet.excerpt, head: sheet.head ?? head });
  };
  const file = async (ending: "png" | "svg" | "csv" | "pdf" | "html" | "parquet") => {
    close();
    try {
      const found = await { svg, csv: csvOf, png, pdf: svg, html: () => written(), parquet }[ending](explorer);
      if (found == null) throw new Problem("a map on screen", "none", "show a head first");
      if (ending === "pdf") return await print(found as string);
      const title = ending === "html" ? (explorer.state.model?.facts.name ?? "") : mapTitle(explorer);
      const name = fileName(title, ending);
      save(new Blob([found], { type: TYPES[ending] }), name);
      explorer.notice.value = `Saved as ${name}`;
    } catch (thrown) {
      explorer.notice.value = "";
      explorer.set({ problem: Problem.of(thrown) });
    }
  };
  const copy = async () => {
    close();
    const address = new URL(explorer.link, location.href).href;
    try {
      await navigator.clipboard.writeText(address);
      explorer.notice.value = "The link is copied.";
    } catch {
      explorer.notice.value = `Copy this link: ${address}`;
    }
  };
  return (
    <details
      class="menu"
      ref={menu}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        close();
      }}
      onFocusOut={(event) => {
        const to = event.relatedTarget;
        if (to instanceof Node && menu.current?.contains(to) === false) menu.current.open = false;
      }}
    >
      <summary>Export</summary>
      <div class="menu-items">
        <button id="export-png" type="button" onClick={() => void file("png")}>
          PNG of the map
        </button>
        <button id="export-svg" type="button" onClick={() => void file("svg")}>
          SVG of the map
        </button>
        {explorer.address !== null && (
          <button id="export-pdf" type="button" onClick={() => void file("pdf")}>
            PDF: print the map
          </button>
        )}
        <button id="export-csv" type="button" onClick={() => void file("csv")}>
          CSV of its numbers
        </button>
        {door.file && (
          <>
            {explorer.now.model.value?.parquet && (
              <button id="export-parquet" type="button" onClick={() => void file("parquet")}>
                Parquet of its numbers
              </button>
            )}
            <button id="export-html" type="button" onClick={() => void file("html")}>
              One file: opens offline
            </button>
            <p class="note">
              All texts, or exact weights: <code>attlas look … --export x.html --exact</code>
            </p>
          </>
        )}
        {explorer.address !== null && (
          <button id="copy-link" type="button" onClick={() => void copy()}>
            Copy the link
          </button>
        )}
      </div>
    </details>
  );
}
