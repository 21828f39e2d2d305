/** Paths in a 20 by 20 box, drawn as strokes. */
const paths = {
  close: "M5 5l10 10M15 5L5 15",
  pause: "M7 4.5v11M13 4.5v11",
  play: "M6.5 4.5l9 5.5-9 5.5z",
  stop: "M5.5 5.5h9v9h-9z",
  leave: "M8 4H4.5v12H8M12.5 6.5L16 10l-3.5 3.5M16 10H8",
  invite: "M8.5 11.5l3-3M9 6l1.8-1.8a3.5 3.5 0 015 5L14 11M11 14l-1.8 1.8a3.5 3.5 0 01-5-5L6 9",
  download: "M10 3.5v9M6 9l4 4 4-4M4 16.5h12",
  copy: "M7.5 7.5h8v8h-8zM12.5 7.5v-3h-8v8h3",
  check: "M4.5 10.5l3.5 3.5 7.5-8",
} as const;

export type IconName = keyof typeof paths;

/** Decoration next to a text or a label. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}
