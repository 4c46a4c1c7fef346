import { h } from "preact";
import { useEffect } from "preact/hooks";
import type { Note } from "./door.ts";
import { useExplorer } from "./panel.ts";
import { Trouble } from "./parts.tsx";
import { Problem } from "./problem.ts";
import { useSignal } from "./signals.ts";

const MOST = 2000; // characters of a note

/** What the reader wrote, each with the view that it is about. */
export function NotesPanel() {
  const explorer = useExplorer();
  const { door } = explorer;
  const notes = useSignal<readonly Note[] | null>(null);
  const text = useSignal("");
  const problem = useSignal("");
  const say = (work: Promise<readonly Note[]> | undefined, done = "") =>
    work?.then(
      (came) => {
        [notes.value, problem.value] = [came, ""];
        if (done) explorer.spoken.value = done;
      },
      (thrown: unknown) => void (problem.value = Problem.of(thrown).message),
    );
  useEffect(() => void say(door.notes?.()), []);
  const add = (event: Event) => {
    event.preventDefault();
    (event.currentTarget as Element).querySelector("textarea")?.focus(); // the button goes out
    const written = text.value.trim();
    if (written === "") return;
    void say(door.addNote?.(written, explorer.link), "The note is kept.")?.then(() => {
      if (problem.value === "") text.value = "";
    });
  };
  return (
    <div class="doubt notes">
      {door.addNote && (
        <form class="aside" onSubmit={add}>
          <label for="note">A note on what is on screen</label>
          <textarea
            id="note"
            rows={3}
            maxLength={MOST}
            value={text.value}
            onInput={(event) => (text.value = event.currentTarget.value)}
          />
          <button type="submit" disabled={text.value.trim() === ""}>
            Keep the note
          </button>
          <Trouble said={problem.value} />
        </form>
      )}
      <ul id="notes" tabIndex={0} aria-label="Notes">
        {notes.value?.map(({ id, text, link }) => (
          <li key={id}>
            <p dir="auto">{text}</p>
            {explorer.address !== null && <a href={link}>Show its view</a>}{" "}
            {door.removeNote && (
              <button
                type="button"
                onClick={(event) => {
                  event.currentTarget.closest("ul")?.focus(); // the button goes
                  void say(door.removeNote?.(id), "The note is removed.");
                }}
              >
                Remove
              </button>
            )}
          </li>
        ))}
        {notes.value?.length === 0 && <li class="note">No notes yet.</li>}
      </ul>
    </div>
  );
}
